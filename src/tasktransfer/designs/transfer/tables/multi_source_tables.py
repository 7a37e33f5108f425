"""Several sources together compared with each alone (paper, section 6.2, Tables 3 and 6)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.collect import SOURCES_CHOSEN_BY
from tasktransfer.designs.transfer.published import (
    Correspondence,
    add_published_values,
    describe_compared_columns,
    explain_no_comparison,
    find_correspondence,
    has_published_values,
    list_difference_notes,
)
from tasktransfer.designs.transfer.runs import (
    fit_short_names,
    get_algorithm_label,
    get_short_names,
)
from tasktransfer.errors import format_quantity
from tasktransfer.present.numbers import DASH, INCOMPLETE, OTHERWISE, format_delta
from tasktransfer.present.printed import Layout, Line, group_blocks
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, sort_rows

_GROUP = ["dataset", "target", "source", "model", "algorithm"]
COLUMNS = [
    *_GROUP,
    "n_sources",
    "multi_delta",
    "single_delta",
    "difference",
    "n_seeds",
    "n_expected",
    "n_singles",
    "complete",
]


def compute_multi_source_gains(
    deltas: pd.DataFrame, missing: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Compare the delta of each multi-source run with the mean delta of its single sources.

    Args:
        deltas: columns of ``columns.DELTAS``.
        missing: columns of ``columns.MISSING``. If given, multi-source runs that are missing for
            all seeds have a row without numbers, and missing seeds make a row incomplete.

    Returns:
        One row per dataset, target, sources (joined by ``+`` in ``source``), model and algorithm.
        ``multi_delta``: mean over seeds. ``single_delta``: mean over those of its sources that
        have single-source runs with the same model, algorithm and target, each a mean over seeds.
        ``difference``: the first minus the second (the paper's Table 3). ``n_singles``: number of
        finished single sources out of ``n_sources``. ``n_expected``: planned seeds (at least
        ``n_seeds``, the finished ones). ``complete``: whether all sources and seeds are finished
        and each single source has as many seeds as the multi-source run.
    """
    measured = deltas[deltas["delta"].notna()]
    several = measured[measured["n_sources"] > 1]
    lost = several.iloc[:0] if missing is None else missing[missing["n_sources"] > 1]
    if several.empty and lost.empty:
        return pd.DataFrame(columns=COLUMNS)
    multi = _compute_multi_means(several, lost)
    joined = multi.merge(_average_single_sources(measured, multi), on=_GROUP, how="left")
    joined["n_singles"] = joined["n_singles"].fillna(0).astype("int64")
    joined["difference"] = joined["multi_delta"] - joined["single_delta"]
    joined["complete"] = (
        (joined["n_seeds"] == joined["n_expected"])
        & (joined["n_singles"] == joined["n_sources"])
        & (joined["fewest_seeds"] >= joined["n_seeds"])
    )
    return joined[COLUMNS]


def _compute_multi_means(several: pd.DataFrame, lost: pd.DataFrame) -> pd.DataFrame:
    """Average multi-source runs over seeds, and count finished and planned seeds.

    A run whose baseline is missing is in ``lost`` and not in ``several``.
    """
    planned = pd.concat([frame for frame in (several, lost) if len(frame)], ignore_index=True)
    groups = planned.groupby(_GROUP, sort=False)
    means = several.groupby(_GROUP, sort=False).agg(
        multi_delta=("delta", "mean"), n_seeds=("seed", "nunique")
    )
    multi = groups.agg(n_sources=("n_sources", "first"), n_expected=("seed", "nunique")).join(means)
    multi["n_seeds"] = multi["n_seeds"].fillna(0).astype("int64")
    multi["multi_delta"] = multi["multi_delta"].astype("float64")
    return multi.reset_index()


def _average_single_sources(measured: pd.DataFrame, multi: pd.DataFrame) -> pd.DataFrame:
    """Average the mean deltas of a multi-source run's single sources."""
    singles = (
        measured[measured["n_sources"] == 1]
        .groupby(_GROUP, sort=False)
        .agg(delta=("delta", "mean"), seeds=("seed", "nunique"))
        .reset_index()
        .rename(columns={"source": "single"})
    )
    parts = multi[_GROUP].assign(single=multi["source"].str.split("+")).explode("single")
    matched = parts.merge(singles, on=["dataset", "target", "model", "algorithm", "single"])
    return (
        matched.groupby(_GROUP, sort=False)
        .agg(
            single_delta=("delta", "mean"),
            n_singles=("single", "nunique"),
            fewest_seeds=("seeds", "min"),
        )
        .reset_index()
    )


