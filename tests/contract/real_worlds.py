"""Releases marked as real, and studies of them, for comparisons with published numbers.

Their dialogues are nevertheless artificial.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from small_corpora import FILES, TWELVE, VALID, as_json, as_zip, said
from tasktransfer.datasets.multiwoz import SYNTHETIC
from tasktransfer.datasets.multiwoz import tiny_world as tiny_multiwoz
from tasktransfer.datasets.tiny_world import MAKER, generate_releases

WORLD, MODEL = Path("world"), Path("model")
BERT = {
    "name": "BERT",
    "family": "encoder",
    "checkpoint": f"./{MODEL}",
    "max_length": 64,
    "max_unknown_words": 1.0,
}
RELEASE = {"release": str(WORLD)}
TOPICAL = ("topical_chat/valid_freq.json", "topical_chat/valid_rare.json")
CONTEXTS = 6
"""Number of contexts per rated set."""

REAL: dict[str, dict[str, Any]] = {
    "transfer-real": {
        "data": RELEASE,
        "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
        "models": [BERT],
        "seeds": 1,
        **dict.fromkeys(("controls", "references", "selectors", "prompted")),
    },
    "panel-real": {
        "data": {**RELEASE, "few_sample": False},
        "models": [BERT],
        "domains": ["ConvAI2", "TopicalChat"],
        "rated_sets": ["Persona_USR", "FED_Turn", "ConTurE"],
        "few_shot": None,
        "selection": None,
        "training": {"learning_rate": 1.0e-3, "batch_size": 16},
    },
    "probes-real": {"data": {**RELEASE, "few_sample": False}},
}
"""Design → differences from the config of its study on the tiny world."""


def make_world(design: str) -> None:
    """Write the release, and a model with the paper's model name, into the working directory."""
    from small_models import make_model  # noqa: PLC0415  # imports torch

    make_model("encoder", [TWELVE, "speaker dialogue turn yes no"] * 5, MODEL)
    {"transfer": _feta, "panel": _rated, "probes": _multiwoz}[design]()


def _feta() -> None:
    generate_releases(WORLD, dialogues=120)
    (WORLD / MAKER.file).unlink()
    for file in WORLD.rglob("TLiDB_*.json"):
        release = json.loads(file.read_text())
        release["metadata"]["synthetic"] = False
        file.write_text(json.dumps(release))


def _multiwoz() -> None:
    """Write the tiny world's dialogues, each once, since splits of real releases are disjoint."""
    tiny_multiwoz.generate_release(WORLD, dialogues=60)
    for file in WORLD.rglob(SYNTHETIC):
        file.unlink()
    heard: set[tuple[str, ...]] = set()
    for place in sorted(WORLD.rglob("*.json.zip")):
        with zipfile.ZipFile(place) as archive:
            dialogues = json.loads(archive.read(place.stem))
        once = {}
        for name, dialogue in dialogues.items():
            texts = tuple(turn["text"] for turn in dialogue["log"])
            if texts not in heard:
                once[name] = dialogue
            heard.add(texts)
        place.write_bytes(as_zip(place.stem, as_json(once)))


def _rated() -> None:
    """Write three rated sets with different ratings, and two domains."""
    usr = [
        {
            "context": f"{said(n, 0)}\n{said(n, 1)}\n",
            "responses": [
                {
                    "response": said(n, 2 + r),
                    "model": f"m{r}",
                    "Maintains Context": [1 + (n + r) % 3],
                }
                for r, rated in enumerate((1 + n % 3, 1 + (n + 1) % 3))
            ],
        }
        for n in range(CONTEXTS)
    ]
    fed = [
        {
            "context": f"User: {said(n, 0)}\nSystem: {said(n, 1)}",
            "response": f"System: {said(n, 2)}",
            "system": "m",
            "annotations": {"Relevant": [n % 3]},
        }
        for n in range(CONTEXTS)
    ]
    conture = [
        {
            "dialog_id": n,
            "turns": [
                {"user": said(n, t), "chatbot": said(n, t + 5), "overall impression": (t + n) % 3}
                for t in range(3)
            ],
        }
        for n in range(CONTEXTS)
    ]
    files = {
        **{name: FILES[name] for name in (VALID, *TOPICAL)},
        "evaluation/usr/persona_usr.json": as_json(usr),
        "evaluation/fed/fed_data.json": as_json(fed),
        "evaluation/conture/conture.json": as_json(conture),
    }
    for name, content in files.items():
        (WORLD / name).parent.mkdir(parents=True, exist_ok=True)
        (WORLD / name).write_bytes(content)
