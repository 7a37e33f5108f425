"""Layers shared by all families: attention over packed sequences, dropout, activations."""
