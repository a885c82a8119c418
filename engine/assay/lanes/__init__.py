"""Lanes: how a Python operation becomes a column operation without changing one bit.

Python's text rules and the engine's differ in corners. A lane sends to the fast columnar operation the rows on which both
provably agree, and the rest to Python itself. Each module holds one operation, its Python definition beside its expression.
"""
