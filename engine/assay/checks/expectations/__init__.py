"""The check of the expectations that a task brings."""
