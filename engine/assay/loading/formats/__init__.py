"""One file to a lazy frame, for each file format."""
