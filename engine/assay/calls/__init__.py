"""Run user code within limits: calls that may hang, raise, print or never return."""
