"""Studies of public corpora that are declared as a user's own dialogues."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

Document = dict[str, Any]

SPLITS = {"train": "train", "dev": "valid", "test": "test"}
"""Split → its name in EmpatheticDialogues."""

EMPATHETIC_LENGTH = 192
"""Maximum tokens per dialogue. No dialogue of EmpatheticDialogues is longer."""
COMMENT_LENGTH = 64
TURN_LENGTH = 128
BOOKING_LENGTH = 256
MULTIWOZ_DOMAINS = ("attraction", "hospital", "hotel", "police", "restaurant", "taxi", "train")


def build_empathetic_study(folder: Path, dialogue: Path, model: Path) -> Document:
    """Return the config of a study on the emotions of dialogues of EmpatheticDialogues."""
    own = write_own_data(dialogue.resolve(), folder.resolve())
    section = {
        "files": {split: str(own / f"{name}.jsonl") for split, name in SPLITS.items()},
        "dialogue": {"turns": "messages", "text": "text", "speaker": "speaker", "id": "id"},
        "tasks": {"emotion": {"kind": "dialogue_classification", "label": "emotion"}},
    }
    return describe_study("Own", section, model, EMPATHETIC_LENGTH)


def write_own_data(dialogue: Path, folder: Path, most: int = 2000) -> Path:
    """Write dialogues of EmpatheticDialogues as JSON lines, the emotion of each as its label.

    Args:
        most: maximum number of training dialogues.
    """
    source, out = dialogue / "empathetic_dialogues", folder / "own"
    if (out / "test.jsonl").exists():
        return out
    out.mkdir(parents=True, exist_ok=True)
    with (source / "split.csv").open(encoding="utf-8") as lines:
        get_split = {row["Dialog_ID"]: row["split"] for row in csv.DictReader(lines)}
    dialogues: dict[str, dict[str, Any]] = {}
    for file in sorted((source / "by_emotion").glob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if row["Type"] == "utterance":
                    name = row["Dialog_ID"]
                    entry = dialogues.setdefault(
                        name, {"id": name, "emotion": file.stem, "messages": []}
                    )
                    entry["messages"].append({"speaker": row["Actor"], "text": row["Text"]})
    # Dialogues are sorted by emotion, so any order that is independent of it works.
    ordered = sorted(dialogues.values(), key=lambda d: hash_order(d["id"]))
    for split, limit in (("train", most), ("valid", 500), ("test", 500)):
        chosen = [d for d in ordered if get_split.get(d["id"]) == split][:limit]
        text = "".join(json.dumps(entry) + "\n" for entry in chosen)
        (out / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return out


def hash_order(name: str) -> str:
    """Return a key that sorts names in a pseudo-random but fixed order."""
    return sha256(name.encode()).hexdigest()


def build_goemotions_study(_: Path, dialogue: Path, model: Path) -> Document:
    """Return the config of a study on the emotions of comments of GoEmotions.

    The corpus's dev split is divided into training and dev instances.
    """
    corpus = dialogue.resolve() / "goemotions"
    section = {
        "files": {"train": str(corpus / "dev.csv"), "test": str(corpus / "test.csv")},
        "shares": {"dev": 0.2},
        "dialogue": {"text": "content"},
        "tasks": {"emotion": {"kind": "dialogue_classification", "label": "label"}},
    }
    return describe_study("GoEmotions", section, model, COMMENT_LENGTH)


def build_sentiment_study(_: Path, dialogue: Path, model: Path) -> Document:
    """Return the config of a study on the sentiments of turns of Topical-Chat."""
    label = {"kind": "utterance_classification", "label": "content[].sentiment"}
    return describe_topical_chat(dialogue, model, {"sentiment": label})


def build_knowledge_study(_: Path, dialogue: Path, model: Path) -> Document:
    """Return the config of a study on the knowledge sources of turns of Topical-Chat.

    A turn has one or more knowledge sources, so this is a multi-label task.
    """
    label = {"kind": "multi_label", "label": "content[].knowledge_source"}
    return describe_topical_chat(dialogue, model, {"knowledge_source": label})


def describe_topical_chat(dialogue: Path, model: Path, tasks: Document) -> Document:
    """Return the config of a study on Topical-Chat.

    The corpus's dev split (frequent entities) is divided into training and dev dialogues.
    """
    corpus = dialogue.resolve() / "topical_chat"
    files = {"train": str(corpus / "valid_freq.json"), "test": str(corpus / "test_freq.json")}
    section = {
        "files": files,
        "shares": {"dev": 0.2},
        "dialogue": {"turns": "content", "text": "message", "speaker": "agent", "id": "id"},
        "tasks": tasks,
    }
    return describe_study("TopicalChat", section, model, TURN_LENGTH)


def build_multiwoz_study(folder: Path, dialogue: Path, model: Path) -> Document:
    """Return the config of a study on the domains of dialogues of MultiWOZ, a multi-label task.

    The corpus's dev split is divided into training and dev dialogues.
    """
    files = write_multiwoz(dialogue.resolve() / "multiwoz20", folder.resolve() / "multiwoz")
    section = {
        "files": files,
        "shares": {"dev": 0.2},
        "dialogue": {"turns": "messages", "text": "text", "speaker": "speaker", "id": "id"},
        "tasks": {"domains": {"kind": "multi_label", "label": "domains"}},
    }
    return describe_study("Bookings", section, model, BOOKING_LENGTH)


def write_multiwoz(corpus: Path, folder: Path) -> dict[str, str]:
    """Write dialogues with the domains of their goals as JSON lines, and return the files.

    Training dialogues with the same text as a test dialogue are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files, seen = {}, set[str]()
    for split, source in (("test", "test"), ("train", "val")):
        with zipfile.ZipFile(corpus / f"{source}.json.zip") as archive:
            dialogues = json.loads(archive.read(f"{source}.json"))
        chosen = {name: each for name, each in dialogues.items() if join_turns(each) not in seen}
        seen |= {join_turns(each) for each in chosen.values()}
        files[split] = str(folder / f"{split}.jsonl")
        lines = (json.dumps(convert_multiwoz(name, each)) + "\n" for name, each in chosen.items())
        Path(files[split]).write_text("".join(lines), encoding="utf-8")
    return files