_KEYS = ["dataset", "target", "model", "algorithm"]
_SORTED_BY = {
    "dataset": "dataset",
    "target": "task",
    "source": "sources",
    "model": "model",
    "algorithm": "algorithm",
}
_ROW = {
    "dataset": "dataset",
    "target": "target task",
    "short": "its short name",
    "source": "source tasks joined by +",
    "n_sources": "number of source tasks",
    "model": "model, as the study names it",
    "algorithm": "transfer algorithm",
}
_COUNTS = {
    "n_seeds": "seeds of the runs on all sources together",
    "n_expected": "planned seeds",
    "n_singles": "sources with finished single-source runs",
    "complete": "n_seeds == n_expected and n_singles == n_sources, the singles with all seeds",
}
MEASURES3 = ("gain",)
ALSO6 = {"note": "note on the published numbers; null if there is none"}
MEASURES6 = ("single_source_delta", "multi_source_delta")
COLUMNS3 = {
    **_ROW,
    "gain": "multi-source delta - mean delta of its sources alone, points",
    **_COUNTS,
    **describe_compared_columns(MEASURES3, "Table 3"),
}
"""Meanings of Table 3's columns; ``published_`` and ``difference_`` exist if comparable."""
COLUMNS6 = {
    **_ROW,
    "single_source_delta": "mean over the sources of each source's delta alone (a mean over "
    "seeds), points",
    "multi_source_delta": "delta of the run on all sources together, mean over seeds, points",
    **_COUNTS,
    **describe_compared_columns(MEASURES6, "Table 6", ALSO6),
}
"""Meanings of Table 6's columns; ``published_`` and ``difference_`` exist if comparable."""


def compute_table3(frames: Frames) -> pd.DataFrame | None:
    """Compute the gains of several sources over their single sources, next to the paper's.

    Returns:
        One row per dataset, target, sources, model and algorithm, columns as in ``COLUMNS3``;
        None if no multi-source run is finished or planned.
    """
    return _attach_published(frames, MEASURES3, published.read_table3())


def compute_table6(frames: Frames) -> pd.DataFrame | None:
    """Compute the multi-source and single-source deltas behind Table 3, next to the paper's.

    Returns:
        One row per dataset, target, sources, model and algorithm, columns as in ``COLUMNS6``;
        None if no multi-source run is finished or planned.
    """
    return _attach_published(frames, MEASURES6, published.read_table6(), also=list(ALSO6))


def _attach_published(
    frames: Frames, measures: Sequence[str], values: pd.DataFrame, also: Sequence[str] = ()
) -> pd.DataFrame | None:
    rows = _compute_gains(frames)
    if rows is None:
        return None
    agreement = _compare_sources(rows)
    ours = rows[[*_ROW, *measures, *_COUNTS]]
    if (agreement == "other").all():
        return ours
    comparable = find_correspondence(frames)
    # Rows with other sources are not looked up, because the paper's number does not apply to them.
    frame = add_published_values(
        ours[agreement != "other"], values, measures, _KEYS, comparable, also=also
    ).reindex(ours.index)
    reasons_of = frame.filter(like="differs_").fillna("")
    columns = {str(name): ours[name] for name in ours}
    return frame.assign(**columns, **{str(name): reasons_of[name] for name in reasons_of})


def _compare_sources(rows: pd.DataFrame) -> pd.Series:
    """Return how each row's sources agree with the paper's (``published.Agreement``)."""
    agreement = [
        published.compare_sources(str(target), str(source).split("+"))
        for target, source in zip(rows["target"], rows["source"], strict=True)
    ]
    return pd.Series(agreement, rows.index, dtype=object)


def _compute_gains(frames: Frames) -> pd.DataFrame | None:
    """Return the gains in the study's order with the tables' columns, or None without gains."""
    gains = compute_multi_source_gains(frames["deltas"], frames["missing_runs"])
    if gains.empty:
        return None
    gains = sort_rows(gains, _SORTED_BY, frames.metadata.order)
    names = _map_short_names(gains, frames.metadata)
    return gains.assign(short=gains["target"].map(names)).rename(
        columns={
            "difference": "gain",
            "single_delta": "single_source_delta",
            "multi_delta": "multi_source_delta",
        }
    )


def _map_short_names(frame: pd.DataFrame, metadata: Metadata) -> dict[str, str]:
    sources = [task for joined in frame["source"] for task in str(joined).split("+")]
    return fit_short_names(dict.fromkeys([*frame["target"], *sources]), get_short_names(metadata))


def describe_table3(
    frame: pd.DataFrame, metadata: Metadata, comparable: Correspondence
) -> list[str]:
    """Return the notes of Table 3."""
    return [_describe_source_choice(metadata), *_list_remarks(frame, comparable, "Table 3")]


def describe_table6(
    frame: pd.DataFrame, metadata: Metadata, comparable: Correspondence
) -> list[str]:
    """Return the notes of Table 6, including notes on the paper's numbers."""
    notes = [_describe_source_choice(metadata), *_list_remarks(frame, comparable, "Table 6")]
    if has_published_values(frame):
        names = _map_short_names(frame, metadata)
        noted = frame[frame["published_note"].notna()]
        notes += [
            f"* {names[row['target']]}, {row['model']}, "
            f"{get_algorithm_label(str(row['algorithm']))}: {row['published_note']}."
            for row in noted.to_dict("records")
        ]
    return notes


