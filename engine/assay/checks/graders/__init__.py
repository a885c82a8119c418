"""Graders: scoring functions of other tools by name, each at one version, with the same number on every row."""
