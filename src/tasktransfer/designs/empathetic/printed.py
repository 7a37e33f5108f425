"""Rows of the printed tables, with the study's numbers and those of the paper."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.human import compute_table5, read_figure5, read_published
from tasktransfer.designs.empathetic.methods import (
    GROUPS,
    get_group,
    get_paper_name,
)
from tasktransfer.designs.empathetic.notes import list_method_notes
from tasktransfer.designs.empathetic.statistics import LOG_PERPLEXITY, PERPLEXITY
from tasktransfer.present.published import PublishedValues, add_published_columns
from tasktransfer.results.frames import Frames, LazyFrames
from tasktransfer.results.store import Metadata, sort_rows

SCORED = ("summary", "differences", "control_differences")
"""Frames of measures that Table 2 has."""
NAMED = ("measured", "costs", "by_emotion", "pools_chosen")
"""Further frames with methods."""
PAPERS_BLOCK = 100
"""Number of candidates of the published P@1,100."""
SCORES = {
    ("retrieval", "p_at_1"): "P@1,{block}",
    ("retrieval", "bleu"): "AVG BLEU, retrieval",
    ("generation", PERPLEXITY): "PPL",
    ("generation", LOG_PERPLEXITY): "log PPL",
    ("generation", "bleu"): "AVG BLEU, generation",
}
"""Setting and measure → column of Table 2. Perplexities are compared by their logarithms."""
_PRINTED_AS = {
    "p_at_1_100": ("retrieval", "p_at_1"),
    "retrieval_avg_bleu": ("retrieval", "bleu"),
    "perplexity": ("generation", PERPLEXITY),
    "generation_avg_bleu": ("generation", "bleu"),
}
"""Column of the paper's Table 2 → setting and measure."""
_CLASSIFIERS = {"fasttext-emotion": "fasttext", "classifier-tuned": "deepmoji_last"}
"""Our classifier → the paper's column of Table 9."""
_CITED = {
    "DeepMoji, new": "deepmoji_new",
    "DeepMoji, full": "deepmoji_full",
    "DeepMoji, chain-thaw": "deepmoji_chain_thaw",
}
"""Columns of Table 9 that only the paper has."""
_TEXTS = {
    "accuracy": "ED",
    "accuracy_cut": "ED-CUT",
    "accuracy_contexts": "contexts, as prepended",
    "accuracy_training_contexts": "contexts of training, as prepended",
}
"""Measure → the texts on which an emotion classifier is evaluated."""
_OWN_LABELS = "its own labels"
_PROMPTED_MEASURES = {
    "bleu": "AVG BLEU",
    "p_at_1": "P@1,{block}",
    "p_at_1_permuted": "P@1,{block}, replies permuted",
    "word_perplexity": "perplexity per word",
}
"""Measure → its name in the table."""


def complete_frames(frames: Frames) -> Frames:
    """Return the frames with columns for the paper's names of methods (``name``, ``group``).

    Frames of measures also get their columns in Table 2 (``score``).
    """
    config, metadata = get_config(frames.study), frames.metadata
    evaluation, prompted = config.evaluation, config.prompted_names

    def load(name: str) -> pd.DataFrame:
        if name in SCORED:
            return add_scores(frames[name], evaluation.block, evaluation.pools, prompted)
        return add_names(frames[name], prompted)

    names = [name for name in (*SCORED, *NAMED) if name in frames]
    order = {**metadata.order, **_make_orders(metadata, evaluation.block)}
    return frames.replace(LazyFrames(names, load), replace(metadata, order=order))


def _make_orders(metadata: Metadata, block: int) -> dict[str, list[str]]:
    methods = metadata.order.get("method", ())
    return {
        "name": [get_paper_name(method) for method in methods],
        "score": [score.format(block=block) for score in SCORES.values()],
        "group": [*GROUPS],
    }


def add_scores(
    frame: pd.DataFrame, block: int, pools: tuple[str, ...], prompted: Collection[str] = ()
) -> pd.DataFrame:
    """Add the columns ``name``, ``group``, ``score`` and ``candidates`` to rows.

    ``candidates`` selects the line of Table 2: the pool of retrieved replies, or the method's first
    pool for all other measures.

    Args:
        prompted: names of the study's prompted models.
    """
    scores = [
        SCORES.get((str(setting), str(measure)), str(measure)).format(block=block)
        for setting, measure in zip(frame["setting"], frame["measure"], strict=True)
    ]
    chosen = frame[frame["pool"] != ""].groupby("method")["pool"].agg(set).to_dict()
    first = {
        method: next((pool for pool in pools if pool in offered), "")
        for method, offered in chosen.items()
    }
    candidates = [
        pool or first.get(method, "")
        for pool, method in zip(frame["pool"], frame["method"], strict=True)
    ]
    return add_names(frame, prompted).assign(score=scores, candidates=candidates)


def add_names(frame: pd.DataFrame, prompted: Collection[str] = ()) -> pd.DataFrame:
    """Add columns with the paper's names of methods and their groups."""
    names = [get_paper_name(method) for method in frame["method"]]
    groups = [get_group(method, prompted) for method in frame["method"]]
    return frame.assign(name=names, group=groups)