_CHOICES = {
    "test": (
        "Targets and sources were selected by the test scores that also evaluate them, as in the "
        "paper, so these numbers are biased upwards."
    ),
    "dev": "Targets and sources were selected by dev scores.",
    "config": "The targets and sources of this table are set in the config.",
}


def _describe_source_choice(metadata: Metadata) -> str:
    chooser = metadata.facts.get(SOURCES_CHOSEN_BY, "")
    selector = f"Targets were selected by dev scores, and their sources by the selector {chooser}."
    return _CHOICES.get(chooser, selector if chooser else "")


def _list_remarks(frame: pd.DataFrame, comparable: Correspondence, which: str) -> list[str]:
    remarks = []
    if not frame["complete"].all():
        remarks.append(
            f"{INCOMPLETE} Computed from fewer seeds or single sources than planned "
            "(present/expected)."
        )
    agreement = _compare_sources(frame)
    if has_published_values(frame):
        remarks.append(
            f"Published values are from the paper's {which}, for rows with the paper's sources."
        )
        if (agreement == "as far as legible").any():
            remarks.append(
                f"{OTHERWISE} after a number: not all of the paper's sources are legible, but "
                "those that are legible agree."
            )
        others = int((agreement == "other").sum())
        if others:
            rows = format_quantity(others, "row")
            remarks.append(
                f"{OTHERWISE} alone: {rows} with other sources than the paper, not compared."
            )
    elif comparable.models and (agreement == "other").all():
        return [
            *remarks,
            ("No row is compared with the paper, because no row has the paper's sources."),
        ]
    reasons = list_difference_notes(frame, comparable)
    return [*remarks, explain_no_comparison(frame, comparable), *reasons]


_HEAD = ("Dataset", "Target", "Sources", "Model", "Algorithm")
_TAIL = ("Seeds", "Singles")


def lay_out_table3(frame: pd.DataFrame, metadata: Metadata) -> Layout:
    """Lay out Table 3 with columns for published values and differences."""
    head = ("Gain", *_list_published_titles(frame, "gain"))
    return _build_layout(frame, metadata, {"gain": head})


def lay_out_table6(frame: pd.DataFrame, metadata: Metadata) -> Layout:
    """Lay out Table 6 with columns for published values and differences."""
    titles = {
        "single_source_delta": (
            "Singles'\nmean Δ",
            *_list_published_titles(frame, "single_source_delta"),
        ),
        "multi_source_delta": (
            "All sources\ntogether Δ",
            *_list_published_titles(frame, "multi_source_delta"),
        ),
    }
    return _build_layout(frame, metadata, titles)


def _list_published_titles(frame: pd.DataFrame, measure: str) -> tuple[str, ...]:
    """Return the titles of the columns for a measure's published value and difference."""
    beside = {"published": "Published", "difference": "Diff."}
    return tuple(title for name, title in beside.items() if f"{name}_{measure}" in frame)


def _build_layout(
    frame: pd.DataFrame, metadata: Metadata, measures: Mapping[str, tuple[str, ...]]
) -> Layout:
    names = _map_short_names(frame, metadata)
    entries = [
        (f"{row['dataset']} {row['target']}", (_format_line(row, names, list(measures)),))
        for row in frame.to_dict("records")
    ]
    head = (*_HEAD, *(title for titles in measures.values() for title in titles), *_TAIL)
    return Layout(head, len(_HEAD), group_blocks(entries))


def _format_line(
    row: Mapping[Hashable, Any], names: Mapping[str, str], measures: list[str]
) -> Line:
    mark = "" if row["complete"] else INCOMPLETE
    numbers: list[str] = []
    for measure in measures:
        numbers.append(format_delta(row[measure]))
        if f"published_{measure}" in row:
            numbers += _format_published(row, measure)
    return (
        str(row["dataset"]),
        names[row["target"]],
        " + ".join(names[task] for task in str(row["source"]).split("+")),
        str(row["model"]),
        get_algorithm_label(str(row["algorithm"])) + mark,
        *numbers,
        f"{row['n_seeds']}/{row['n_expected']}",
        f"{row['n_singles']}/{row['n_sources']}",
    )


def _format_published(row: Mapping[Hashable, Any], measure: str) -> list[str]:
    """Format the paper's value and, if available, its difference from ours."""
    sources = str(row["source"]).split("+")
    agreement = published.compare_sources(str(row["target"]), sources)
    if agreement == "other":
        return [OTHERWISE, *([DASH] if f"difference_{measure}" in row else [])]
    partly = agreement == "as far as legible"
    value, difference = row[f"published_{measure}"], row.get(f"difference_{measure}", math.nan)
    note = "" if pd.isna(row.get("published_note")) else "*"
    if f"difference_{measure}" not in row:
        return [format_delta(value) + note + (OTHERWISE if partly and not pd.isna(value) else "")]
    return [
        format_delta(value) + note,
        format_delta(difference) + (OTHERWISE if partly and not pd.isna(difference) else ""),
    ]
