"""Readers of DailyDialog's replies, a user's reply pairs, emotion tags, and newsgroups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tasktransfer.datasets.dailydialog.tiny_world import write_release
from tasktransfer.datasets.dailydialog.utterances import OFFICIAL_SPLITS, RELEASE, read_dialogues
from tasktransfer.datasets.dataset import Dataset, Reader, Release, TaskSize, TinyPart, TinySize
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.datasets.file_digests import compute_files_digest
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY,
    DAILY_NEXT,
    NEWSGROUP,
    NEWSGROUP_LABELS,
    NEWSGROUPS,
    PAIR,
    PAIRS,
    TAG,
    TAG_LABELS,
    TAGS,
    TURN,
    WINDOW,
)
from tasktransfer.errors import DataError, format_location
from tasktransfer.files.data_files import read_content, read_csv_rows, read_lines
from tasktransfer.tasks.card import SPLITS, Instance, Task

Files = Callable[[Path], dict[str, Path]]
Rows = Mapping[str, list[Instance]]

SHARED = 0.01
"""Maximum fraction of a split whose texts may also occur in another split.

It applies to data that is not split by dialogue: crawled pairs, comments, posts to several groups.
"""


def _build_dataset(
    card: Task,
    files: Files,
    read: Callable[[dict[str, Path]], Rows],
    size: TaskSize,
    tiny: TinyPart | None = None,
) -> Dataset:
    """Return a dataset of one task, given functions that list and read a release's files."""

    def find(folder: Path) -> str:
        return str(next(iter(files(folder).values())))

    def revision(folder: Path, memo: Path | None) -> str:
        return compute_files_digest(files(folder), memo)

    def open_release(folder: Path, few_sample: bool) -> Release:
        there = files(folder)
        rows = read(there)
        return Release(
            location=find(folder),
            revision=revision(folder, None),
            tasks=(card.name,),
            dialogues={split: len({row.dialogue_id for row in rows[split]}) for split in SPLITS},
            instances=lambda task, split: rows[split],
            synthetic="synthetic" in there,
        )

    splits = {card.name: SPLITS}
    reader = Reader(version=1, find=find, revision=revision, open=open_release, splits=splits)
    return Dataset(card.dataset, (card,), reader, {card.name: size}, "the corpus", tiny=tiny)


def _build_utterance_instances(
    utterances: Sequence[str], card: Task, name: str
) -> Iterator[Instance]:
    """Yield one instance per utterance except the first, with its preceding utterances."""
    for index in range(1, len(utterances)):
        context = TURN.join(utterances[max(0, index - WINDOW) : index])
        yield Instance(f"{name}#{index}", name, card.name, context, 0, {}, (), (utterances[index],))


# --- DailyDialog --------------------------------------------------------------------------------


def _find_daily_files(folder: Path) -> dict[str, Path]:
    dialogues = [place / f"{RELEASE}.zip" for place in (folder, folder / "feta" / "full")]
    dialogues.append(folder / RELEASE / f"{RELEASE}.json")
    places = (folder, folder / "dailydialog", folder / "dialogue" / "dailydialog")
    splits = [path / "split.csv" for path in places]
    split = next((file for file in splits if file.is_file()), None)
    found = next((file for file in dialogues if file.is_file()), None)
    if found is None or split is None:
        absent = " or ".join(map(str, dialogues if found is None else splits))
        raise DataError(
            f"{absent}: The file is missing. Put the file into this folder, or change "
            f"data.releases.{DAILY}."
        )
    marker = folder / "dailydialog" / "synthetic.json"
    own = {"synthetic": marker} if marker.is_file() else {}
    return {"dialogues": found, "split": split, **own}


def _read_daily(files: dict[str, Path]) -> Rows:
    rows: dict[str, list[Instance]] = {split: [] for split in SPLITS}
    dialogues = []
    for one in read_dialogues(files["dialogues"], files["split"]):
        for split in OFFICIAL_SPLITS[one.split]:
            dialogues.append(
                SplitDialogue(one.name, split, " ".join(one.utterances), str(files["split"]))
            )
            rows[split] += _build_utterance_instances(one.utterances, DAILY_NEXT, one.name)
    check_disjoint_splits(
        dialogues,
        "Use the split.csv that follows the official files",
        generated="synthetic" in files,
    )
    return rows


