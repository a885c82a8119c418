"""The engine's version, in the one place the build and the provenance read it from."""

__version__ = "0.1.0"
