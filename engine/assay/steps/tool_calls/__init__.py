"""Tool calls: read from the messages of several APIs and from text, in one form."""
