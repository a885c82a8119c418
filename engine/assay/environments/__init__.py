"""Environments, which generate rollouts with a model."""
