"""Python's semantics of text and JSON as Polars expressions with bit-identical results.

Python's text rules and Polars' differ in corner cases. The rows on which both provably agree go through the fast expression, all
others through Python itself. Each module holds one operation, its Python definition next to its expression.
"""
