"""Readers from one file to a lazy frame, one for each file format."""
