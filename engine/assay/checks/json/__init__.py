"""Checks of JSON."""
