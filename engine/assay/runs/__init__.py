"""Runs from file to file: in one piece, in parts, on Ray."""
