"""What a class gets: exercises with their checks, signals to attack, and a competition."""
