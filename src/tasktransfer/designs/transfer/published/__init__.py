"""Numbers published in the FETA paper, as data frames, and their matching with a study's rows.

Albalak et al., FETA: A Benchmark for Few-Sample Task Transfer in Open-Domain Dialogue (EMNLP
2022). Each CSV in this folder names its table and lists the values that could not be copied
literally. Tasks have their full names, and datasets and algorithms are named as in a study. Models
are "BERT" (bert-base-uncased), "GPT-2" (gpt2) and "T5" (t5-base).

A row of a study matches if its dataset, model and algorithm are the paper's. Hyperparameters do not
matter: a study is compared as it is, and its config documents the deviations. If the data was
subsampled, the setting differs, and no difference is reported (``present.published``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import permutations
from typing import Any, Literal

import pandas as pd

from tasktransfer.present.html import to_records
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata

# --- published numbers ---


MODELS = ("BERT", "GPT-2", "T5")
"""The paper's models, as named in its tables."""

ROUNDING = 0.02
"""Tolerance in points for comparing two differences of published numbers. Each of the four numbers
was rounded to two decimals, so each may be off by 0.005."""

CONSISTENCY = {
    "dataset": "dataset",
    "model": "the paper's model",
    "algorithm": "transfer algorithm",
    "average_baseline": "average score - average delta, rounded to two decimals like both",
    "top1_baseline": "top-1 score - top-1 delta",
    "spread": "largest - smallest of the six baselines of the dataset and model, points",
    "consistent": "spread is within ROUNDING",
}
"""Meanings of the columns of ``check_consistency``."""

_GROUP = ["dataset", "model"]


def read_table1() -> pd.DataFrame:
    """Read the paper's Table 1, tasks and samples, with one row per task.

    Columns: dataset, task, short; task_type; metrics (those whose mean is the score, joined by
    ``;``); original_samples (of the original data set); train, dev (few-sample), test: samples.
    """
    return _read_csv("table1")


def read_table2() -> pd.DataFrame:
    """Read the paper's Table 2, aggregate single-source transfer by dataset, model and algorithm.

    Columns: dataset, model, algorithm; average_score, top1_score (0-100); average_sigma (of
    average_score; the paper does not define it); average_delta, top1_delta (points); bottom1_score
    (section 6.1; NaN except for T5 on DailyDialog).
    """
    return _read_csv("table2")


def read_table3() -> pd.DataFrame:
    """Read the paper's Table 3, the gain of three sources together over each alone.

    Columns: dataset, target, short, model, algorithm; gain: delta of transfer from the top-3
    sources together, minus the mean delta of the three alone, points.
    """
    return _read_csv("table3")


def read_table6() -> pd.DataFrame:
    """Read the paper's Table 6, the deltas whose differences are Table 3.

    Columns: dataset, target, short, model, algorithm; single_source_delta: mean delta of the
    top-3 sources alone; multi_source_delta: all three together (points, NaN if not legible); note:
    remark on the row's numbers, missing if there is none.
    """
    return _read_csv("table6")


Agreement = Literal["same", "as far as legible", "other"]
"""Agreement of a run's sources with the paper's."""


def read_sources() -> pd.DataFrame:
    """Read the sources of each multi-source target from the paper's Table 6.

    Columns: dataset, target, short; sources: three joined by ``+``. ``|`` separates alternatives,
    and ``?`` marks a source that is not legible in the available copy.
    """
    return _read_csv("sources")


def compare_sources(target: str, ours: Collection[str]) -> Agreement:
    """Compare a target's sources with its sources in the paper's Table 6.

    It is "other" if the table does not have the target.
    """
    slots = _read_source_slots().get(target, [])
    if len(ours) != len(slots) or not any(
        all(slot == {"?"} or task in slot for task, slot in zip(order, slots, strict=True))
        for order in permutations(ours)
    ):
        return "other"
    legible = all(len(slot) == 1 and slot != {"?"} for slot in slots)
    return "same" if legible else "as far as legible"


@cache
def _read_source_slots() -> dict[str, list[set[str]]]:
    """Map each target to the candidate tasks for each of its three sources."""
    rows = read_sources()[["target", "sources"]].itertuples(index=False, name=None)
    return {target: [set(slot.split("|")) for slot in joined.split("+")] for target, joined in rows}


