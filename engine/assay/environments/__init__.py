"""Rollouts over a client."""
