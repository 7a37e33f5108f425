"""Functions with which the designs read each file of ``small_corpora``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import small_corpora as sound
from tasktransfer.datasets.dataset import Dataset
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.personachat import PERSONACHAT
from tasktransfer.designs.empathetic.human import read_choices, read_ratings
from tasktransfer.designs.empathetic.sources.additional_datasets import (
    DAILY_REPLIES,
    EMOTION_TAGS,
    REPLY_PAIRS,
)
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES
from tasktransfer.designs.probes.figures import read_judgements
from tasktransfer.designs.probes.word_vectors import read_vectors
from tasktransfer.tasks.card import SPLITS


def read(dataset: Dataset, folder: Path, *tasks: str) -> list[Any]:
    """Read all instances of some tasks, or of all tasks, like ``data prepare``."""
    release = dataset.reader.open(folder, False)
    assert {*tasks} <= {*release.tasks}
    return [
        one
        for task in tasks or release.tasks
        for split in SPLITS
        for one in release.instances(task, split)
    ]


def of(dataset: Dataset, *tasks: str) -> Callable[[Path], Any]:
    return lambda folder: read(dataset, folder, *tasks)


def panel(task: str) -> Callable[[Path], Any]:
    return of(PANEL_DIALOGUES, task)


USR, GRADE = "evaluation/usr/persona_usr.json", "evaluation/grade/human_judgement.json"
FED, CONTURE = "evaluation/fed/fed_data.json", "evaluation/conture/conture.json"
GUPTA = "evaluation/gupta/mturk_rating_processed_output.csv"
ZHAO = "evaluation/zhao/persona-zhao.csv"
PLUS, FREQ = "dailydialog_pp/data_positives.jsonl", "topical_chat/valid_freq.json"
EMOTION, ED_SPLIT = "empathetic_dialogues/by_emotion/afraid.csv", "empathetic_dialogues/split.csv"
WOZ, OWN = "multiwoz20/val.json", "own/train.jsonl"

READS: dict[str, Callable[[Path], Any]] = {
    USR: panel("Persona_USR"),
    GRADE: panel("ConvAI2_GRADE"),
    FED: panel("FED_Turn"),
    CONTURE: panel("ConTurE"),
    GUPTA: panel("DailyDialog_Gupta"),
    ZHAO: panel("Persona_Zhao"),
    sound.DSTC7: panel("Reddit_DSTC7"),
    PLUS: panel("labeller"),
    FREQ: panel("TopicalChat"),
    OWN: panel("Own"),
    sound.DAILY_ZIP: of(DAILY_REPLIES),
    sound.SPLIT_CSV: panel("DailyDialog"),
    sound.VALID: of(PERSONACHAT),
    EMOTION: of(EMPATHETIC_DIALOGUES),
    ED_SPLIT: of(EMPATHETIC_DIALOGUES),
    WOZ: of(MULTIWOZ),
    "goemotions/dev.csv": of(EMOTION_TAGS),
    "train.tsv": of(REPLY_PAIRS),
    "own_words/vectors.txt": lambda folder: read_vectors(folder / "own_words/vectors.txt"),
    "judgements/ratings.csv": lambda folder: read_ratings(folder / "judgements/ratings.csv"),
    "judgements/choices.csv": lambda folder: read_choices(folder / "judgements/choices.csv"),
    "judgements/ties.csv": lambda folder: read_judgements(folder / "judgements/ties.csv"),
}
"""File → function with which its design reads it."""
