"""Files that are read whole: their records as JSON lines."""
