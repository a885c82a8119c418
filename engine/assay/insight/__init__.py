"""Insight into verifiers: what they cost."""
