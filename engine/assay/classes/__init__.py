"""Verifier classes: their registry, and the check that runs them."""
