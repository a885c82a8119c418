"""Open rollouts from any source: recognise the format, choose how to read it, open it."""