def join_turns(dialogue: Mapping[str, Any]) -> str:
    """Return the text of a dialogue of MultiWOZ in lower case, with single spaces."""
    return " ".join(" ".join(turn["text"] for turn in dialogue["log"]).lower().split())


def convert_multiwoz(name: str, dialogue: Mapping[str, Any]) -> Document:
    """Return a dialogue of MultiWOZ as an entry of a JSON lines file."""
    return {
        "id": name,
        "domains": [domain for domain in MULTIWOZ_DOMAINS if dialogue["goal"].get(domain)],
        "messages": [
            {"speaker": ("user", "system")[number % 2], "text": turn["text"].strip()}
            for number, turn in enumerate(dialogue["log"])
        ],
    }


def describe_study(name: str, section: Mapping[str, Any], model: Path, max_length: int) -> Document:
    """Return the config of a study whose target is the only task of a declared dataset."""
    [task] = section["tasks"]
    encoder = {
        "name": model.name,
        "family": "encoder",
        "checkpoint": str(model.resolve()),
        "max_length": max_length,
    }
    return {
        "study": "own data",
        "datasets": {name: dict(section)},
        "targets": [f"{name}/{task}"],
        "models": [encoder],
    }


CORPORA: Mapping[str, Callable[[Path, Path, Path], Document]] = {
    "empathetic": build_empathetic_study,
    "goemotions": build_goemotions_study,
    "topical_chat_sentiment": build_sentiment_study,
    "topical_chat_knowledge": build_knowledge_study,
    "multiwoz": build_multiwoz_study,
}
"""Name → function from the benchmark's folder, the corpora's folder and a checkpoint to a study."""
