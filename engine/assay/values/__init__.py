"""Convert Python and Arrow values to columns and back."""
