"""Data of the interactive heatmap: every cell with its numbers, colour and records.

A cell shows points, percent of the baseline's score, or its q. Colours are faded if the interval
includes 0 or if there is only one seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm, to_hex, to_rgb

from tasktransfer.designs.transfer.choices import NO_INTERVAL
from tasktransfer.designs.transfer.figures.heatmap_panels import list_margin_rows
from tasktransfer.designs.transfer.figures.one_dataset import list_datasets
from tasktransfer.designs.transfer.report.heatmap_parts import (
    CellLook,
    DatasetHeatmap,
    HeatmapCell,
    HeatmapData,
    PromptedRow,
    TaskDetails,
    describe_tasks,
    get_run_key,
    group_curves,
)
from tasktransfer.designs.transfer.report.learned import describe_baseline, list_unlearned_targets
from tasktransfer.designs.transfer.runs import BASELINE, fit_short_names, get_algorithm_label
from tasktransfer.present.html import to_records
from tasktransfer.present.kit.style import (
    DIVERGING,
    NEUTRAL,
    choose_text_colour,
    compute_colour_limit,
    compute_improvement_limit,
    format_signed,
)
from tasktransfer.present.numbers import DIFFERENCES, bound_interval, excludes_zero, format_p_value
from tasktransfer.results.frames import Frames

POINTS, PERCENT, Q = "points", "percent", "q"
"""Units of the numbers in cells."""
FADED = 0.25
"""Strength of a faded cell's colour."""
WITHOUT_PERCENTAGE = "#f7f7f7"
"""Fill of cells with a baseline of 0. They show points, because a percentage is undefined."""

Key = tuple[str, str, str, str]
"""Model, algorithm, source (joined by +; empty for a baseline) and target of a cell."""


def build_payload(frames: Frames, explain: str) -> HeatmapData:
    """Return the data that ``heatmap.js`` reads, as JSON values.

    Args:
        frames: the study's frames.
        explain: the command that explains a cell, up to the dataset.
    """
    runs = frames["transfer_runs"]
    names = runs[["digest", "target"]].itertuples(index=False, name=None)
    places = {name: index for index, name in enumerate(names)}
    curves = group_curves(frames["training_curves"])
    return {
        "explain": explain,
        "runs": [
            [
                *(int(row["seed"]), _round_number(row["score"]), row["digest"], row["path"]),
                curves.get(get_run_key(row), []),
            ]
            for row in to_records(runs)
        ],
        "datasets": [_build_dataset(frames, dataset, places) for dataset in list_datasets(frames)],
    }


RunName = tuple[str, str]
"""Digest of the stage, and target: a stage may be tested on several targets."""


def _build_dataset(frames: Frames, dataset: str, places: Mapping[RunName, int]) -> DatasetHeatmap:
    ordered = frames.metadata.order_names
    runs, missing = (
        _select_dataset(frames["transfer_runs"], dataset),
        _select_dataset(frames["missing_runs"], dataset),
    )
    cells = _select_dataset(frames["cells"], dataset)
    singles = [frame[frame["n_sources"] == 1]["source"] for frame in (runs, missing)]
    tasks = ordered("task", [*runs["target"], *missing["target"], *singles[0], *singles[1]])
    algorithms = ordered("algorithm", [*runs["algorithm"], *missing["algorithm"]])
    several = [*runs[runs["n_sources"] > 1]["source"], *missing[missing["n_sources"] > 1]["source"]]
    names = fit_short_names(tasks, frames.metadata.shorts)
    alone = cells[cells["n_sources"] == 1]
    limits = {
        POINTS: compute_colour_limit(alone["delta"].to_numpy(np.float64)),
        PERCENT: compute_improvement_limit(alone["improvement"].to_numpy(np.float64)),
    }
    models = ordered("model", [*runs["model"], *missing["model"]])
    scale = mpl.colormaps[DIVERGING]
    return {
        "name": dataset,
        "models": models,
        "algorithms": [
            {"name": name, "label": get_algorithm_label(name)}
            for name in algorithms
            if name != BASELINE
        ],
        "opens": find_best_algorithms(_select_dataset(frames["summary"], dataset)),
        "tasks": [{"name": task, "short": names[task]} for task in tasks],
        "targets": [
            {"name": task, "short": names[task]}
            for task in tasks
            if task in {*runs["target"], *missing["target"]}
        ],
        "several": [
            {"name": name, "short": " + ".join(names.get(part, part) for part in name.split("+"))}
            for name in dict.fromkeys(several)
        ],
        "cards": _add_baseline_states(describe_tasks(dataset, tasks), frames, alone),
        "asked": _build_prompted_rows(frames.get("prompted"), dataset, tasks),
        "limits": limits,
        "colours": [to_hex(scale(part)) for part in np.linspace(0, 1, 21)],
        "cells": _build_cells(
            _select_dataset(frames["deltas"], dataset), runs, missing, cells, places, limits
        ),
        "unlearned": [
            [model, target]
            for model in models
            for target in list_unlearned_targets(frames, dataset, model)
        ],
    }