def check_consistency() -> pd.DataFrame:
    """Check that Table 2 agrees with itself and with our interpretation of its equations.

    Score minus delta is the mean baseline, which no algorithm changes. If top-1 score is the mean
    over targets of max(baseline, score), and top-1 delta the mean of max(0, delta), their
    difference is the same baseline.

    Returns:
        One row per row of Table 2, columns as in ``CONSISTENCY``.
    """
    table = read_table2()
    check = table[[*_GROUP, "algorithm"]].assign(
        average_baseline=(table["average_score"] - table["average_delta"]).round(2),
        top1_baseline=(table["top1_score"] - table["top1_delta"]).round(2),
    )
    baselines = check[["average_baseline", "top1_baseline"]]
    ends = check[_GROUP].assign(low=baselines.min(axis=1), high=baselines.max(axis=1))
    groups = ends.groupby(_GROUP)
    spread = groups["high"].transform("max") - groups["low"].transform("min")
    return check.assign(spread=spread.round(2), consistent=spread <= ROUNDING + 1e-9)


def _read_csv(name: str) -> pd.DataFrame:
    with (files(__name__) / f"{name}.csv").open(encoding="utf-8") as lines:
        return pd.read_csv(lines, comment="#")


# --- matching rows ---


NOT_COMPARED = "The table is not compared with the paper"
"""First words of the note that explains why no published values are shown."""
_BY_HUB_NAME = {
    "bert-base-uncased": "BERT",
    "google-bert/bert-base-uncased": "BERT",
    "gpt2": "GPT-2",
    "openai-community/gpt2": "GPT-2",
    "t5-base": "T5",
    "google-t5/t5-base": "T5",
}
_BY_STUDY_NAME = {
    "bert": "BERT",
    "bert-base": "BERT",
    "bert-base-uncased": "BERT",
    "gpt2": "GPT-2",
    "gpt-2": "GPT-2",
    "t5": "T5",
    "t5-base": "T5",
}


@dataclass(frozen=True, slots=True)
class Correspondence:
    """Parts of a study that can be compared with the paper."""

    datasets: frozenset[str]
    models: Mapping[str, str]
    """Model of the study → the paper's model ("BERT", "GPT-2" or "T5")."""
    reason: str
    """Reason why nothing can be compared; empty if something can."""
    metadata: Metadata
    """Metadata of the tables, which record whether the data was subsampled."""


def find_published_model(name: str, weights: str | None) -> str | None:
    """Return the paper's model that matches a study's model, or None.

    Args:
        name: the study's name for the model.
        weights: the weights according to the records. A hub name (``<name>@<revision>``, with or
            without the organisation) decides. Built-in tiny models match no published model. For a
            local folder (``sha256:<digest>``) or unknown weights (None, "unknown"), ``name``
            decides.
    """
    if weights and weights.startswith("tiny:"):
        return None
    if weights and not weights.startswith("sha256:") and weights != "unknown":
        return _BY_HUB_NAME.get(weights.split("@", 1)[0].casefold())
    return _BY_STUDY_NAME.get(name.casefold())


def find_correspondence(frames: Frames) -> Correspondence:
    """Return the parts of a study that can be compared with the paper.

    Synthetic data and full data cannot be compared.
    """
    runs, missing, metadata = frames["transfer_runs"], frames["missing_runs"], frames.metadata
    if metadata.synthetic and not metadata.real:
        return Correspondence(frozenset(), {}, "the dialogues are synthetic", metadata)
    few_sample = runs["few_sample"].groupby(runs["dataset"]).all().to_dict()
    by_default = bool(runs["few_sample"].all())
    studied = {*runs["dataset"], *missing["dataset"]}
    if not studied:
        return Correspondence(frozenset(), {}, "the study trains no model", metadata)
    real = {
        name
        for name in studied.intersection(read_table1()["dataset"])
        if not metadata.is_synthetic(name)
    }
    datasets = frozenset(name for name in real if few_sample.get(name, by_default))
    if real and not datasets:
        reason = "the paper's numbers are for few-sample data"
        return Correspondence(frozenset(), {}, reason, metadata)
    models = _match_models(runs, missing)
    nothing = "" if datasets else "the study has no dataset of the paper"
    return Correspondence(datasets, models if datasets else {}, nothing, metadata)


