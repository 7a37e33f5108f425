"""Datasets of the study: EmpatheticDialogues, other replies, topics and emotion tags."""
