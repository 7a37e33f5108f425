"""The folder of a node: where it lies, how far it is, what it left, and whether that is whole."""
