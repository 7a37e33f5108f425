"""Friends."""
