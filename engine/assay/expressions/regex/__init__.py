"""Python's `re` for columns: Polars' linear engine if it provably agrees, else `re` itself, or sets of positions where it is late."""
