"""A plan on a frame, and the row loop that defines its results."""
