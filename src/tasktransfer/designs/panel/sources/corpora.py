"""Readers of each domain's dialogues in the format of their releases (PoE, Table I)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tasktransfer.datasets import personachat
from tasktransfer.datasets.dailydialog import utterances as daily
from tasktransfer.datasets.disjoint_splits import SplitDialogue, check_disjoint_splits
from tasktransfer.designs.empathetic.sources import dialogues as empathetic
from tasktransfer.errors import DataError, format_location, format_missing_columns
from tasktransfer.files.data_files import (
    decode_utf8,
    read_json_lines,
    read_json_object,
    read_lines,
    read_tar_member,
)
from tasktransfer.files.fields import as_table, collect_texts, get_texts

DAILY_ZIP, DAILY_SPLIT = "TLiDB_DailyDialog.zip", "dailydialog/split.csv"
OFFICIAL = {"dev": "dailydialog/validation/dialogues.txt", "test": "dailydialog/test/dialogues.txt"}
CONVAI2 = "convai2/valid_self_original_no_cands.txt"
CONVAI2_REVISED = "convai2/valid_self_revised_no_cands.txt"
"""The same dialogues with rephrased personas; optional."""
TOPICAL = ("topical_chat/valid_freq.json", "topical_chat/valid_rare.json")
DSTC7 = "evaluation/dstc7/dstc7-task2-human_eval.tgz"

DIVIDED = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""Split of a corpus whose training set is not available. Only response selection reads test."""


@dataclass(frozen=True, slots=True)
class CorpusDialogue:
    """A dialogue of a corpus.

    ``persona`` is the persona of the answering speaker, and ``revised`` is its rephrasing; empty if
    there is none. ``location`` is the dialogue's file, with a line if known, for messages.
    """

    name: str
    split: str
    utterances: tuple[str, ...]
    persona: str = ""
    revised: str = ""
    location: str = ""


Files = dict[str, Path]
"""Name of a file in this module → its path in a release."""

