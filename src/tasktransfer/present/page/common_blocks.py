"""Cost, learning curves, provenance and missing results of a study of any design."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata as packages
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
from markupsafe import Markup

from tasktransfer.present.columns import (
    Column,
    make_long_text_column,
    make_number_column,
    make_text_column,
)
from tasktransfer.present.declared import Block
from tasktransfer.present.html import PAGE, HtmlTable, build_table, create_environment, escape_json
from tasktransfer.present.marks import MARK, SUBSTITUTE, describe_limits, list_substitutes
from tasktransfer.present.numbers import round_significant
from tasktransfer.results.common_frames import MISSING
from tasktransfer.results.frames import Frames
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import order_names

ANALYSED_WITH = ("numpy", "pandas", "pyarrow", "scipy", "matplotlib")
NOTHING_MISSING = "nothing: every planned node has a record"
MEASURES = ("loss", "dev_score")
SHORT = 12
"""Number of characters of a printed digest, as in the paths of results."""


def build_cost_table(resources: pd.DataFrame) -> HtmlTable:
    """Return a table of time, memory and hardware by kind of node and model."""
    keys = ["kind", "model", "hardware", "precision"]
    rows = resources.fillna(dict.fromkeys(keys, "")).groupby(keys, sort=False, as_index=False)
    frame = rows.agg(
        nodes=("path", "size"),
        mean=("hours", "mean"),
        hours=("hours", "sum"),
        memory=("peak_memory_mb", "max"),
        gpu=("peak_gpu_memory_mb", "max"),
        trained=("trained_parameters", "max"),
    ).replace({"": None})
    return build_table(
        "time_and_memory",
        "Time and memory",
        f"Wall time of {len(resources):,} records, {resources['hours'].sum():,.2f} hours in total.",
        frame,
        (
            make_text_column("kind", "Kind"),
            make_text_column("model", "Model"),
            make_text_column("hardware", "Hardware"),
            make_text_column("precision", "Precision"),
            make_number_column("nodes", "Records", ",d"),
            make_number_column("mean", "Mean hours", ".3g"),
            make_number_column("hours", "Total hours", ".3g"),
            make_number_column("memory", "Peak memory, MiB", ",.0f"),
            make_number_column("gpu", "Peak GPU memory, MiB", ",.0f"),
            make_number_column("trained", "Trained parameters", ",.0f"),
        ),
        keys=2,
        folded=True,
    )


def build_curves(rounds: pd.DataFrame) -> Block | None:
    """Return the page's block of learning curves, or None without trainings.

    Args:
        rounds: rows of the frame ``training_rounds``.
    """
    if rounds.empty:
        return None
    trainings = [
        _describe_training(str(path), rows)
        for path, rows in rounds.groupby("path", sort=False, observed=True)
    ]
    template = create_environment(PAGE).get_template("curves.html.j2")
    html = template.render(count=len(trainings), data=escape_json(trainings))
    return Block(html=Markup(html))


def _describe_training(path: str, rows: pd.DataFrame) -> list[Any]:
    """Return a training's name, seed, record, losses, dev scores and selected round."""
    selected = [*rows["selected"]].index(True)
    curves: Sequence[list[float | None]] = [
        [*map(round_significant, rows[key])] for key in MEASURES
    ]
    record = f"{path}/{RECORD}"
    return [_format_training(path), int(rows["seed"].iloc[0]), record, *curves, selected]


def _format_training(path: str) -> str:
    """Return the folder names of a training between ``stages`` and the seed."""
    return " · ".join(PurePosixPath(path).parts[1:-1])


def list_facts(frames: Frames) -> list[tuple[str, str]]:
    """Return facts about a study as (name, value), such as its config, data and versions."""
    metadata, resources = frames.metadata, frames["resources"]
    replaced = list_substitutes(metadata)
    facts = {**metadata.facts, MISSING: metadata.facts.get(MISSING, NOTHING_MISSING)}
    others = {name: text for name, text in facts.items() if not name.startswith(SUBSTITUTE)}
    return [
        ("Study", metadata.study),
        ("Config", f"{frames.study.config_file}, digest {metadata.config_digest[:SHORT]}"),
        ("Data", describe_data(frames)),
        *((f"Substitute for {name}", text) for name, text in replaced.items()),
        *((_capitalise(name.removeprefix(MARK)), text) for name, text in others.items()),
        ("Seeds", ", ".join(map(str, frames.study.config.seeds))),
        ("Records", f"{metadata.records:,}"),
        (
            "Made by",
            f"recipe {_join_values(resources['recipe'])}; code at {describe_commits(resources)}",
        ),
        ("Analysed by", describe_versions(metadata.version)),
    ]


def describe_data(frames: Frames) -> str:
    """Describe the dialogues: real or synthetic, and complete or subsampled."""
    metadata = frames.metadata
    text = "synthetic dialogues (tiny world)" if metadata.synthetic else "real dialogues"
    if metadata.real:
        text += f"; real dialogues of {' and '.join(metadata.real)}"
    return f"{text}, subsampled: {describe_limits(metadata.cuts)}" if metadata.cuts else text


