"""The FETA challenge: submissions of a transfer study, their scores and a leaderboard."""
