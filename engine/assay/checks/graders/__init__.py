"""Graders: scoring functions of other tools by name, each at one version, with the same number on every row.

The modules of the tools are plain Python: they score a text, its golds and options, and import neither the tools nor Polars.
"""
