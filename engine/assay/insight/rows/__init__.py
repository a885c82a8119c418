"""Rows of a result for a person to look at."""
