"""Score a frame with a plan, and the row loop that defines the results."""
