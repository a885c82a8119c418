"""The interface of a verifier class, and its result."""

from assay.classes.registry import VerificationResult, Verifier

__all__ = ["VerificationResult", "Verifier"]
