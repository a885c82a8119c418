"""Commands, and what a terminal shows."""
