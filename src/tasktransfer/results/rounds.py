"""Where the parameters of a stage's rounds lie in its folder."""

from __future__ import annotations

from pathlib import Path

from tasktransfer.core.nodes import Round
from tasktransfer.errors import ModelError

CHECKPOINT = "checkpoint"
"""Folder of the best round's parameters."""

ROUNDS = "rounds"
"""Folder of every round's parameters by its number, where a stage keeps them
(``Selection.keep``)."""

LAST = "last"


def round_folder(stage_folder: str, at: Round) -> str:
    """Where a round's parameters are, of which the last one has its number only once the stage is
    done: see ``existing``."""
    return f"{stage_folder}/{CHECKPOINT}" if at == "best" else f"{stage_folder}/{ROUNDS}/{at}"


def existing(folder: str) -> str:
    """The folder that holds a round's parameters: that of the highest number for ``last``.

    Raises:
        ModelError: the round was not kept.
    """
    path = Path(folder)
    if path.parent.name != ROUNDS or path.is_dir():
        return folder
    numbers = sorted(int(each.name) for each in path.parent.glob("*") if each.name.isdigit())
    if path.name == LAST and numbers:
        return str(path.with_name(str(numbers[-1])))
    kept = f"rounds {numbers[0]} to {numbers[-1]} are there" if numbers else "no round is there"
    raise ModelError(
        f"{path}: no such round, {kept}; start from one of them, and let the stage that it comes "
        "from keep its rounds (selection.keep: every)"
    )