def _sort_by_method(frame: pd.DataFrame, metadata: Metadata, *more: str) -> pd.DataFrame:
    """Sort rows by group and method, as in the paper."""
    kinds = {"group": "group", "name": "name", **{column: column for column in more}}
    return sort_rows(frame, kinds, metadata.order)


# --- tables 2, 4, 7 and 9 -----------------------------------------------------------------------


def compute_table2(frames: Frames) -> pd.DataFrame:
    """Return the automatic measures: one row per method, measure and pool."""
    summary = frames["summary"]
    own = summary[
        [key in SCORES for key in zip(summary["setting"], summary["measure"], strict=True)]
    ]

    def describe_difference(row: Mapping[str, Any]) -> str:
        block = str(row["score"]).removeprefix("P@1,")
        if row["measure"] != "p_at_1":
            return ""
        if block != str(PAPERS_BLOCK):
            return f"P@1 among {block} candidates, published among {PAPERS_BLOCK}"
        return (
            "P@1 among consecutive rows; the paper's text says random candidates, and the paper's "
            "code prints both values"
        )

    theirs = PublishedValues(
        read_published_table2(),
        "value",
        {
            "setting": lambda row: row["setting"],
            "measure": lambda row: row["measure"],
            "model": lambda row: row["name"],
            "candidates": lambda row: row["pool"],
        },
        describe_difference,
    )
    frame = add_published_columns(own, theirs, frames.metadata)
    return _sort_by_method(frame, frames.metadata, "candidates", "score")


def read_published_table2() -> pd.DataFrame:
    """Return the published numbers of Table 2, one row per number.

    The paper prints Base twice; duplicates are dropped. ``candidates`` is set only for BLEU of
    retrieved replies.
    """
    names = ["model", "candidates"]
    rows = read_published("table2").melt(names, [*_PRINTED_AS], "column").dropna(subset="value")
    keys = [_PRINTED_AS[str(column)] for column in rows["column"]]
    rows = rows.assign(
        setting=[setting for setting, _ in keys],
        measure=[measure for _, measure in keys],
        candidates=rows["candidates"].where(rows["column"] == "retrieval_avg_bleu", ""),
    )
    return rows.drop_duplicates(["column", *names], ignore_index=True)


def compute_table4(frames: Frames) -> pd.DataFrame:
    """Return the number of parameters and the training time of each method."""
    own = frames["costs"][frames["costs"]["setting"] != "classifier"]
    names = ["setting", "group", "name", "method"]
    frame = own.groupby(names, sort=False, as_index=False).agg(
        parameters=("parameters", "max"),
        hours=("hours", "mean"),
        all_hours=("all_hours", "mean"),
        hardware=("hardware", "first"),
        examples=("examples", "max"),
    )
    frame["parameters"] = frame["parameters"].astype("Int64").mask(frame["parameters"] == 0)
    keys = {"setting": lambda row: row["setting"], "model": lambda row: row["name"]}
    for column in ("parameters", "hours"):
        theirs = PublishedValues(read_published_table4(), column, keys, signed=False)
        frame = add_published_columns(
            frame, theirs, frames.metadata, value=column, suffix=f"_{column}"
        )
    settings = {"setting": ["retrieval", "generation"], **frames.metadata.order}
    return sort_rows(frame, {"setting": "setting", "group": "group", "name": "name"}, settings)


def read_published_table4() -> pd.DataFrame:
    """Return the published numbers of parameters and training hours.

    ``same`` and ``+9.6k`` are relative to the last model with an absolute number.
    """
    rows = read_published("table4")
    factors = {"M": 1e6, "k": 1e3}
    sizes: list[float] = []
    whole = np.nan
    for text in rows["parameters"]:
        more = 0.0 if text == "same" else float(text[:-1]) * factors[text[-1]]
        if text != "same" and not text.startswith("+"):
            whole, more = more, 0.0
        sizes.append(whole + more)
    times = rows["time"].str.extract(r"\+?([0-9.]+) (hour|day)s?")
    hours = times[0].astype(float) * times[1].map({"hour": 1.0, "day": 24.0})
    return rows[["setting", "model"]].assign(parameters=sizes, hours=hours)


