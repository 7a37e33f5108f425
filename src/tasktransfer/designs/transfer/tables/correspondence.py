"""Matching of a study's rows with the paper's published numbers.

A row matches if its dataset, model and algorithm are the paper's. Hyperparameters do not matter: a
study is compared as it is, and its config documents the deviations. If the data was subsampled, the
setting differs, and no difference is reported (``present.published``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer import published
from tasktransfer.present.html import to_records
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Metadata

NOT_COMPARED = "Not compared with the paper"
"""Beginning of the note on the reason why there are no published values."""
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
        for name in studied.intersection(published.read_table1()["dataset"])
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
    """Add published values and differences to ours (``present.published``).

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
    """Return the paper's name for a row's value of a key, or None if it cannot be compared."""
    if key == "dataset":
        return row[key] if row[key] in comparable.datasets else None
    return comparable.models.get(str(row[key])) if key == "model" else row[key]


def list_difference_notes(frame: pd.DataFrame, comparable: Correspondence) -> list[str]:
    """Return notes on the settings or members in which published values differ from ours."""
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
    return f"{NOT_COMPARED}: {reason}."


def describe_compared_columns(
    measures: Sequence[str], where: str, also: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the meanings of the columns that ``add_published_values`` adds.

    ``where`` is the paper's table, for example "Table 2"; ``also`` has meanings of further columns.
    """
    return {
        **{f"published_{name}": f"the paper's {where}" for name in measures},
        **{f"published_{name}": meaning for name, meaning in (also or {}).items()},
        **{f"difference_{name}": f"{name} - published_{name}" for name in measures},
        **{f"differs_{name}": "reason why a published value is not compared" for name in measures},
    }
