"""Rows of Tables I and II, and of the table of training costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tasktransfer.designs.panel import published as paper
from tasktransfer.designs.panel.names import get_paper_name
from tasktransfer.designs.panel.printed import OF, PrintedRow, list_printed_rows
from tasktransfer.designs.panel.sources.cards import RATED, TINY_RATED
from tasktransfer.present.columns import make_published_column
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.results.frames import Frames

EVERY_SET = {**RATED, **TINY_RATED}
CORPUS_NAMES = {"Empathetic": "EmpatheticDialogue", "Reddit": "REDDIT"}
SPLITS = {"train": "training", "dev": "validation"}
MEASURES = {
    "instances": "items",
    "contexts": "contexts",
    "annotators": "annotators",
    "utterances": "utterances",
    "context_words": "context_words",
    "response_words": "response_words",
}
"""Measure of Table II → column of the table ``ceilings``."""


def compute_table1(frames: Frames) -> pd.DataFrame:
    """Return corpus sizes before and after the leak filter, and numbers of pairs."""
    leaks, pairs, corpora = frames["leaks"], frames["pairs"], frames["corpora"]
    made = pairs[(pairs["how"] == "") & ~pairs["data"].str.endswith("twin")]
    rows: list[PrintedRow] = []
    for row in list_printed_rows(leaks[leaks["split"] != ""].drop_duplicates(["corpus", "split"])):
        if not row["dialogues"]:
            continue
        own = made[(made["domain"] == row["corpus"]) & (made["split"] == row["split"])]
        found = corpora[(corpora["corpus"] == row["corpus"]) & (corpora["split"] == row["split"])]
        sizes = {name: found[name].max() for name in ("utterances", "words") if len(found)}
        counts = {
            "dialogues": row["dialogues"],
            **sizes,
            "dialogues without leaks": row["kept"],
            "training pairs": own["pairs"].max() if len(own) else None,
        }
        named = {"corpus": row["corpus"], "split": row["split"]}
        rows += [{**named, "statistic": name, "value": n} for name, n in counts.items()]
    frame = pd.DataFrame(rows, columns=["corpus", "split", "statistic", "value"])
    values = paper.read_table("table1").melt(["corpus", "statistic"], var_name="split")
    theirs = PublishedValues(
        values,
        "value",
        {
            "corpus": lambda row: CORPUS_NAMES.get(row["corpus"], row["corpus"]),
            "statistic": lambda row: row["statistic"],
            "split": lambda row: SPLITS.get(row["split"]),
        },
    )
    frame["value"] = frame["value"].astype(float)
    return add_published_columns(frame.dropna(subset="value"), theirs, frames.metadata)


def describe_table1(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table I."""
    counted = "The numbers of utterances and words are for all dialogues, before the leak filter."
    there = frame["statistic"].isin(["utterances", "words"]).any()
    return [
        *([counted] if there else []),
        *list_published_notes(frame, frames.metadata, f"Table I {OF}"),
    ]


def compute_table2(frames: Frames) -> pd.DataFrame:
    """Return the measures of each rated set."""
    rows = [
        {
            "set": row["set"],
            "criterion": EVERY_SET[row["set"]].criterion,
            "measure": measure,
            "value": float(row[column]),
        }
        for row in list_printed_rows(frames["ceilings"])
        for measure, column in MEASURES.items()
    ]
    printed = paper.read_table("table2")
    measures = [name for name in MEASURES if name in printed]
    theirs = PublishedValues(
        printed.melt("dataset", measures, "measure"),
        "value",
        {"dataset": lambda row: get_paper_name(row["set"]), "measure": lambda row: row["measure"]},
    )
    return add_published_columns(pd.DataFrame(rows), theirs, frames.metadata)


def format_published_measure(row: Mapping[str, Any]) -> str:
    """Format a published value of Table II: instances as a count, other values as means."""
    return make_published_column(",.0f" if row["measure"] == "instances" else ".1f").show(row)


def describe_table2(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table II."""
    words = "Words are separated by spaces and exclude speakers' names."
    return [words, *list_published_notes(frame, frames.metadata, f"Table II {OF}")]


def summarise_trainings(frames: Frames) -> pd.DataFrame:
    """Return mean sizes, times and scores for each kind of training."""
    grouped = frames["trainings"].groupby("kind", sort=False)
    return grouped.agg(
        trainings=("label", "size"),
        hours=("hours", "mean"),
        all_hours=("hours", "sum"),
        parameters=("parameters", "max"),
        trained=("trained", "max"),
        rounds=("rounds", "mean"),
        dev_score=("dev_score", "mean"),
        test_accuracy=("test_accuracy", "mean"),
        test_constant=("test_constant", "mean"),
        test_balanced=("test_balanced", "mean"),
        hardware=("hardware", "first"),
    ).reset_index()


def read_published_resources(frames: Frames) -> pd.DataFrame:
    """Return the model sizes and training times that the paper reports."""
    return paper.read_table("resources")
