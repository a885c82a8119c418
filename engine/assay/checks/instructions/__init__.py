"""Checks of the instructions of IFEval, and of the language."""
