"""What of a result needs a look: facts with numbers, causes and the rows to read."""