Read = Callable[[Files], Iterable[CorpusDialogue]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus and the function that reads it.

    ``files`` are required; a name that ends in a slash stands for every file below it. ``more`` are
    optional files.
    """

    files: tuple[str, ...]
    read: Read
    more: tuple[str, ...] = ()


# --- DailyDialog --------------------------------------------------------------------------------


def read_daily_dialog(files: Files) -> Iterator[CorpusDialogue]:
    """Yield DailyDialog's training dialogues (``split.csv``) and official validation dialogues.

    Raises:
        DataError: a training dialogue is also an official validation or test dialogue, as in
            FETA's splits.
    """
    held_out = {split: list(_read_official(files[name], split)) for split, name in OFFICIAL.items()}
    location = str(files[DAILY_SPLIT])
    train = [
        CorpusDialogue(f"daily-{dialogue.name}", "train", dialogue.utterances, location=location)
        for dialogue in daily.read_dialogues(files[DAILY_ZIP], files[DAILY_SPLIT])
        if dialogue.split == "train"
    ]
    official = [
        replace(dialogue, split="dev or test") for some in held_out.values() for dialogue in some
    ]
    check_disjoint_splits(
        convert_for_split_check([*official, *train]),
        "New random splits, such as those of FETA, put dialogues of rated sets into training. Use "
        "the split.csv that follows the official files",
        least_words=1,
    )
    yield from (*train, *held_out["dev"])


def _read_official(file: Path, split: str) -> Iterator[CorpusDialogue]:
    for line, text in read_lines(file):
        turns = tuple(part.strip() for part in text.split("__eou__") if part.strip())
        named = f"daily-{'valid' if split == 'dev' else split}-{line}"
        yield CorpusDialogue(named, split, turns, location=format_location(file, line))


def convert_for_split_check(dialogues: Iterable[CorpusDialogue]) -> Iterator[SplitDialogue]:
    """Yield dialogues in the form that ``check_disjoint_splits`` reads."""
    return (
        SplitDialogue(
            dialogue.name, dialogue.split, " ".join(dialogue.utterances), dialogue.location
        )
        for dialogue in dialogues
    )


# --- other corpora ------------------------------------------------------------------------------


def read_empathetic_dialogues(files: Files) -> Iterator[CorpusDialogue]:
    """Yield the train and dev dialogues of EmpatheticDialogues. Its test split is a rated set."""
    path = files["empathetic_dialogues/split.csv"].parent
    for dialogue in empathetic.read_dialogues(path):
        if dialogue.split != "test":
            turns = tuple(text.replace("_comma_", ",").strip() for text in dialogue.utterances)
            yield CorpusDialogue(f"ed-{dialogue.name}", dialogue.split, turns, location=str(path))


def read_convai2(files: Files) -> Iterator[CorpusDialogue]:
    """Yield ConvAI2's validation dialogues, divided into splits, with the replier's persona.

    Raises:
        DataError: a line does not have two utterances, or the file of revised personas has other
            dialogues.
    """
    dialogues = _read_convai2_file(files[CONVAI2])
    if CONVAI2_REVISED in files:
        revised = _read_convai2_file(files[CONVAI2_REVISED])
        if [dialogue.utterances for dialogue in revised] != [
            dialogue.utterances for dialogue in dialogues
        ]:
            raise DataError(
                f"{files[CONVAI2_REVISED]}: The dialogues differ from the dialogues in the file "
                f"{files[CONVAI2]}. Copy both files from one release, or remove this file."
            )
        dialogues = [
            replace(dialogue, revised=other.persona)
            for dialogue, other in zip(dialogues, revised, strict=True)
        ]
    yield from split_dialogues(dialogues)


def _read_convai2_file(file: Path) -> list[CorpusDialogue]:
    dialogues = []
    for number, one in enumerate(personachat.read_dialogues(file), start=1):
        turns = tuple(text.strip() for text in one.turns)
        persona = " ".join(text.strip() for text in one.persona)
        dialogues.append(
            CorpusDialogue(f"convai2-{number}", "", turns, persona, location=str(file))
        )
    return dialogues


def read_topical_chat(files: Files) -> Iterator[CorpusDialogue]:
    """Yield the dialogues of Topical-Chat's two validation sets, divided into splits."""
    dialogues = []
    for name in TOPICAL:
        chats, location = read_json_object(files[name])
        for key, chat in chats.items():
            here = location.locate_row(f"dialogue {key}")
            turns = map(str.strip, collect_texts(as_table(chat, here), "content", "message", here))
            named = f"{Path(name).stem}-{key}"
            spoken = tuple(text for text in turns if text)
            dialogues.append(CorpusDialogue(named, "", spoken, location=str(files[name])))
    yield from split_dialogues([dialogue for dialogue in dialogues if len(dialogue.utterances) > 1])


def read_reddit(files: Files) -> Iterator[CorpusDialogue]:
    """Yield (paragraph, reply) pairs from Reddit as a substitute for conversations.

    Splits are divided by paragraph. Half of the paragraphs are used here, and the other half in the
    rated set.
    """
    file = files[DSTC7]
    facts = read_dstc7_contexts(file)
    mine = {text: _choose_split(text) for text in {*facts.values()} if is_for_training(text)}
    for instance, *fields in read_dstc7_lines(file, "gold_responses")[1:]:
        text = facts.get(instance, "")
        replies = [reply.strip() for reply in fields if reply.strip()]
        for number, reply in enumerate(replies if text in mine else ()):
            name = f"reddit-{instance}-{number}"
            yield CorpusDialogue(name, mine[text], (text, reply), location=str(file))


def is_for_training(paragraph: str) -> bool:
    """Return whether a Reddit paragraph is used for training instead of evaluation.

    The rated set has the other paragraphs then.
    """
    return random.Random(f"reddit {paragraph.strip()}").random() < 0.5


def _choose_split(name: str) -> str:
    drawn = random.Random(f"divided {name}").random()
    for split, share in DIVIDED.items():
        if drawn < share:
            return split
        drawn -= share
    return "train"


def split_dialogues(dialogues: Sequence[CorpusDialogue]) -> list[CorpusDialogue]:
    """Split dialogues after a fixed shuffle, in the proportions of ``DIVIDED``."""
    order = sorted(dialogues, key=lambda dialogue: dialogue.name)
    random.Random("divided").shuffle(order)
    ends, total = {}, 0.0
    for split, share in DIVIDED.items():
        total += share
        ends[split] = round(total * len(order))
    return [
        replace(dialogue, split=next(split for split, end in ends.items() if index < end))
        for index, dialogue in enumerate(order)
    ]


# --- a user's own -------------------------------------------------------------------------------


def make_folder_corpus(folder: str) -> Corpus:
    """Return a corpus from a folder with ``train.jsonl`` and ``dev.jsonl``.

    Response selection also needs ``test.jsonl``. Each line is an object with ``utterances`` and
    optionally ``id`` and ``persona``. The persona is that of the speaker of the second, fourth and
    so on utterance.
    """
    names = {split: f"{folder}/{split}.jsonl" for split in ("train", "dev", "test")}

    def read(files: Files) -> Iterator[CorpusDialogue]:
        for split, file in names.items():
            for line, row, location in read_json_lines(files[file]) if file in files else ():
                turns = tuple(text.strip() for text in get_texts(row, "utterances", location))
                if len(turns) < 2 or not all(turns):
                    problem = f"The dialogue {turns!r:.80} does not have two texts or more"
                    raise location.at("utterances").error(problem, "Add the missing texts")
                own_id = row.get("id")
                name = f"{split}-{line}" if own_id is None else str(own_id)
                persona = str(row.get("persona") or "").strip()
                yield CorpusDialogue(
                    f"{folder}-{name}", split, turns, persona, location=location.place
                )

    return Corpus((names["train"], names["dev"]), read, (names["test"],))


CORPORA: dict[str, Corpus] = {
    "DailyDialog": Corpus((DAILY_ZIP, DAILY_SPLIT, *OFFICIAL.values()), read_daily_dialog),
    "Empathetic": Corpus(
        ("empathetic_dialogues/split.csv", "empathetic_dialogues/by_emotion/"),
        read_empathetic_dialogues,
    ),
    "ConvAI2": Corpus((CONVAI2,), read_convai2, (CONVAI2_REVISED,)),
    "TopicalChat": Corpus(TOPICAL, read_topical_chat),
    "Reddit": Corpus((DSTC7,), read_reddit),
    "Own": make_folder_corpus("own"),
}


# --- DSTC7's human evaluation (track 2): tab-separated tables in an archive ---


def read_dstc7_contexts(file: Path) -> dict[str, str]:
    """Map each instance to its grounding paragraph.

    Raises:
        DataError: the archive or the table cannot be read, or a column is missing.
    """
    rows = read_dstc7_table(file, "context", ("InstanceID", "Context"))
    return {row[0]: row[1] for row in rows}


def read_dstc7_table(file: Path, name: str, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield given columns of each row, with "" for missing cells.

    Raises:
        DataError: the archive or the table cannot be read, or a column is missing.
    """
    head, *rows = read_dstc7_lines(file, name)
    if missing := [column for column in columns if column not in head]:
        raise DataError(
            f"{format_location(f'{file} ({name})', 1)}: {format_missing_columns(missing)} The "
            f"header has the columns {', '.join(head)!r:.80}. Copy the archive again."
        )
    places = [head.index(column) for column in columns]
    return (tuple(row[at] if at < len(row) else "" for at in places) for row in rows)


def read_dstc7_lines(file: Path, name: str) -> list[list[str]]:
    """Return the rows of a table, starting with the header.

    Raises:
        DataError: the archive or the table cannot be read, or the table is empty.
    """
    text = decode_utf8(read_tar_member(file, f"dstc7-task2-{name}.tsv"), file)
    lines = [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]
    if not lines:
        raise DataError(f"{file}: The table {name} is empty. Copy the archive again.")
    return lines
