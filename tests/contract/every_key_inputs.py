"""Input files of the studies that set every key."""

from __future__ import annotations

import json
from pathlib import Path

from tasktransfer.datasets.multiwoz.tiny_world import generate_release as generate_multiwoz
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.designs.empathetic.sources.cards import NEWSGROUP_LABELS
from tasktransfer.tasks.card import SPLITS


def write_inputs(name: str) -> None:
    """Write a study's inputs other than the tiny world into the working directory."""
    Path("vectors.txt").write_text("yes 0.1 0.2\nno 0.3 0.1\nhello 0.2 0.2\n")
    if name == "transfer":
        generate_releases(Path("friends"), dialogues=120)
    if name == "across":
        _write_own()
    if name == "empathetic":
        row = "\n".join(["yes " + " ".join(["0.1"] * 16), "no " + " ".join(["0.2"] * 16)])
        Path("vectors.txt").write_text(row + "\n")
        _write_news()
        _write_human()
        Path("pairs").mkdir()
        for split in SPLITS:
            lines = [f"how is day {n} in {split}\tday {n} is {split} and fine" for n in range(40)]
            Path(f"pairs/{split}.tsv").write_text("\n".join(lines) + "\n")
    if name == "probes":
        generate_multiwoz(Path("world"), dialogues=60)
        Path("judgements.csv").write_text("choice\ntie\na\nb\ntie\n")


def _write_human() -> None:
    ratings = [f"{m},{n},{r},{1 + n},{2 + n},3" for m in "AB" for n in range(3) for r in "xy"]
    head = "model,instance,rater,empathy,relevance,fluency"
    Path("ratings.csv").write_text("\n".join((head, *ratings)) + "\n")
    choices = [f"A,B,{n},{r},{choice}" for n, choice in enumerate(("first", "equal")) for r in "xy"]
    Path("choices.csv").write_text("\n".join(("first,second,instance,rater,choice", *choices)))


def _write_news() -> None:
    for part, count in (("train", 3), ("test", 2)):
        for label in NEWSGROUP_LABELS:
            folder = Path("news", f"20news-bydate-{part}", label)
            folder.mkdir(parents=True)
            for n in range(count):
                text = f"From: a\n\nOn {label}, post {n} of {part}: hello\n"
                (folder / str(n)).write_text(text)


def _write_own() -> None:
    for split, count in (("train", 30), ("dev", 10), ("test", 10)):
        rows = [
            {
                "id": f"{split}-{n}",
                "turns": [{"who": "a", "text": f"{split} {n} hello"}, {"who": "b", "text": "bye"}],
                "mood": ("glad", "sad")[n % 2],
            }
            for n in range(count)
        ]
        Path(f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    turns = [
        {"chat": n // 3, "turn": 2 - n % 3, "who": "ab"[n % 2], "text": f"this is {n}",
         "tone": ("low", "high")[n % 2]}
        for n in range(90)
    ]  # fmt: skip
    turns[7]["text"] = ""
    scenes = [{"scenes": turns[n : n + 3]} for n in range(0, 90, 3)]
    Path("rows.json").write_text(json.dumps(scenes))