def _match_models(runs: pd.DataFrame, missing: pd.DataFrame) -> dict[str, str]:
    weights = runs.groupby("model", sort=False)["weights"].unique().to_dict()
    models = {}
    for name in dict.fromkeys([*runs["model"], *missing["model"]]):
        recorded = [
            None if pd.isna(weight) else str(weight) for weight in weights.get(name, [None])
        ]
        candidates = {find_published_model(name, weight) for weight in recorded}
        # If a name has several checkpoints, all of them must be the paper's.
        if len(candidates) == 1 and (model := candidates.pop()):
            models[str(name)] = model
    return models


def add_published_values(
    frame: pd.DataFrame,
    values: pd.DataFrame,
    measures: Sequence[str],
    keys: Sequence[str],
    comparable: Correspondence,
    *,
    also: Sequence[str] = (),
    differs: Callable[[Mapping[str, Any]], str] = lambda row: "",
) -> pd.DataFrame:
    """Add published values and their differences from ours (``present.published``).

    Args:
        frame: our values: ``keys`` and ``measures``, with the study's model names.
        values: published values: ``keys``, ``measures`` and ``also``, with the paper's model names.
        measures: columns of numbers that both frames have.
        keys: columns that identify a row, including "dataset", and "model" if rows have one.
        comparable: the comparable parts of the study.
        also: published columns without a counterpart in ours.
        differs: function that describes how a row's members differ from the paper's; empty if they
            do not differ.

    Returns:
        ``frame`` with ``published_<measure>``, ``difference_<measure>`` (ours minus published;
        absent if the setting differs) and ``differs_<measure>`` for each measure, and
        ``published_<column>`` for ``also``. ``frame`` unchanged if no row has a published value.
    """
    names = {key: partial(_get_published_name, comparable, key) for key in keys}
    joined = frame
    for measure in measures:
        theirs = PublishedValues(values, measure, names, differs)
        joined = add_published_columns(
            joined, theirs, comparable.metadata, value=measure, suffix=f"_{measure}"
        )
    if joined is frame:
        return frame
    for name in also:
        rows = zip(to_records(frame), joined[f"differs_{measures[0]}"], strict=True)
        shown = PublishedValues(values, name, names)
        joined[f"published_{name}"] = [None if why else shown.get_value(row) for row, why in rows]
    added = describe_compared_columns(measures, "", dict.fromkeys(also, ""))
    return joined[[*frame, *(name for name in added if name in joined)]]


def _get_published_name(comparable: Correspondence, key: str, row: Mapping[str, Any]) -> Any:
    """Return the paper's name for a value of a row's key, or None if it is not in the paper."""
    if key == "dataset":
        return row[key] if row[key] in comparable.datasets else None
    return comparable.models.get(str(row[key])) if key == "model" else row[key]


def list_difference_notes(frame: pd.DataFrame, comparable: Correspondence) -> list[str]:
    """Return notes on settings or averaged tasks that differ from those of published values."""
    notes = list_published_notes(frame, comparable.metadata, "")
    return [note.removeprefix("Published: . ") for note in notes if note != "Published: ."]


def has_published_values(frame: pd.DataFrame) -> bool:
    """Return whether ``add_published_values`` found a published value for any row."""
    shown = [name for name in frame.columns if str(name).startswith("published_")]
    return bool(shown) and bool(frame[shown].notna().any(axis=None))


def explain_no_comparison(frame: pd.DataFrame, comparable: Correspondence) -> str:
    """Return a sentence on why a table has no published values.

    Empty if it has any, or if its rows state the reasons.
    """
    if has_published_values(frame) or any(
        str(name).startswith("differs_") for name in frame.columns
    ):
        return ""
    reason = comparable.reason or "the paper has no results for this dataset, model and algorithm"
    return f"{NOT_COMPARED}, because {reason}."


def describe_compared_columns(
    measures: Sequence[str], where: str, also: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the meanings of the columns from ``add_published_values``.

    ``where`` is the paper's table, for example "Table 2"; ``also`` has meanings of further columns.
    """
    return {
        **{f"published_{name}": f"the paper's {where}" for name in measures},
        **{f"published_{name}": meaning for name, meaning in (also or {}).items()},
        **{f"difference_{name}": f"{name} - published_{name}" for name in measures},
        **{f"differs_{name}": "reason why a published value is not compared" for name in measures},
    }
