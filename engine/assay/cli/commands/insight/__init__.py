"""The commands about results, one per module."""
