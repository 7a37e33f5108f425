"""What scores are worth: simple ways of answering beside the baselines."""

from __future__ import annotations

import pandas as pd

from tasktransfer.designs.transfer.collect.planned import BASELINE
from tasktransfer.designs.transfer.collect.results import Results
from tasktransfer.designs.transfer.reference import REFERENCES
from tasktransfer.tables.html import HtmlTable, build, number, text

_TASK = ["dataset", "task"]


def reference_tables(results: Results) -> list[HtmlTable]:
    """One table, a row per task that has a reference or a baseline; none without references."""
    if results.reference is None or results.reference.empty:
        return []
    models, frame = beside_baselines(results, results.reference)
    return [
        build(
            "reference",
            "What scores are worth",
            "Scores on the test split, 0-100, of answers that no language model was trained for, "
            "beside the mean baseline of each model. Most frequent: the most frequent answer of "
            "the training split, always. By frequency: drawn from the training split's answers. "
            "TF-IDF: logistic regression on words, none for spans. A baseline that is no better "
            "than these has learnt little, and deltas over it mean little.",
            frame,
            (
                text("dataset", "Dataset"),
                text("task", "Task"),
                *(number(name, label, ".2f") for name, label in REFERENCES.items()),
                *(number(model, f"Baseline, {model}", ".2f") for model in models),
            ),
            keys=2,
        )
    ]


def beside_baselines(results: Results, reference: pd.DataFrame) -> tuple[list[str], pd.DataFrame]:
    """The models, and a row per studied task: its references, and each model's mean baseline."""
    runs = results.tables.runs
    baselines = runs[runs["algorithm"] == BASELINE].rename(columns={"target": "task"})
    means = baselines.pivot_table("score", _TASK, "model", sort=False)
    scores = reference.pivot_table("score", _TASK, "reference", sort=False)
    models = results.metadata.ordered("model", list(means.columns))
    joined = means.join(scores, how="left").reset_index()
    return models, joined.reindex(columns=[*_TASK, *REFERENCES, *models])
