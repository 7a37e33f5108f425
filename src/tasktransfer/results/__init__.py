"""Folder of a node: its place, its state, its results, and checks that they are complete."""
