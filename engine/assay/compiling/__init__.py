"""Verifiers and a schema to a plan."""
