"""What a task is, and how its instances are put to a model."""
