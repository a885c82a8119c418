"""Similarity of texts."""
