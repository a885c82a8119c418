"""The check of mathematical answers."""