def _write_tiny_daily(folder: Path, seed: int, dialogues: int) -> None:
    """Write the tiny DailyDialog, with its splits in a separate file."""
    write_release(folder, seed, dialogues)
    lines = ["dialogue_id,split"]
    for split, named in (("train", "train"), ("valid", "dev"), ("test", "test")):
        ids = (folder / RELEASE / f"TTiDB_{named}_ids.txt").read_text().split()
        lines += [f"{name},{split}" for name in ids]
    (folder / "dailydialog").mkdir()
    (folder / "dailydialog" / "split.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    manifest = json.dumps({"synthetic": True, "seed": seed, "dialogues": dialogues})
    (folder / "dailydialog" / "synthetic.json").write_text(manifest, encoding="utf-8")


DAILY_REPLIES = _build_dataset(
    DAILY_NEXT,
    _find_daily_files,
    _read_daily,
    TaskSize(76_000, 7_900, 7_600, 80),
    TinyPart(
        write=_write_tiny_daily,
        sizes={DAILY_NEXT.name: TinySize(4.0, 40)},
        shares={few: {"train": 0.7, "dev": 0.1, "test": 0.2} for few in (True, False)},
        version="daily-replies-1",
    ),
)


# --- a user's pairs -----------------------------------------------------------------------------


def _find_pair_files(folder: Path) -> dict[str, Path]:
    files = {split: folder / f"{split}.tsv" for split in SPLITS}
    for file in files.values():
        if not file.is_file():
            raise DataError(
                f"{file}: The file is missing. Add {', '.join(f'{name}.tsv' for name in SPLITS)} "
                f"to the folder of reply pairs (data.releases.{PAIRS}). Each line of these files "
                "must contain a context, a tab and a reply."
            )
    return files


def _read_pairs(files: dict[str, Path]) -> Rows:
    rows = {split: list(_read_reply_pairs(files[split], split)) for split in SPLITS}
    _check_shared_texts(rows, files)
    return rows


def _read_reply_pairs(file: Path, split: str) -> Iterator[Instance]:
    for number, line in read_lines(file):
        parts = line.split("\t")
        if len(parts) != 2 or not all(part.strip() for part in parts):
            raise DataError(
                f"{format_location(file, number)}: The line {line!r:.60} does not consist of a "
                "context, a tab and a reply. Correct or remove the line."
            )
        name = f"{split}-{number}"
        yield Instance(name, name, PAIR.name, parts[0], 0, {}, (), (parts[1],))


def _check_shared_texts(rows: Rows, places: Mapping[str, Path]) -> None:
    """Raise DataError if more than ``SHARED`` of the texts occur in several splits.

    Every pair or text counts as a separate dialogue.
    """
    check_disjoint_splits(
        (
            SplitDialogue(row.id, split, f"{row.context} {row.target[0]}", location)
            for split, location in ((split, str(places[split])) for split in SPLITS)
            for row in rows[split]
        ),
        allowed=SHARED,
    )


REPLY_PAIRS = _build_dataset(
    PAIR, _find_pair_files, _read_pairs, TaskSize(1_000_000, 10_000, 10_000, 60)
)


# --- emotion tags, newsgroups -------------------------------------------------------------------


def _find_tag_files(folder: Path) -> dict[str, Path]:
    for path in (folder / "goemotions", folder):
        files = {name: path / f"{name}.csv" for name in ("dev", "test")}
        if all(file.is_file() for file in files.values()):
            return files
    raise DataError(
        f"{folder}: The files dev.csv and test.csv of {TAGS} are neither in this folder nor in "
        "its subfolder goemotions. Put the files into this folder, or change "
        f"data.releases.{TAGS}."
    )


def _read_tags(files: dict[str, Path]) -> Rows:
    """Read all comments. Of every ten comments, one is in dev and the next one in test."""
    rows: dict[str, list[Instance]] = {split: [] for split in SPLITS}
    said = []
    for name, file in files.items():
        for number, (line, (label, text)) in enumerate(
            read_csv_rows(file, ("label", "content")), 2
        ):
            if not label.isdecimal() or not 1 <= int(label) <= len(TAG_LABELS):
                raise DataError(
                    f"{format_location(file, line)}: The value {label!r} is not a label number. "
                    "Write a number from 1 to 27."
                )
            split = {0: "dev", 1: "test"}.get(number % 10, "train")
            identity, tag = f"{name}-{number}", TAG_LABELS[int(label) - 1]
            rows[split].append(Instance(identity, identity, TAG.name, text, 0, {}, (), (tag,)))
            said.append(SplitDialogue(identity, split, text, format_location(file, line)))
    check_disjoint_splits(said, "Keep one of the two lines", allowed=SHARED)
    return rows


EMOTION_TAGS = _build_dataset(TAG, _find_tag_files, _read_tags, TaskSize(4_752, 594, 594, 25))


def _find_news_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for part in ("train", "test"):
        for label in NEWSGROUP_LABELS:
            path = folder / f"20news-bydate-{part}" / label
            if not path.is_dir():
                raise DataError(
                    f"{path}: The folder is missing. Unpack 20news-bydate into this folder, or "
                    f"change data.releases.{NEWSGROUPS}."
                )
            files |= {f"{part}/{label}/{f.name}": f for f in sorted(path.iterdir())}
    return files


def _read_news(files: dict[str, Path]) -> Rows:
    rows: dict[str, list[Instance]] = {split: [] for split in SPLITS}
    said = []
    for location, (name, file) in enumerate(files.items()):
        part, label, _ = name.split("/")
        text = (
            read_content(file).decode("latin-1").replace("\r\n", "\n").partition("\n\n")[2].strip()
            or "nothing"
        )
        split = "test" if part == "test" else ("dev" if location % 10 == 0 else "train")
        rows[split].append(Instance(name, name, NEWSGROUP.name, text, 0, {}, (), (label,)))
        said.append(SplitDialogue(name, split, text, str(file)))
    check_disjoint_splits(said, "Remove one of the two posts", allowed=SHARED)
    return rows


NEWSGROUP_POSTS = _build_dataset(
    NEWSGROUP, _find_news_files, _read_news, TaskSize(10_182, 1_132, 7_532, 300)
)

ADDITIONAL_DATASETS = (DAILY_REPLIES, REPLY_PAIRS, EMOTION_TAGS, NEWSGROUP_POSTS)
