"""Before the papers: what an attack is, in three charts that readers move, and a network that learns while they look."""
