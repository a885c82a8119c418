"""Parsed patterns: the characters that their nodes accept, and other trees that match in the same texts."""
