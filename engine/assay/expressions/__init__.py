"""Python's meaning of text and JSON, as Polars expressions that do not change one bit.

Python's text rules and the engine's differ in corners. A lane sends the rows on which both provably agree to the fast
expression, and the rest to Python itself. Each module holds one operation, its Python definition beside its expression.
"""
