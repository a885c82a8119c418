"""Verifier functions that rows name: their registry, their Polars twins, and the check that calls them."""
