"""Files of other tools to specs."""
