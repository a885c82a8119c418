"""The check types: what every check is, and one room for each family of types."""
