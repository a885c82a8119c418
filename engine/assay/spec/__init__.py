"""A spec file to a verifier."""
