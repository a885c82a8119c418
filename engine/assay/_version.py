"""The engine's version, in the one place the build and the provenance read it from, and the name of its distribution."""

__version__ = "0.1.0"

DISTRIBUTION = "assay-rollouts"
"""What ``pip`` installs; the modules are ``assay``."""
