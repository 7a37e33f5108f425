"""Rows of Tables V to VII: few-shot transfer and response selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.designs.panel import published as paper
from tasktransfer.designs.panel.names import (
    FEW_NAMES,
    PERSONAS,
    SELECTION_ADAPTER,
    SELECTION_COSINE,
    SELECTION_DIRECT,
    format_transfer_column,
    get_paper_name,
    group_sets_by_average,
)
from tasktransfer.designs.panel.printed import (
    OF,
    PrintedRow,
    describe_other_members,
    list_printed_rows,
)
from tasktransfer.designs.panel.published import AVERAGES
from tasktransfer.present.columns import PUBLISHED as COLUMN
from tasktransfer.present.numbers import join_names
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.results.frames import Frames

SELECTIONS = {SELECTION_DIRECT: "PoE-direct", SELECTION_ADAPTER: "PoE-adapter"}
CANDIDATES, CONTEXTS = 20, 7512
"""Numbers of candidates and of contexts in Table VII."""
ALL_ITEMS, HELD_OUT = "all items", "held-out items"


# --- few-shot transfer: Tables V and VI -----------------------------------------------------------


def compute_table5(frames: Frames) -> pd.DataFrame:
    """Return few-shot correlations with published values, and averages over rated sets."""
    few, own = frames["few"], frames["correlations"]
    rows = [*_build_few_shot_rows(few, frames), *_average_few_shot(few, own, frames)]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return frame

    def get_published_set(row: Mapping[str, Any]) -> str | None:
        # The paper samples items, and scores on all items.
        if row["by"] != "items" or row["scored"] != ALL_ITEMS:
            return None
        return AVERAGES.get(row["group"]) if row["group"] else get_paper_name(row["set"])

    theirs = PublishedValues(
        paper.read_table("table5"),
        "spearman",
        {
            "dataset": get_published_set,
            "k_percent": lambda row: row["percent"],
            "model": lambda row: FEW_NAMES.get(row["method"]),
        },
        differs=lambda row: describe_other_members(5, AVERAGES.get(row["group"]), row["members"]),
    )
    return add_published_columns(frame, theirs, frames.metadata)


def _build_few_shot_rows(few: pd.DataFrame, frames: Frames, **named: str) -> Iterator[PrintedRow]:
    """Yield rows of few-shot correlations by set, sampling, scored items, method and percentage.

    Untrained controls do not depend on the sampling; they get a row for each way.
    """
    ways = [by for by in frames["few"]["by"].unique() if by]
    for row in list_printed_rows(few):
        for by in [row["by"]] if row["by"] else ways:
            for scored, value, sd in (
                (ALL_ITEMS, "all_items", "all_sd"),
                (HELD_OUT, "held_out", "held_out_sd"),
            ):
                yield {
                    "set": row["set"],
                    "by": by,
                    "scored": scored,
                    "start": format_transfer_column(row["method"], row["percent"]),
                    "method": row["method"],
                    "percent": row["percent"],
                    "value": row[value],
                    "sd": row.get(sd, np.nan),
                    "draws": row["draws"],
                    "seed": None if row["percent"] else frames.study.config.seeds[0],
                    "group": "",
                    "members": row["set"],
                    **named,
                }


def _average_few_shot(few: pd.DataFrame, own: pd.DataFrame, frames: Frames) -> Iterator[PrintedRow]:
    """Yield averages over rated sets, for methods with results on all of them."""
    inside = dict(zip(own["set"], own["in_domain"], strict=True))
    shown = [(name, bool(inside[name])) for name in dict.fromkeys(few["set"]) if name in inside]
    for group, sets in group_sets_by_average(shown).items():
        by = few[few["set"].isin(sets)].groupby(["method", "by", "percent"], sort=False)
        mean = by[["draws", "all_items", "held_out"]].mean()[by.size() == len(sets)].reset_index()
        named = {"group": group, "members": "+".join(sets)}
        mean = mean.assign(set=f"average of {len(sets)}: {group}", draws=mean["draws"].astype(int))
        yield from _build_few_shot_rows(mean, frames, **named)


def describe_table5(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table V."""
    spread = (
        "Standard deviations over samples are in parentheses." if frame["sd"].notna().any() else ""
    )
    before = (
        "The values without few-shot training are for the model of the first seed and for "
        "untrained controls. As in the paper, the values for all items include the training items."
    )
    notes = [spread, before]
    return [*filter(None, notes), *list_published_notes(frame, frames.metadata, f"Table V {OF}")]


def compute_table6(frames: Frames) -> pd.DataFrame:
    """Return the published few-shot transfer of MDD-Eval and PoE-avg."""
    frame = paper.read_table("table6")
    return frame.assign(start=[*map(format_transfer_column, frame["model"], frame["k_percent"])])


# --- response selection: Table VII ----------------------------------------------------------------


def compute_table7(frames: Frames) -> pd.DataFrame:
    """Return hits@1 by persona, for our methods and the paper's models."""
    values = paper.read_table("table7").melt("model", var_name="setting", value_name="hits")
    ours = frames["hits"]
    models = [m for m in values["model"].unique() if m not in SELECTIONS.values()]
    cited = [
        {"method": model, "persona": persona, "candidates": CANDIDATES}
        for model in models
        for persona in PERSONAS
    ]
    shown = (*SELECTIONS, SELECTION_COSINE)
    own = [row for name in shown for row in list_printed_rows(ours[ours["method"] == name])]
    if not own:
        return ours
    theirs = PublishedValues(
        values,
        "hits",
        {
            "model": lambda row: SELECTIONS.get(row["method"], row["method"]),
            "setting": lambda row: PERSONAS[row["persona"]],
        },
        differs=_describe_other_choices,
    )
    both = pd.DataFrame([*cited, *own], columns=ours.columns)
    frame = add_published_columns(both, theirs, frames.metadata, value="hits_at_1")
    return frame if COLUMN in frame else pd.DataFrame(own, columns=ours.columns)


def _describe_other_choices(row: Mapping[str, Any]) -> str:
    if row["method"] not in SELECTIONS or (row["candidates"], row["contexts"]) == (
        CANDIDATES,
        CONTEXTS,
    ):
        return ""
    own = f"{row['contexts']:,.0f} contexts with {row['candidates']:.0f} candidates"
    return f"{CONTEXTS:,} contexts with {CANDIDATES} candidates, here {own}"


def describe_table7(frames: Frames, frame: pd.DataFrame) -> list[str]:
    """Return the notes of Table VII."""
    own = frame[frame["contexts"].notna()].drop_duplicates(["method", "candidates"])
    methods: dict[str, list[str]] = {}
    for row in list_printed_rows(own):
        size = f"{row['contexts']:,.0f} contexts with {row['candidates']:.0f} candidates each"
        methods.setdefault(size, []).append(row["method"])
    counts = [f"{join_names(names)} on {size}" for size, names in methods.items()]
    over = f"The study evaluates {'; '.join(counts)}. Intervals are 95 % Wilson intervals."
    return [over, *list_published_notes(frame, frames.metadata, f"Table VII {OF}")]