def find_best_algorithms(summary: pd.DataFrame) -> dict[str, str]:
    """Return a mapping from model to the algorithm with the highest mean change.

    Args:
        summary: rows of one dataset, with columns of ``columns.SUMMARY``.
    """
    known = summary[summary["mean"].notna()].sort_values("mean", ascending=False, kind="stable")
    best = known.drop_duplicates("model")
    return dict(zip(best["model"], best["algorithm"], strict=True))


def _add_baseline_states(
    cards: dict[str, TaskDetails], frames: Frames, cells: pd.DataFrame
) -> dict[str, TaskDetails]:
    """Add the states of each target's baselines to the target's entry."""
    several = cells["model"].nunique() > 1
    targets = cells.drop_duplicates(["model", "target"])
    for row in to_records(targets):
        if row["target"] not in cards:
            continue
        place = (row["dataset"], row["model"], row["target"])
        state = describe_baseline(frames, place, row["baseline_score"]).state
        name = f"baseline of {row['model']}" if several else "baseline"
        if state:
            cards[row["target"]]["facts"].append([name, state])
    return cards


def _build_prompted_rows(
    prompted: pd.DataFrame | None, dataset: str, tasks: Sequence[str]
) -> list[PromptedRow]:
    """Return rows of prompted models below the heatmap, as in the printed figure."""
    return [
        {
            "name": name,
            "scores": {
                task: f"{score:.1f}"
                for task, score in zip(tasks, scores, strict=True)
                if not math.isnan(score)
            },
        }
        for name, scores in list_margin_rows(prompted, dataset, tasks)
    ]


def _select_dataset(frame: pd.DataFrame, dataset: str) -> pd.DataFrame:
    return frame[frame["dataset"] == dataset]


def _build_cells(
    deltas: pd.DataFrame,
    runs: pd.DataFrame,
    missing: pd.DataFrame,
    cells: pd.DataFrame,
    places: Mapping[RunName, int],
    limits: Mapping[str, float],
) -> list[HeatmapCell]:
    """Return cells with results (transfers, then baselines), followed by cells without any."""
    gaps = _group_gaps(missing)
    pairs = _index_pairs(deltas, places)
    whole = cells[cells["delta"].notna()]
    mixed = _find_mixed_signs(deltas)
    shown: list[HeatmapCell] = [
        {**_build_transfer_cell(row, pairs, gaps, limits), "mixed": _build_key(row) in mixed}
        for row in to_records(whole)
    ]
    shown += _build_baseline_cells(runs, places, gaps)
    there = {(c["model"], c["algorithm"] or BASELINE, c["source"], c["target"]) for c in shown}
    return shown + [
        _build_missing_cell(key, why, pairs.get(key, []))
        for key, why in gaps.items()
        if key not in there
    ]


def _build_key(row: Mapping[str, Any]) -> Key:
    return row["model"], row["algorithm"], row["source"], row["target"]


def _group_gaps(missing: pd.DataFrame) -> dict[Key, list[str]]:
    """Map each cell to one line per planned run that is missing."""
    gaps: dict[Key, list[str]] = {}
    for row in to_records(missing):
        gaps.setdefault(_build_key(row), []).append(f"seed {row['seed']}: {row['reason']}")
    return gaps


def _index_pairs(
    deltas: pd.DataFrame, places: Mapping[RunName, int]
) -> dict[Key, list[list[int | None]]]:
    """Map each cell to the indices of its runs and their baselines in ``runs``, by seed."""
    pairs: dict[Key, list[list[int | None]]] = {}
    for row in to_records(deltas.sort_values("seed", kind="stable")):
        run, baseline = ((row[key], row["target"]) for key in ("digest", "baseline_digest"))
        pairs.setdefault(_build_key(row), []).append([places[run], places.get(baseline)])
    return pairs


def _find_mixed_signs(deltas: pd.DataFrame) -> set[Key]:
    """Return the cells with both gains and losses among their seeds."""
    known = deltas[deltas["delta"].notna()]
    keys = ["model", "algorithm", "source", "target"]
    ends = known.groupby(keys, sort=False)["delta"].agg(["min", "max"])
    return {*ends.index[(ends["min"] < 0) & (ends["max"] > 0)]}