def describe_table4(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the note about the published hours and human ratings."""
    if not any(str(name).startswith("published") for name in frame):
        return []
    return [
        "Published hours are for the last training run. Pretrained was trained on 8 GPUs "
        "(retrieval) or 32 GPUs (generation), and the other models on one GPU. Human ratings are "
        "in Table 3."
    ]


def compute_table7(frames: Frames) -> pd.DataFrame:
    """Return the percentage of dialogues with each emotion."""
    keys = {"label": lambda row: row["label"]}
    theirs = PublishedValues(read_published("table7"), "percent", keys)
    return add_published_columns(frames["labels"], theirs, frames.metadata, value="percent")


def compute_table9(frames: Frames) -> pd.DataFrame:
    """Return the accuracy of classifiers: one row per classifier and text.

    If published values may be shown, classifiers that only the paper has get a row without our
    number.
    """
    own = frames["summary"].query("setting == 'classifier'")
    of_emotions = own["method"].isin([*_CLASSIFIERS])
    texts = own["measure"].map(_TEXTS).where(of_emotions, _OWN_LABELS)
    columns_of_paper = own["method"].map(_CLASSIFIERS)
    kept = ["method", "low", "high", "seeds"]
    rows = own[kept].assign(text=texts, accuracy=own["value"], classifier=columns_of_paper)
    if not frames.metadata.synthetic and of_emotions.any():
        cited = [
            {"method": method, "text": text, "classifier": column}
            for method, column in _CITED.items()
            for text in ("ED", "ED-CUT")
        ]
        rows = pd.concat([rows, pd.DataFrame(cited)], ignore_index=True)
    theirs = PublishedValues(
        read_published_table9(),
        "accuracy",
        {"dataset": lambda row: row["text"], "classifier": lambda row: row["classifier"]},
    )
    frame = add_published_columns(rows, theirs, frames.metadata, value="accuracy").drop(
        columns="classifier"
    )
    order = {"text": [*_TEXTS.values(), _OWN_LABELS], **frames.metadata.order}
    return sort_rows(frame, {"text": "text", "method": "method"}, order)


def read_published_table9() -> pd.DataFrame:
    """Return the published accuracies in percent: one row per dataset and classifier."""
    rows = read_published("table9").melt(["dataset", "metric"], var_name="classifier")
    return rows.assign(accuracy=100 * rows["value"])


def describe_table9(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return a note on the rows of the paper's Table 9 that this table does not have."""
    if "published" not in frame:
        return []
    return [
        "The paper also quotes results on seven other datasets from Felbo et al. (2017), which "
        "this table omits."
    ]


def read_published_table3(frames: Frames) -> pd.DataFrame:
    """Return the human ratings, as printed in the paper."""
    return read_published("table3").fillna("")


def compare_table5(frames: Frames) -> pd.DataFrame:
    """Return the printed means of human choices, next to the means computed from Figure 5."""
    computed = compute_table5(read_figure5())
    frame = read_published("table5")
    return frame.assign(from_figure5=[computed[name] for name in frame["a_vs_b"]])


# --- beyond the paper ---------------------------------------------------------------------------


def list_differences(frames: Frames) -> pd.DataFrame | None:
    """Return the methods' differences from Base, or None if no method has a difference."""
    frame = frames["differences"].query("setting != 'classifier'")
    if frame["difference"].isna().all():
        return None
    return _sort_by_method(frame, frames.metadata, "candidates", "score")


def list_control_differences(frames: Frames) -> pd.DataFrame:
    """Return the differences between each ensemble and its controls."""
    return _sort_by_method(frames["control_differences"], frames.metadata, "candidates", "score")


def list_scores_by_emotion(frames: Frames) -> pd.DataFrame:
    """Return P@1 by the dialogue's emotion, sorted by emotion."""
    rows = _sort_by_method(frames["by_emotion"], frames.metadata).assign(setting="retrieval")
    return rows.sort_values("emotion", kind="stable", ignore_index=True)


def describe_emotions(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the note on the number of instances per emotion."""
    few, many = frame["instances"].min(), frame["instances"].max()
    return [
        f"Each emotion has {few:,} to {many:,} instances per seed.",
        *list_method_notes(frames, frame),
    ]


def compute_pool_shares(frames: Frames) -> pd.DataFrame:
    """Return the percentage of replies from each dataset, for candidate pools of several datasets.

    It is 0 for a dataset of the pool from which no reply was retrieved.
    """
    rows = frames["pools_chosen"]
    rows = rows[rows["pool"].str.contains("+", regex=False)]
    names = ["group", "name", "method", "pool"]
    wide = rows.pivot_table("percent", names, "chosen_from", fill_value=0.0, sort=False)
    frame = wide.melt(value_name="percent", ignore_index=False).reset_index()
    return _sort_by_method(frame.assign(setting="retrieval"), frames.metadata)


def compute_scores_by_order(frames: Frames) -> pd.DataFrame:
    """Return P@1 for candidates in test order, in shuffled orders and with permuted replies."""
    rows = frames["measured"].query("setting == 'retrieval'")
    rows = rows[rows["measure"].str.startswith("p_at_1")]
    names = ["setting", "group", "name", "method"]
    wide = rows.pivot_table("value", names, "measure", sort=False).reset_index()
    return _sort_by_method(wide.rename_axis(columns=None), frames.metadata)


def list_prompted(frames: Frames) -> pd.DataFrame:
    """Return the frame ``prompted`` with readable names of measures."""
    block = get_config(frames.study).evaluation.block
    names = {measure: name.format(block=block) for measure, name in _PROMPTED_MEASURES.items()}
    frame = frames["prompted"]
    return frame.assign(measure=frame["measure"].map(names))
