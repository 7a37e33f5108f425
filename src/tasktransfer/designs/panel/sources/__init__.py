"""Data of the study: dialogues by domain, a labeller's pairs, and responses with human ratings."""
