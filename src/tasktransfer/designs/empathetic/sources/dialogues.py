"""Reader of EmpatheticDialogues from ``by_emotion/<emotion>.csv`` and ``split.csv`` (3, A.1).

A dialogue has a situation with its label, and utterances that alternate and begin with the speaker.
Every dialogue is in one split. A situation that occurs in two splits, ignoring case, is left out of
the classifiers' data in all splits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TurnLength
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.designs.empathetic.sources.cards import (
    ED,
    ED_CARDS,
    EMOTION,
    EMOTION_CUT,
    EMOTION_OF_CONTEXT,
    LABELS,
    NEXT,
    REPLY,
    TURN,
    WINDOW,
)
from tasktransfer.designs.empathetic.sources.tiny import TINY
from tasktransfer.errors import DataError, format_location, format_quantity
from tasktransfer.files.data_files import read_csv_rows, read_json_object
from tasktransfer.files.fields import get_texts
from tasktransfer.tasks.card import SPLITS, Instance

FOLDER, BY_EMOTION, SPLIT_FILE, SYNTHETIC = (
    "empathetic_dialogues", "by_emotion", "split.csv", "synthetic.json",
)  # fmt: skip
COLUMNS = ("Dialog_ID", "Type", "Actor", "Text")
SPLIT_OF = {"train": "train", "valid": "dev", "test": "test"}
_NUMBER = re.compile(r"\d+")
_MARKS = re.compile(r"[^\w\s]")


@dataclass(frozen=True, slots=True)
class EmpatheticDialogue:
    """A dialogue whose utterances alternate between speaker and listener, from the speaker on."""

    name: str
    split: str
    emotion: str
    situation: str
    utterances: tuple[str, ...]

    @property
    def mentions_emotion(self) -> bool:
        """True if the situation contains its emotion label as a word."""
        return self.emotion in _split_words(self.situation)


def find_release(folder: Path) -> str:
    """Return the release's folder: ``folder`` itself, or its ``empathetic_dialogues``.

    Raises:
        DataError: neither folder is a release.
    """
    for path in (folder / FOLDER, folder):
        if (path / BY_EMOTION).is_dir():
            return str(path)
    raise DataError(
        f"{folder}: The folder is not a release of {ED}, because it contains neither "
        f"{FOLDER}/{BY_EMOTION} nor {BY_EMOTION}. Put the release's CSV files into this folder, "
        "or change data.release."
    )


def find_files(path: Path) -> dict[str, Path]:
    """Map the name of every file of a release to its path.

    Raises:
        DataError: a file is missing.
    """
    emotions = _list_emotions(path)
    names = [SPLIT_FILE, *(f"{BY_EMOTION}/{emotion}.csv" for emotion in emotions)]
    for name in names:
        if not (path / name).is_file():
            raise DataError(f"{path / name}: The file is missing. Copy the whole release again.")
    own = [SYNTHETIC] if (path / SYNTHETIC).is_file() else []
    return {name: path / name for name in [*names, *own]}


def compute_revision(folder: Path, memo: Path | None) -> str:
    """Return the digest of all files of the release, which is cached in ``memo``."""
    return compute_files_digest(find_files(Path(find_release(folder))), memo)


def read_dialogues(folder: Path) -> list[EmpatheticDialogue]:
    """Read all dialogues, sorted by the numbers in their names, as in the official files.

    The files here are split by emotion, so without sorting a block of P@1 would have one emotion.

    Raises:
        DataError: a file is invalid; the message has file, line, value and remedy.
    """
    files = find_files(folder)
    splits = _read_splits(files[SPLIT_FILE])
    dialogues: list[EmpatheticDialogue] = []
    seen: dict[str, Path] = {}
    strays = sorted({f.stem for f in (folder / BY_EMOTION).glob("*.csv")} - set(LABELS))
    if strays:
        raise DataError(
            f"{folder / BY_EMOTION / strays[0]}.csv: The file's name {strays[0]!r} is not one of "
            f"the 32 emotions ({', '.join(LABELS)}). Remove the file."
        )
    for emotion in _list_emotions(folder):
        file = files[f"{BY_EMOTION}/{emotion}.csv"]
        of_file = list(_read_dialogues(file, emotion, splits))
        if not of_file:
            raise DataError(f"{file}: The file contains no dialogue. Copy the whole release again.")
        for dialogue in of_file:
            if dialogue.name in seen:
                raise DataError(
                    f"{file}: Dialogue {dialogue.name} is also in {seen[dialogue.name]}. Keep the "
                    "dialogue in one file only."
                )
            seen[dialogue.name] = file
            dialogues.append(dialogue)
    unknown = sorted(splits.keys() - seen.keys())
    if unknown:
        raise DataError(
            f"{files[SPLIT_FILE]}: The file lists {format_quantity(len(unknown), 'dialogue')} "
            f"that the files in {BY_EMOTION} lack, for example {unknown[0]}. Copy the whole "
            "release again."
        )
    check_disjoint_splits(
        (
            SplitDialogue(each.name, each.split, " ".join(each.utterances), str(seen[each.name]))
            for each in dialogues
        ),
        f"Keep one of them, or give both the same split in {files[SPLIT_FILE]}",
        generated=SYNTHETIC in files,
    )
    return sort_dialogues(dialogues)


def sort_dialogues(dialogues: Iterable[EmpatheticDialogue]) -> list[EmpatheticDialogue]:
    """Return the dialogues in the order of the numbers in their names."""
    return sorted(dialogues, key=lambda d: ([int(n) for n in _NUMBER.findall(d.name)], d.name))


def _list_emotions(folder: Path) -> tuple[str, ...]:
    """Return all 32 emotions, or those that a synthetic release declares."""
    file = folder / SYNTHETIC
    return _read_emotions(file) if file.is_file() else LABELS


def _read_emotions(file: Path) -> tuple[str, ...]:
    content, where = read_json_object(file)
    return get_texts(content, "emotions", where)


def _read_splits(file: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for line, (name, split) in read_csv_rows(file, ("Dialog_ID", "split")):
        where = format_location(file, line)
        if split not in SPLIT_OF:
            raise DataError(
                f"{where}: The value {split!r} is not a split. Write train, valid or test."
            )
        if name in splits:
            raise DataError(
                f"{where}: This line assigns the dialogue {name} to the split {SPLIT_OF[split]}, "
                f"but an earlier line assigns it to {splits[name]}. Keep one of the two lines, "
                "because no dialogue may be in two splits."
            )
        splits[name] = SPLIT_OF[split]
    return splits


def _read_dialogues(
    file: Path, emotion: str, splits: Mapping[str, str]
) -> Iterator[EmpatheticDialogue]:
    name, situation = "", ""
    utterances: list[str] = []

    def end_dialogue() -> Iterator[EmpatheticDialogue]:
        if name:
            yield EmpatheticDialogue(name, splits[name], emotion, situation, tuple(utterances))

    for line, (dialogue, kind, actor, text) in read_csv_rows(file, COLUMNS):
        where = format_location(file, line)
        if not text.strip():
            raise DataError(
                f"{where}: The text is empty. Write the utterance, or remove the dialogue."
            )
        if dialogue not in splits:
            raise DataError(
                f"{where}: Dialogue {dialogue!r} is missing from {SPLIT_FILE}. Add the "
                f"split of the dialogue to {SPLIT_FILE}."
            )
        if kind == "situation":
            yield from end_dialogue()
            name, situation, utterances = dialogue, text, []
            continue
        expected = ("speaker", "listener")[len(utterances) % 2]
        if kind != "utterance" or dialogue != name:
            raise DataError(
                f"{where}: A line of type {kind!r} is not expected here, because a dialogue is a "
                "situation followed by utterances. Correct the dialogue."
            )
        if actor != expected:
            raise DataError(
                f"{where}: The actor is {actor!r}, but it must be {expected!r}, because the "
                "speaker begins and turns alternate. Correct the dialogue."
            )
        utterances.append(text)
    yield from end_dialogue()


# --- instances ----------------------------------------------------------------------------------


def open_release(folder: Path, few_sample: bool) -> Release:
    """Return a release. ``few_sample`` has no effect, because the data have no few-sample split."""
    path = Path(find_release(folder))
    dialogues = read_dialogues(path)
    shared = find_shared_situations(dialogues)
    synthetic = path / SYNTHETIC

    def instances(task: str, split: str) -> Iterator[Instance]:
        for dialogue in dialogues:
            if dialogue.split == split:
                yield from _build_instances(dialogue, task, shared)

    return Release(
        location=str(path),
        revision=compute_revision(folder, None),
        tasks=tuple(card.name for card in ED_CARDS),
        dialogues={split: sum(d.split == split for d in dialogues) for split in SPLITS},
        instances=instances,
        turns=list(_measure_turns(dialogues)),
        synthetic=synthetic.is_file(),
    )


def _build_instances(
    dialogue: EmpatheticDialogue, task: str, shared: Mapping[str, tuple[str, ...]]
) -> Iterator[Instance]:
    if task in (EMOTION.name, EMOTION_CUT.name):
        cut = task == EMOTION_CUT.name and dialogue.mentions_emotion
        if not cut and _fold_case(dialogue.situation) not in shared:
            text = dialogue.situation
            yield Instance(dialogue.name, dialogue.name, task, text, 0, {}, (), (dialogue.emotion,))
        return
    for index in range(1, len(dialogue.utterances)):
        listener = index % 2 == 1
        if task == REPLY.name and not listener:
            continue
        before = dialogue.utterances[max(0, index - WINDOW) : index]
        target = dialogue.emotion if task == EMOTION_OF_CONTEXT.name else dialogue.utterances[index]
        # No template contains these, so no model reads them. Tables and Prepend-k use them.
        query = {"emotion": dialogue.emotion, "side": "listener" if listener else "speaker"}
        identity = f"{dialogue.name}#{index}"
        yield Instance(identity, dialogue.name, task, TURN.join(before), 0, query, (), (target,))


def _measure_turns(dialogues: list[EmpatheticDialogue]) -> Iterator[TurnLength]:
    for dialogue in dialogues:
        for number, text in enumerate(dialogue.utterances):
            side = ("speaker", "listener")[number % 2]
            yield TurnLength(
                dialogue.name, dialogue.split, True, str(number), (side,), len(text.split())
            )


def _fold_case(text: str) -> str:
    return text.strip().lower()


def _split_words(text: str) -> list[str]:
    """Return lower-case words without punctuation. ``self-confident`` is one word."""
    return _MARKS.sub("", text.lower()).split()


def find_shared_situations(dialogues: list[EmpatheticDialogue]) -> dict[str, tuple[str, ...]]:
    """Map each situation (in lower case) that occurs in several splits to its sorted splits."""
    splits: dict[str, set[str]] = {}
    for dialogue in dialogues:
        splits.setdefault(_fold_case(dialogue.situation), set()).add(dialogue.split)
    return {text: tuple(sorted(names)) for text, names in splits.items() if len(names) > 1}


def count_shared_utterances(
    dialogues: list[EmpatheticDialogue], fewest_words: int = 4
) -> tuple[int, int]:
    """Count the distinct test utterances that also occur in training.

    Case and punctuation are ignored, and so are utterances of fewer than ``fewest_words`` words.

    Returns:
        The number of shared utterances, and the number of all distinct test utterances.
    """

    def collect_texts(split: str) -> set[str]:
        plain = [_split_words(t) for d in dialogues if d.split == split for t in d.utterances]
        return {" ".join(words) for words in plain if len(words) >= fewest_words}

    test = collect_texts("test")
    return len(test & collect_texts("train")), len(test)


EMPATHETIC_DIALOGUES = Dataset(
    name=ED,
    cards=ED_CARDS,
    reader=Reader(
        version=1,
        find=find_release,
        revision=compute_revision,
        open=open_release,
        splits={card.name: SPLITS for card in ED_CARDS},
    ),
    sizes={
        NEXT.name: TaskSize(64_663, 9_305, 8_423, 75),
        REPLY.name: TaskSize(40_270, 5_736, 5_257, 60),
        EMOTION_OF_CONTEXT.name: TaskSize(64_663, 9_305, 8_423, 50),
        EMOTION.name: TaskSize(19_520, 2_766, 2_542, 25),
        EMOTION_CUT.name: TaskSize(18_467, 2_659, 2_292, 25),
    },
    sizes_from="the corpus",
    tiny=TINY,
)
