"""Counts with their nouns, for messages."""


def format_quantity(count: int, thing: str) -> str:
    """Format a count with its noun: 1 training, 2 trainings."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
