"""Our trainer with ``fidelity: tlidb`` beside the toolkit's own code, see ``__main__``."""
