"""The FETA challenge: its rules, what is submitted, and how a submission is scored."""
