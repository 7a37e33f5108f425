"""What the study reads: EmpatheticDialogues, other replies, topics and emotion tags."""
