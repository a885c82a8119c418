"""What checks read in a text, where that is, and how it relates to what they expect."""
