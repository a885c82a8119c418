"""The function that a row names and what the row brings for it; ``assay.verifiers.fns`` has the functions."""

from assay.classes.in_process import InProcessVerifier

__all__ = ["InProcessVerifier"]
