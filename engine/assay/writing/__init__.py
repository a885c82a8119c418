"""Write results to files, with their provenance."""
