"""Paths of the parameters of a stage's rounds, and detection of the rounds that exist.

The set of kept rounds is not part of a stage's identity (``core.specs.Selection``). If a node needs
a round that was not kept, the stage is trained again (ADR 0023).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Round, Stage
from tasktransfer.errors import ModelError, RecordError
from tasktransfer.results.artefacts import check_artefacts
from tasktransfer.results.records import read_record
from tasktransfer.results.state import RECORD

CHECKPOINT = "checkpoint"
"""Folder of the best round's parameters.

If tasks other than the training tasks selected the round, it is in a subfolder named after them.
"""

MOST_NAMES = 4
"""Largest number of selecting tasks in a folder name; more are replaced by a digest."""

ROUNDS = "rounds"
"""Folder of the parameters of kept rounds, by round number (``Selection.keep``)."""

LAST = "last"


def get_round_folder(stage_folder: str, at: Round, selected_on: Sequence[str] = ()) -> str:
    """Return the folder of a round's parameters.

    The number of the last round is known only when the stage is done, see ``find_round_folder``.
    ``selected_on`` is as in ``Start.selected_on``.
    """
    if at != "best":
        return f"{stage_folder}/{ROUNDS}/{at}"
    return str(get_selected_round_folder(Path(stage_folder, CHECKPOINT), selected_on))


def get_selected_round_folder(checkpoint: Path, selected_on: Sequence[str]) -> Path:
    """Return the folder of the best round on the dev splits of given tasks (see ``CHECKPOINT``)."""
    if not selected_on:
        return checkpoint
    few = len(selected_on) <= MOST_NAMES
    return checkpoint / ("+".join(selected_on) if few else compute_digest([*selected_on]))


def find_round_folder(folder: str) -> str:
    """Return the folder of a round's parameters, after checking that a kept round is complete.

    The folder of a best round is returned without a check. The number of the ``last`` round comes
    from the stage's record, because some rounds may not have been kept.

    Raises:
        ModelError: the round was not kept.
        RecordError: the last round is requested, and no record contains its number.
    """
    path = Path(folder)
    if path.parent.name != ROUNDS:
        return folder
    if path.name == LAST:
        path = path.with_name(str(read_last_round(path.parent.parent)))
    if path.is_dir():
        return str(path)
    numbers = list_kept_rounds(path.parent.parent)
    kept = f"kept rounds: {', '.join(map(str, numbers))}" if numbers else "no round was kept"
    raise ModelError(
        f"{path}: The checkpoint of this round was not kept ({kept}). Start from a kept round, or "
        "let the stage keep all rounds (selection.keep: every)."
    )


def check_round_folder(folder: str, digest: str) -> str:
    """Check the weights of a kept round, and return their folder.

    Args:
        folder: path from ``get_round_folder``. It is not checked if there is no record beside it.
        digest: digest of the stage.

    Returns:
        The folder; for ``last``, the folder of the last round.

    Raises:
        ModelError: the round was not kept.
        RecordError: as ``artefacts.check_artefacts``.
    """
    path = Path(find_round_folder(folder))
    if path.name == CHECKPOINT:
        check_artefacts(path.parent, digest, [CHECKPOINT])
    elif path.parent.name == CHECKPOINT:
        check_artefacts(path.parent.parent, digest, [f"{CHECKPOINT}/{path.name}"])
    elif path.parent.name == ROUNDS:
        check_artefacts(path.parent.parent, digest, [f"{ROUNDS}/{path.name}"])
    return str(path)


def read_last_round(stage_folder: Path) -> int:
    """Return the number of a finished stage's last round.

    Raises:
        RecordError: its record is missing or damaged.
    """
    file = stage_folder / RECORD
    try:
        return int(read_record(file)["training"]["rounds"][-1]["round"])
    except (RecordError, LookupError) as error:
        raise RecordError(
            f"{file}: The number of the last round is unknown ({error}). Train the stage again."
        ) from None


def list_kept_rounds(stage_folder: Path) -> list[int]:
    """Return the sorted numbers of the rounds whose parameters are on disk."""
    folders = (stage_folder / ROUNDS).glob("*")
    return sorted(int(folder.name) for folder in folders if folder.name.isdigit())


def list_missing_rounds(stage_folder: Path, stage: Stage, last: int) -> list[int]:
    """Return the rounds up to ``last`` that a stage should have kept but that are missing."""
    there = {*list_kept_rounds(stage_folder)}
    return [n for n in range(last + 1) if stage.keeps_round(n) and n not in there]
