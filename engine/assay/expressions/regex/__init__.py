"""Python's `re` for columns: Polars' linear engine if it provably agrees, else sets of positions or `re` itself."""
