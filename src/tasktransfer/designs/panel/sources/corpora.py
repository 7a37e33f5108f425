"""Dialogues by domain, as their releases have them (PoE, Table I, and the files at hand)."""

from __future__ import annotations

import csv
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tasktransfer.designs.empathetic.sources import dialogues as empathetic
from tasktransfer.designs.panel.sources.texts import plain
from tasktransfer.errors import DataError
from tasktransfer.files.json_lines import json_lines

DAILY_ZIP, DAILY_SPLIT = "TLiDB_DailyDialog.zip", "dailydialog/split.csv"
OFFICIAL = {"dev": "dailydialog/validation/dialogues.txt", "test": "dailydialog/test/dialogues.txt"}
CONVAI2 = "convai2/valid_self_original_no_cands.txt"
CONVAI2_REVISED = "convai2/valid_self_revised_no_cands.txt"
"""The same dialogues with personas in other words; not at hand, and read where it is there."""
TOPICAL = ("topical_chat/valid_freq.json", "topical_chat/valid_rare.json")
DSTC7 = "evaluation/dstc7/dstc7-task2-human_eval.tgz"

DIVIDED = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""How a corpus is divided whose training set is not at hand. Test is read by response selection
alone."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """``persona``: what the one who answers was told to be, ``revised``: the same in other words;
    empty: nothing."""

    name: str
    split: str
    utterances: tuple[str, ...]
    persona: str = ""
    revised: str = ""


Files = dict[str, Path]
"""Name, as in this module, → the file of a release."""

Read = Callable[[Files], Iterable[Dialogue]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """``files``: what has to be there; of a name that ends in a slash, every file below it.
    ``more``: what may be."""

    files: tuple[str, ...]
    read: Read
    more: tuple[str, ...] = ()


# --- DailyDialog --------------------------------------------------------------------------------


def daily_dialog(files: Files) -> Iterator[Dialogue]:
    """Training: what ``split.csv`` says equals no official validation or test dialogue;
    validation: the official one.

    Raises:
        DataError: a training dialogue equals an official validation or test dialogue, as in the
            splits that FETA drew anew.
    """
    held_out = {
        split: [_daily_line(line) for line in files[name].read_text("utf-8").splitlines()]
        for split, name in OFFICIAL.items()
    }
    place_of = {
        plain(" ".join(said)): f"{OFFICIAL[split]}, line {line}"
        for split, dialogues in held_out.items()
        for line, said in enumerate(dialogues, start=1)
    }
    split_of = dict(_csv_rows(files[DAILY_SPLIT], ["dialogue_id", "split"]))
    for name, said in _feta_dialogues(files[DAILY_ZIP]):
        if name not in split_of:
            raise DataError(f"{files[DAILY_SPLIT]}: no split for {name}; add a line")
        if split_of[name] != "train":
            continue
        official = place_of.get(plain(" ".join(said)))
        if official:
            raise DataError(
                f"{files[DAILY_SPLIT]}: {name} is for training, and equals {official}: splits that "
                "were drawn anew, such as FETA's, mix what rated sets are made of into training; "
                "take the split.csv that goes by the official files"
            )
        yield Dialogue(f"daily-{name}", "train", said)
    for line, said in enumerate(held_out["dev"], start=1):
        yield Dialogue(f"daily-valid-{line}", "dev", said)


def _daily_line(line: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in line.split("__eou__") if text.strip())


def _feta_dialogues(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        with zipfile.ZipFile(file) as archive:
            (name,) = [n for n in archive.namelist() if n.endswith("TLiDB_DailyDialog.json")]
            content = json.loads(archive.read(name))["data"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: no DailyDialog ({error}); copy it again") from error
    for dialogue in content:
        yield (
            dialogue["dialogue_id"],
            tuple(t["utterance"].strip() for t in dialogue["dialogue"] if t["utterance"].strip()),
        )


# --- the others ---------------------------------------------------------------------------------


def empathetic_dialogues(files: Files) -> Iterator[Dialogue]:
    """As the empathetic study reads them; test is left out, a rated set is made of it."""
    place = files["empathetic_dialogues/split.csv"].parent
    for dialogue in empathetic.read_dialogues(place):
        if dialogue.split != "test":
            said = tuple(text.replace("_comma_", ",").strip() for text in dialogue.utterances)
            yield Dialogue(f"ed-{dialogue.name}", dialogue.split, said)


def convai2(files: Files) -> Iterator[Dialogue]:
    """The validation set's dialogues, divided; each with the persona of the one who answers.

    Raises:
        DataError: a line has no two utterances, or the file of revised personas has other
            dialogues.
    """
    dialogues = _convai2(files[CONVAI2])
    if CONVAI2_REVISED in files:
        revised = _convai2(files[CONVAI2_REVISED])
        if [one.utterances for one in revised] != [one.utterances for one in dialogues]:
            raise DataError(
                f"{files[CONVAI2_REVISED]}: its dialogues are not those of {files[CONVAI2]}; copy "
                "both from one release, or remove it"
            )
        dialogues = [
            replace(one, revised=other.persona)
            for one, other in zip(dialogues, revised, strict=True)
        ]
    yield from divided(dialogues)


def _convai2(file: Path) -> list[Dialogue]:
    dialogues: list[Dialogue] = []
    persona: list[str] = []
    said: list[str] = []

    def end() -> None:
        if said:
            name = f"convai2-{len(dialogues) + 1}"
            dialogues.append(Dialogue(name, "", tuple(said), " ".join(persona)))

    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        place, _, text = line.partition(" ")
        if place == "1":
            end()
            persona, said = [], []
        if text.startswith("your persona:"):
            persona.append(text.removeprefix("your persona:").strip())
            continue
        turns = [part.strip() for part in text.split("\t")]
        if len(turns) < 2 or not all(turns[:2]):
            raise DataError(
                f"{file}, line {number}: found {text[:60]!r}, expected two utterances with a tab "
                "between"
            )
        said += turns[:2]
    end()
    return dialogues


def topical_chat(files: Files) -> Iterator[Dialogue]:
    """Both validation sets, divided."""
    dialogues = []
    for name in TOPICAL:
        for key, chat in json.loads(files[name].read_bytes()).items():
            said = tuple(m["message"].strip() for m in chat["content"] if m["message"].strip())
            dialogues.append(Dialogue(f"{Path(name).stem}-{key}", "", said))
    yield from divided([one for one in dialogues if len(one.utterances) > 1])


def reddit(files: Files) -> Iterator[Dialogue]:
    """A stand-in for conversations: (paragraph, reply), by paragraph. Half of the paragraphs; the
    rated set has the others."""
    facts = {row["InstanceID"]: row["Context"] for row in dstc7_table(files[DSTC7], "context")}
    paragraphs = sorted({*facts.values()})
    mine = {text for text in paragraphs if for_training(text)}
    pairs = []
    for row in dstc7_lines(files[DSTC7], "gold_responses")[1:]:
        text = facts.get(row[0], "")
        replies = [reply.strip() for reply in row[1:] if reply.strip()]
        pairs += [
            Dialogue(f"reddit-{row[0]}-{n}", "", (text, reply))
            for n, reply in enumerate(replies)
            if text in mine
        ]
    split_of = {text: _split_of(text) for text in mine}
    yield from (replace(one, split=split_of[one.utterances[0]]) for one in pairs)


def for_training(paragraph: str) -> bool:
    """Whether a paragraph is for training where Reddit is a domain; the rated set has the others
    then."""
    return random.Random(f"reddit {paragraph.strip()}").random() < 0.5


def _split_of(name: str) -> str:
    drawn = random.Random(f"divided {name}").random()
    for split, share in DIVIDED.items():
        if drawn < share:
            return split
        drawn -= share
    return "train"


def divided(dialogues: Sequence[Dialogue]) -> list[Dialogue]:
    """Dialogues in splits by a fixed shuffle, ``DIVIDED`` of them each."""
    order = sorted(dialogues, key=lambda one: one.name)
    random.Random("divided").shuffle(order)
    ends, total = {}, 0.0
    for split, share in DIVIDED.items():
        total += share
        ends[split] = round(total * len(order))
    return [
        replace(one, split=next(split for split, end in ends.items() if place < end))
        for place, one in enumerate(order)
    ]


# --- DSTC7 --------------------------------------------------------------------------------------


def dstc7_table(file: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table of DSTC7's archive, by the names of its columns."""
    head, *rows = dstc7_lines(file, name)
    return [dict(zip(head, row, strict=False)) for row in rows]


