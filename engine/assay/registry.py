"""Register verifier classes, and find those that are registered."""

from assay.classes.registry import get_verifier, list_verifiers, register_verifier

__all__ = ["get_verifier", "list_verifiers", "register_verifier"]
