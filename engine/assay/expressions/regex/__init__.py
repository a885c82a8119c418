"""Python's `re` for columns: a linear engine where it provably agrees, sets of positions or `re` itself for the rest."""
