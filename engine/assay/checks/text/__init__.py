"""Checks of phrases, patterns, numbers, lengths and counts."""
