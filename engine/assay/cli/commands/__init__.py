"""The commands, one per module: to add a command, add a file."""
