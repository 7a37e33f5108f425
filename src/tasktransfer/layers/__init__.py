"""Layers that every family computes with: attention over packed sequences, dropout, activations."""
