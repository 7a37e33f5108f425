"""The FETA challenge: its rules, submissions and scores."""
