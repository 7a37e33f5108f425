"""Where the parameters of a stage's rounds lie in its folder, and which of them are there.

Which rounds are left is no part of a stage's identity (``core.specs.Selection``): whoever asks for
one that was not kept has the stage trained once more (ADR 0023).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasktransfer.core.digests import digest_of
from tasktransfer.core.nodes import Round, Stage
from tasktransfer.errors import ModelError, RecordError
from tasktransfer.results.artefacts import checked
from tasktransfer.results.records import read_record
from tasktransfer.results.state import RECORD

CHECKPOINT = "checkpoint"
"""Folder of the best round's parameters; where other tasks than the training tasks have chosen it,
in a folder of it that these name."""

MOST_NAMES = 4
"""Selecting tasks that name a folder; more have a digest in their place."""

ROUNDS = "rounds"
"""Folder of every round's parameters by its number, where a stage keeps them
(``Selection.keep``)."""

LAST = "last"


def round_folder(stage_folder: str, at: Round, selected_on: Sequence[str] = ()) -> str:
    """Where a round's parameters are, of which the last one has its number only once the stage is
    done: see ``existing``. ``selected_on``: as ``Start.selected_on``."""
    if at != "best":
        return f"{stage_folder}/{ROUNDS}/{at}"
    return str(choice_folder(Path(stage_folder, CHECKPOINT), selected_on))


def choice_folder(checkpoint: Path, selected_on: Sequence[str]) -> Path:
    """Where in a checkpoint the round is that some tasks have chosen, see ``CHECKPOINT``."""
    if not selected_on:
        return checkpoint
    few = len(selected_on) <= MOST_NAMES
    return checkpoint / ("+".join(selected_on) if few else digest_of([*selected_on]))


def existing(folder: str) -> str:
    """The folder that holds a round's parameters; of ``last`` that of the last round by the stage's
    record, as others than all may have been kept.

    Raises:
        ModelError: the round was not kept.
        RecordError: the last round is asked for, and there is no record that tells its number.
    """
    path = Path(folder)
    if path.parent.name != ROUNDS:
        return folder
    if path.name == LAST:
        path = path.with_name(str(last_of(path.parent.parent)))
    if path.is_dir():
        return str(path)
    numbers = kept_in(path.parent.parent)
    kept = f"rounds {', '.join(map(str, numbers))} are there" if numbers else "no round is there"
    raise ModelError(
        f"{path}: no such round, {kept}; start from one of them, and let the stage that it comes "
        "from keep its rounds (selection.keep: every)"
    )


def checked_round(folder: str, digest: str) -> str:
    """The folder of a stage's kept weights, once it is known that they are those the stage left.

    Args:
        folder: as ``round_folder`` names it. One that lies beside no record is not checked.
        digest: of the stage.

    Returns:
        The folder; of ``last`` that of the last round.

    Raises:
        ModelError: the round was not kept.
        RecordError: as ``artefacts.checked``.
    """
    path = Path(existing(folder))
    if path.name == CHECKPOINT:
        checked(path.parent, digest, [CHECKPOINT])
    elif path.parent.name == CHECKPOINT:
        checked(path.parent.parent, digest, [f"{CHECKPOINT}/{path.name}"])
    elif path.parent.name == ROUNDS:
        checked(path.parent.parent, digest, [f"{ROUNDS}/{path.name}"])
    return str(path)


def last_of(stage_folder: Path) -> int:
    """The number of the last round that a finished stage has done.

    Raises:
        RecordError: its record is missing or damaged.
    """
    file = stage_folder / RECORD
    try:
        return int(read_record(file)["training"]["rounds"][-1]["round"])
    except (RecordError, LookupError) as error:
        raise RecordError(
            f"{file}: does not tell the last round ({error}); train the stage again"
        ) from None


def kept_in(stage_folder: Path) -> list[int]:
    """The numbers of the rounds whose parameters are there, sorted."""
    folders = (stage_folder / ROUNDS).glob("*")
    return sorted(int(each.name) for each in folders if each.name.isdigit())


def lacking(stage_folder: Path, stage: Stage, last: int) -> list[int]:
    """The rounds up to ``last`` that a stage keeps and that are not there."""
    there = {*kept_in(stage_folder)}
    return [n for n in range(last + 1) if stage.keeps(n) and n not in there]
