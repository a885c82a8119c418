"""Results in a browser: what is asked of a result while it is looked at, and the server that answers."""
