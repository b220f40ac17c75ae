"""Teaching material: exercises with their checks, signals to attack, and a competition."""
