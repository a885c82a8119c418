"""Runs from file to file: to one file, to a folder of parts, on Ray."""
