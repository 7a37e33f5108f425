"""Tasks: their cards, and the texts of their instances for models."""
