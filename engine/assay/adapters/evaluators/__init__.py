"""Adapters that need a package of an evaluator when they are called: one file for each; ``assay.adapters`` has their names."""
