"""What the study reads: dialogues by domain, a labeller's pairs, responses that people rated."""
