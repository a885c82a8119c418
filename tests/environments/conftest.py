"""What tests of generation have in common."""

import ssl

import pytest


@pytest.fixture(autouse=True)
def _no_certificates(monkeypatch):
    """Every client reads the certificates of the world, for 50 ms; the servers of tests speak plain HTTP."""
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
