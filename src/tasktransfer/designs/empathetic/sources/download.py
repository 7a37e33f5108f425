"""Download of EmpatheticDialogues as its authors publish it, and conversion to files by emotion.

The address is that of the authors' repository (facebookresearch/EmpatheticDialogues), and the
checksum is ParlAI's (``parlai/tasks/empathetic_dialogues/build.py``). A line of the archive's
``train.csv``, ``valid.csv`` and ``test.csv`` is an utterance. Cells are separated by commas and not
enclosed: a quotation mark is a character of the text, and a comma of the text is ``_comma_``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tasktransfer.datasets.download import Archive, Conversion
from tasktransfer.designs.empathetic.sources.cards import ED, LABELS
from tasktransfer.designs.empathetic.sources.dialogues import (
    BY_EMOTION,
    COLUMNS,
    FOLDER,
    SPLIT_FILE,
    SPLIT_OF,
    EmpatheticDialogue,
    sort_dialogues,
)
from tasktransfer.errors import DataError, format_location
from tasktransfer.files.safe_tar import read_tar_lines
from tasktransfer.files.safe_zip import Limits

ARCHIVE = Archive(
    "empatheticdialogues.tar.gz",
    "https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz",
    (f"dialogues ({ED}): CC BY-NC 4.0, for non-commercial use",),
    sha256="56f234d77b7dd1f005fd365bb17769cfe346c3c84295b69bc069c8ccb83be03d",
)
FILES = {f"{split}.csv": split for split in SPLIT_OF}
"""File of the archive → split in ``split.csv``."""
PUBLISHED_COLUMNS = (
    "conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance", "selfeval", "tags",
)  # fmt: skip
WIDTHS = (len(PUBLISHED_COLUMNS), len(PUBLISHED_COLUMNS) + 1)
"""Numbers of cells of a line: the validation and test files add candidate replies."""
_LIMITS = Limits(total=2**30, members=100, ratio=100)


def write_by_emotion(archive: Path, folder: Path) -> tuple[str, ...]:
    """Write ``split.csv`` and one file per emotion, in which dialogues are sorted by number.

    Spaces at the ends of a text are removed, as in the copy by emotion of EmpatheticIntents.

    Raises:
        DataError: the archive is damaged or unsafe, or has other contents.
    """
    dialogues: list[EmpatheticDialogue] = []
    for name, lines in read_tar_lines(archive, FILES, _LIMITS):
        dialogues += _read_dialogues(f"{archive} ({name})", FILES[name], lines)
    dialogues = sort_dialogues(_rename_duplicates(archive, dialogues))
    (folder / BY_EMOTION).mkdir()
    for emotion in LABELS:
        chosen = [dialogue for dialogue in dialogues if dialogue.emotion == emotion]
        rows = (row for dialogue in chosen for row in _list_rows(dialogue))
        _write_csv(folder / BY_EMOTION / f"{emotion}.csv", COLUMNS, rows)
    splits = ((dialogue.name, dialogue.split) for dialogue in dialogues)
    _write_csv(folder / SPLIT_FILE, ("Dialog_ID", "split"), splits)
    return ()


def _read_dialogues(file: str, split: str, lines: Iterable[bytes]) -> Iterator[EmpatheticDialogue]:
    """Yield the dialogues of a file. A dialogue ends if the ID changes or the index restarts."""
    name, last, emotion, situation = "", 0, "", ""
    utterances: list[str] = []
    for number, cells in _read_lines(file, lines):
        where = format_location(file, number)
        index, label, *texts = cells[1], cells[2], *map(_restore_text, (cells[3], cells[5]))
        if label not in LABELS:
            raise DataError(
                f"{where}: The value {label!r:.40} is not one of the 32 emotions. Fetch the data "
                "again."
            )
        if not index.isdecimal() or not all(texts):
            raise DataError(
                f"{where}: The line has no index or an empty text. Fetch the data again."
            )
        if cells[0] != name or int(index) <= last:
            if name:
                yield EmpatheticDialogue(name, split, emotion, situation, tuple(utterances))
            name, emotion, situation, utterances = cells[0], label, texts[0], []
        utterances.append(texts[1])
        last = int(index)
    if not name:
        raise DataError(f"{file}: The file contains no dialogue. Fetch the data again.")
    yield EmpatheticDialogue(name, split, emotion, situation, tuple(utterances))


def _read_lines(file: str, lines: Iterable[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line after the header."""
    for number, line in enumerate(lines, 1):
        where = format_location(file, number)
        try:
            cells = line.decode("utf-8").rstrip("\r\n").split(",")
        except UnicodeDecodeError:
            raise DataError(
                f"{where}: The text is not valid UTF-8. Fetch the data again."
            ) from None
        if number == 1 and tuple(cells[: WIDTHS[0]]) != PUBLISHED_COLUMNS:
            expected = ", ".join(PUBLISHED_COLUMNS)
            raise DataError(f"{file}: The columns are not {expected}. Fetch the data again.")
        if len(cells) not in WIDTHS:
            raise DataError(
                f"{where}: The line has {len(cells)} cells, but must have {WIDTHS[0]} or "
                f"{WIDTHS[1]}. Fetch the data again."
            )
        if number > 1:
            yield number, cells


def _restore_text(cell: str) -> str:
    return cell.replace("_comma_", ",").strip()


def _rename_duplicates(
    archive: Path, dialogues: Sequence[EmpatheticDialogue]
) -> Iterator[EmpatheticDialogue]:
    """Yield the dialogues with unique names, adding " (1)", " (2)" and so on to repeated names."""
    splits: dict[str, str] = {}
    for dialogue in dialogues:
        name, count = dialogue.name, 0
        if splits.get(name, dialogue.split) != dialogue.split:
            raise DataError(
                f"{archive}: Dialogue {name} is in both splits {splits[name]} and "
                f"{dialogue.split}. Fetch the data again."
            )
        while name in splits:
            count += 1
            name = f"{dialogue.name} ({count})"
        splits[name] = dialogue.split
        yield EmpatheticDialogue(
            name, dialogue.split, dialogue.emotion, dialogue.situation, dialogue.utterances
        )


def _list_rows(dialogue: EmpatheticDialogue) -> Iterator[tuple[str, ...]]:
    yield dialogue.name, "situation", "none", dialogue.situation
    for number, text in enumerate(dialogue.utterances):
        yield dialogue.name, "utterance", ("speaker", "listener")[number % 2], text


def _write_csv(file: Path, columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


CONVERSION = Conversion(ARCHIVE, FOLDER, 1, write_by_emotion)
