"""Verifier classes: their registry, and the check that asks them."""
