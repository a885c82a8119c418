"""Results to files, with what made them."""