def dstc7_lines(file: Path, name: str) -> list[list[str]]:
    """The same as lists, with the head."""
    wanted = f"dstc7-task2-{name}.tsv"
    try:
        with tarfile.open(file) as archive:
            (member,) = [m for m in archive.getmembers() if m.name.endswith(wanted)]
            content = archive.extractfile(member)
            assert content is not None
            text = io.TextIOWrapper(content, encoding="utf-8-sig", newline="").read()
    except (OSError, ValueError, tarfile.TarError) as error:
        raise DataError(f"{file}: no {wanted} ({error}); copy the archive again") from error
    return [line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip()]


# --- a user's own -------------------------------------------------------------------------------


def of_folder(folder: str) -> Corpus:
    """A folder with ``train.jsonl`` and ``dev.jsonl``, and ``test.jsonl`` for response selection:
    an object a line, with ``utterances`` and, if there are such, ``id`` and ``persona``, that of
    who says the second, fourth and so on."""
    names = {split: f"{folder}/{split}.jsonl" for split in ("train", "dev", "test")}

    def read(files: Files) -> Iterator[Dialogue]:
        for split, name in names.items():
            for line, row in json_lines(files[name]) if name in files else ():
                said = row.get("utterances")
                where = f"{files[name]}, line {line}"
                if not isinstance(said, list) or len(said) < 2:
                    raise DataError(f"{where}: utterances: found {said!r}, expected two or more")
                for place, text in enumerate(said):
                    if not isinstance(text, str) or not text.strip():
                        raise DataError(f"{where}: utterance {place + 1} is {text!r}; give text")
                name_of = str(row.get("id", f"{split}-{line}"))
                persona = str(row.get("persona", "")).strip()
                utterances = tuple(text.strip() for text in said)
                yield Dialogue(f"{folder}-{name_of}", split, utterances, persona)

    return Corpus((names["train"], names["dev"]), read, (names["test"],))


def _csv_rows(file: Path, columns: list[str]) -> list[tuple[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        head, *rows = csv.reader(lines)
    if head != columns:
        raise DataError(f"{file}, line 1: columns {head}, expected {columns}; mend the file")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(columns):
            raise DataError(f"{file}, line {number}: found {row}, expected {columns}")
    return [(row[0], row[1]) for row in rows]


CORPORA: dict[str, Corpus] = {
    "DailyDialog": Corpus((DAILY_ZIP, DAILY_SPLIT, *OFFICIAL.values()), daily_dialog),
    "Empathetic": Corpus(
        ("empathetic_dialogues/split.csv", "empathetic_dialogues/by_emotion/"),
        empathetic_dialogues,
    ),
    "ConvAI2": Corpus((CONVAI2,), convai2, (CONVAI2_REVISED,)),
    "TopicalChat": Corpus(TOPICAL, topical_chat),
    "Reddit": Corpus((DSTC7,), reddit),
    "Own": of_folder("own"),
}
