"""A study while it runs and afterwards: its state, its costs, sharing it, and clearing up."""