def describe_commits(rows: pd.DataFrame, what: str = "records") -> str:
    """Describe the commits that created the rows, with counts for several commits."""
    counts = rows["commit"].fillna("an unknown commit").value_counts(sort=False)
    shown = {str(commit): int(count) for commit, count in counts.items()}
    short = {commit: commit if " " in commit else commit[:SHORT] for commit in shown}
    if len(shown) == 1:
        return next(iter(short.values()))
    return ", ".join(f"{short[commit]} ({count:,} {what})" for commit, count in shown.items())


def describe_versions(version: str) -> str:
    """Describe the versions of this package, Python and the numeric libraries."""
    named = ", ".join(f"{name} {_find_version(name)}" for name in ANALYSED_WITH)
    return f"tasktransfer {version}, Python {platform.python_version()}, {named}"


def _capitalise(name: str) -> str:
    return name[:1].upper() + name[1:]


def _join_values(values: pd.Series[int]) -> str:
    return ", ".join(str(value) for value in values.unique())


def _find_version(package: str) -> str:
    try:
        return packages.version(package)
    except packages.PackageNotFoundError:
        return "unknown"


FOLD = 40
"""Number of rows above which a list is collapsed."""

STATES = {
    "failed": "The job ended with an error; the table shows its last line.",
    "damaged": "The record exists but cannot be used.",
    "interrupted": "The job was stopped before it finished.",
    "baseline missing": ("The run has a result, but its baseline does not have one."),
    "running": "The job was running when the tables were collected.",
    "waiting": (
        "The job of the run has not started. Run the workflow again to train these runs. A study "
        "of merged records is complete without these runs, and its numbers are computed from the "
        "other runs."
    ),
}
"""State of a missing run → its meaning; states that need attention come first."""

NOT_NAMES = ("path", "state", "reason", "node", "stage", "error", "remedy", "seed")
"""Columns of the common table of missing runs that do not name a run."""


def format_warnings(missing: pd.DataFrame, problems: pd.DataFrame, nodes: str = "") -> list[str]:
    """Return warnings on missing results for the top of a page, one per line.

    Args:
        missing: planned runs without a result.
        problems: damaged records.
        nodes: planned nodes without a record, by kind (``Collected.describe_missing``).
    """
    lines = []
    if len(missing):
        names = [str(name) for name in missing if name not in NOT_NAMES]
        runs = missing.drop_duplicates([*names, "seed"])
        parts = [
            _describe_state(runs[runs["state"] == state], state)
            for state in order_names(runs["state"], [*STATES])
        ]
        what = "run has" if len(runs) == 1 else "runs have"
        lines.append(f"{len(runs):,} planned {what} no result: {', '.join(parts)}.")
    if nodes:
        needs = " A run may need several records." if len(missing) else ""
        lines.append(f"No record exists for {nodes}.{needs}")
    if len(problems):
        records = "record was" if len(problems) == 1 else "records were"
        lines.append(f"{len(problems):,} damaged {records} left out.")
    return lines


def _describe_state(runs: pd.DataFrame, state: str) -> str:
    """Describe the runs in a state with their methods, e.g. ``17 waiting (prompted)``."""
    count = f"{len(runs):,} {state}"
    methods = [*runs["method"].dropna().unique()] if "method" in runs else []
    named = [str(method).replace("_", " ") for method in methods]
    return f"{count} ({', '.join(named)})" if named else count


def is_only_waiting(missing: pd.DataFrame, problems: pd.DataFrame) -> bool:
    """Return whether every missing run is still pending, and no record is damaged.

    A study of merged records, whose missing runs were never planned to be trained, is an example.
    """
    return not len(problems) and bool((missing["state"] == "waiting").all())


def build_common_columns(missing: pd.DataFrame) -> list[Column]:
    """Return those columns of the table of missing results that contain a value."""
    filled = missing.columns[missing.notna().any()]
    names = [str(name) for name in filled if name not in NOT_NAMES]
    return [
        *(make_text_column(name, name.replace("_", " ").capitalize()) for name in names),
        make_number_column("seed", "Seed", "d"),
        make_long_text_column("reason", "Reason"),
        make_long_text_column("remedy", "Remedy"),
        make_long_text_column("node", "Node"),
    ]


def build_missing_tables(
    missing: pd.DataFrame, problems: pd.DataFrame, columns: Sequence[Column], keys: int
) -> list[HtmlTable]:
    """Return a table of missing results per state, most urgent first, and one of damaged records.

    Args:
        missing: planned runs without a result.
        problems: damaged records.
        columns: columns of the tables of missing runs.
        keys: number of the first columns that name a run.
    """
    lists = [
        build_table(
            f"missing-{state.replace(' ', '-')}",
            state.capitalize(),
            STATES.get(state, ""),
            rows,
            columns,
            keys=keys,
            folded=len(rows) > FOLD,
        )
        for state in order_names(missing["state"], [*STATES])
        if len(rows := missing[missing["state"] == state])
    ]
    return [*lists, *([_build_problem_table(problems)] if len(problems) else [])]


def _build_problem_table(frame: pd.DataFrame) -> HtmlTable:
    return build_table(
        "problems",
        "Excluded records",
        "Damaged or contradictory records. None of their numbers is used.",
        frame,
        (make_long_text_column("path", "Record"), make_long_text_column("error", "Problem")),
        folded=len(frame) > FOLD,
    )
