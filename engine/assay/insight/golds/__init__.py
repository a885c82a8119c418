"""Which golds of a task may be wrong."""