def _build_transfer_cell(
    row: Mapping[str, Any],
    pairs: Mapping[Key, list[list[int | None]]],
    gaps: Mapping[Key, list[str]],
    limits: Mapping[str, float],
) -> HeatmapCell:
    why = gaps.get(_build_key(row), [])
    low, high = bound_interval(row["low"], row["high"], DIFFERENCES)
    faded = row["n_seeds"] < 2 or not excludes_zero(row["low"], row["high"])
    return {
        "model": row["model"],
        "algorithm": row["algorithm"],
        "source": row["source"],
        "target": row["target"],
        "state": "transfer",
        "score": _round_number(row["score"]),
        "baseline_score": _round_number(row["baseline_score"]),
        "delta": _round_number(row["delta"]),
        "improvement": _round_number(row["improvement"]),
        "p": _round_number(row["p"]),
        "q": _round_number(row["q"]),
        "significant": bool(row["significant"]),
        "low": _round_number(low),
        "high": _round_number(high),
        "mark": _choose_mark(row),
        "faded": faded,
        "looks": _build_looks(row, limits, faded=faded, mark="*" if why else ""),
        "seeds": [int(seed) for seed in row["seeds"]],
        "instances": int(row["instances"]),
        "dialogues": int(row["dialogues"]),
        "no_interval": None if pd.isna(row["no_interval"]) else row["no_interval"],
        "runs": pairs.get(_build_key(row), []),
        "gaps": why,
    }


def _choose_mark(row: Mapping[str, Any]) -> str:
    """Return the frame, ring or hatching with which the printed heatmap marks a cell."""
    if row["no_interval"] == NO_INTERVAL:
        return "left-race"
    if row["n_seeds"] == 1:
        return "one-training"
    return "significant" if row["significant"] else ""


def _build_looks(
    row: Mapping[str, Any], limits: Mapping[str, float], *, faded: bool, mark: str
) -> dict[str, CellLook]:
    """Map each unit to a cell's text, fill, text colour and whether it exceeds the colour scale."""
    points = _build_look(row["delta"], limits[POINTS], faded=faded)
    percent = _build_look(row["improvement"], limits[PERCENT], faded=faded)
    if math.isnan(row["improvement"]):
        percent = _format_look(f"Δ{points['text']}", WITHOUT_PERCENTAGE, beyond=points["beyond"])
    in_q: CellLook = {**points, "text": format_p_value(row["q"])}
    looks = {POINTS: points, PERCENT: percent, Q: in_q}
    return {unit: {**look, "text": look["text"] + mark} for unit, look in looks.items()}


def _build_look(value: float, limit: float, *, faded: bool) -> CellLook:
    if math.isnan(value):
        return {"text": "", "beyond": False}
    colour = np.array(mpl.colormaps[DIVERGING](float(TwoSlopeNorm(0, -limit, limit)(value))))
    if faded:
        colour = FADED * colour + (1 - FADED)  # towards white
    return _format_look(format_signed(value), colour, beyond=bool(abs(value) > limit))


def _format_look(text: str, colour: Any, *, beyond: bool) -> CellLook:
    """Format a cell's look, with colours as hexadecimal codes."""
    ink = _choose_text_colour(to_rgb(to_hex(colour)))
    return {"text": text, "fill": to_hex(colour), "ink": ink, "beyond": beyond}


def _choose_text_colour(colour: Any) -> str:
    """Choose pure black or white for the text on a fill.

    On a screen both then have a contrast of at least 4.5 (WCAG 2) on every fill. The printed
    figure's softer black does not reach that on medium fills.
    """
    return "#ffffff" if choose_text_colour(colour) == "white" else "#000000"


def _build_baseline_cells(
    runs: pd.DataFrame, places: Mapping[RunName, int], gaps: Mapping[Key, list[str]]
) -> list[HeatmapCell]:
    """Return the diagonal cells, which show the baseline score of each model and task."""
    own = runs[runs["algorithm"] == BASELINE].sort_values("seed", kind="stable")
    baselines: list[HeatmapCell] = []
    for (model, target), rows in own.groupby(["model", "target"], sort=False):
        why = gaps.get((str(model), BASELINE, "", str(target)), [])
        score = float(rows["score"].mean())
        baselines.append(
            {
                "model": str(model),
                "algorithm": None,
                "source": "",
                "target": str(target),
                "state": "baseline",
                "score": score,
                "seeds": [int(seed) for seed in rows["seed"]],
                "text": f"{score:.1f}" + ("*" if why else ""),
                "fill": NEUTRAL,
                "ink": _choose_text_colour(to_rgb(NEUTRAL)),
                "runs": [[places[digest, str(target)], None] for digest in rows["digest"]],
                "gaps": why,
            }
        )
    return baselines


def _build_missing_cell(
    key: Key, why: Sequence[str], runs: Sequence[list[int | None]]
) -> HeatmapCell:
    """Return a cell without a number, because its run or its baseline is missing."""
    model, algorithm, source, target = key
    return {
        "model": model,
        "algorithm": None if algorithm == BASELINE else algorithm,
        "source": source,
        "target": target,
        "state": "missing",
        "text": "",
        "runs": list(runs),
        "gaps": list(why),
    }


def _round_number(value: Any) -> float | None:
    """Round a number to ten significant digits for JSON, with None for NaN."""
    return None if pd.isna(value) else float(f"{float(value):.10g}")
