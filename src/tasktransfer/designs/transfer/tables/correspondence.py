"""Which rows of a study stand beside a published number.

They do wherever dataset, model and algorithm are the paper's. Hyperparameters, limits on the
number of instances and the choice of tasks are not asked: a study is compared as it is, and its
config says what it did otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.collect.results import Results

PUBLISHED = ("published_", "difference_")
"""What the names of columns begin with that only comparable studies have."""

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
    """What of a study is the paper's."""

    datasets: frozenset[str]
    models: Mapping[str, str]
    """The study's model → the paper's ("BERT", "GPT-2" or "T5")."""
    reason: str
    """Why nothing can be compared; empty where something can."""


def published_model(name: str, weights: str | None) -> str | None:
    """The paper's model that a study's model is, or None.

    Args:
        name: how the study calls it.
        weights: what its records say of the weights. A hub name (``<name>@<revision>``, with or
            without the organisation that keeps it) decides; built-in tiny models are nobody's.
            Of a local folder (``sha256:<digest>``), or where nothing is said (None, "unknown"),
            the study's name for it decides.
    """
    if weights and weights.startswith("tiny:"):
        return None
    if weights and not weights.startswith("sha256:") and weights != "unknown":
        return _BY_HUB_NAME.get(weights.split("@", 1)[0].casefold())
    return _BY_STUDY_NAME.get(name.casefold())


def correspondence(results: Results) -> Correspondence:
    """What of a study is the paper's: nothing of synthetic data, nothing of full data."""
    tables, metadata = results.tables, results.metadata
    if metadata.synthetic and not metadata.real:
        return Correspondence(frozenset(), {}, "the dialogues are made up")
    runs = tables.runs
    few_sample = runs["few_sample"].groupby(runs["dataset"]).all().to_dict()
    by_default = bool(runs["few_sample"].all())
    named = [*runs["dataset"], *tables.missing["dataset"]]
    known = set(published.table1()["dataset"]).intersection(named)
    ours = {name for name in known if not metadata.is_synthetic(name)}
    datasets = frozenset(name for name in ours if few_sample.get(name, by_default))
    if ours and not datasets:
        return Correspondence(frozenset(), {}, "the paper's numbers are of few-sample data")
    models = _models(runs, tables.missing)
    nothing = "" if datasets else "no dataset of the study is the paper's"
    return Correspondence(datasets, models if datasets else {}, nothing)


def _models(runs: pd.DataFrame, missing: pd.DataFrame) -> dict[str, str]:
    weights = runs.groupby("model", sort=False)["weights"].unique().to_dict()
    found = {}
    for name in dict.fromkeys([*runs["model"], *missing["model"]]):
        said = [None if pd.isna(one) else str(one) for one in weights.get(name, [None])]
        known = {published_model(name, one) for one in said}
        # Records of one name and several checkpoints are the paper's only if all of them are.
        if len(known) == 1 and (model := known.pop()):
            found[str(name)] = model
    return found


def beside_published(
    frame: pd.DataFrame,
    values: pd.DataFrame,
    measures: Sequence[str],
    keys: Sequence[str],
    found: Correspondence,
    *,
    also: Sequence[str] = (),
) -> pd.DataFrame:
    """Lay published values beside ours.

    Args:
        frame: ours: ``keys`` and ``measures``, the model as the study names it.
        values: published: ``keys``, ``measures`` and ``also``, the model as the paper names it.
        measures: columns of numbers that both have.
        keys: what names a row, "dataset" among it, and "model" where rows have one.
        found: what of the study is the paper's.
        also: published columns without a counterpart of ours.

    Returns:
        ``frame`` with ``published_<measure>`` and ``difference_<measure>`` (ours minus published;
        NaN where either is missing) for each measure, and ``published_<column>`` for ``also``.
        Where no row has a published value, ``frame`` as it is, without these columns.
    """
    theirs = values[[*keys, *measures, *also]]
    theirs = theirs.rename(columns={name: f"published_{name}" for name in (*measures, *also)})
    theirs = theirs[theirs["dataset"].isin(found.datasets)]
    # Whatever the paper has no row for keeps its place and gets nothing.
    looked_up = frame[list(keys)].copy()
    if "model" in keys:
        looked_up["model"] = [found.models.get(str(name)) for name in frame["model"]]
    matched = looked_up.merge(theirs, on=list(keys), how="left", validate="many_to_one")
    matched.index = frame.index
    matched = matched.drop(columns=list(keys))
    if not matched.notna().to_numpy().any():
        return frame
    for name in measures:
        matched[f"difference_{name}"] = frame[name] - matched[f"published_{name}"]
    return frame.join(matched)


def compared(frame: pd.DataFrame) -> bool:
    """Whether ``beside_published`` found a published value for some row."""
    return any(str(name).startswith("published_") for name in frame.columns)


def says_why_not(frame: pd.DataFrame, found: Correspondence) -> str:
    """The sentence of a caption on why a table has no published values; empty where it has."""
    if compared(frame):
        return ""
    reason = found.reason or "no dataset, model and algorithm of it is the paper's"
    return f" Not compared with the paper: {reason}."
