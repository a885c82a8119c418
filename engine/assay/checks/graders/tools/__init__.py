"""What graders compute, by tool: plain Python that scores a text, its golds and options, and imports neither the tools nor Polars."""
