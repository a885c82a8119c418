"""Compile verifiers and a schema into a plan."""
