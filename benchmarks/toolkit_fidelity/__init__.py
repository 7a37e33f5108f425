"""Comparison of our trainer with ``fidelity: tlidb`` and the toolkit's code, see ``__main__``."""
