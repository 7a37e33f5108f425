"""Facts about a study for its report."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.tables.names import get_algorithm_label
from tasktransfer.errors import format_quantity
from tasktransfer.present.marks import describe_limits
from tasktransfer.present.page.origin import (
    NOTHING_MISSING,
    SHORT,
    describe_commits,
    describe_versions,
)
from tasktransfer.results.common_frames import MISSING
from tasktransfer.results.frames import Frames
from tasktransfer.results.metadata import Metadata, format_synthetic_mark


def list_facts(frames: Frames) -> list[tuple[str, str]]:
    """Return facts about a study as (name, value): config, data, models, versions and counts."""
    runs, metadata = frames["transfer_runs"], frames.metadata
    models = runs.drop_duplicates("model")[["model", "family"]].itertuples(index=False, name=None)
    return [
        ("Study", metadata.study),
        ("Config", f"digest {metadata.config_digest[:SHORT]}"),
        ("Data", _describe_data(metadata, runs["dataset"])),
        *_describe_datasets(runs),
        ("Models", ", ".join(f"{name} ({family})" for name, family in models)),
        ("Algorithms", ", ".join(_list_algorithms(frames)) or "baselines only"),
        ("Seeds", _describe_all_seeds(runs)),
        ("Records", f"{metadata.records:,}"),
        ("Missing", metadata.facts.get(MISSING, NOTHING_MISSING)),
        ("Left out", f"{len(frames['problems']):,} damaged records"),
        (
            "Trained by",
            f"recipe {_join_unique(runs['recipe'])}; code at {describe_commits(runs, 'runs')}",
        ),
        ("Analysed by", describe_versions(metadata.version)),
    ]


def _describe_all_seeds(runs: pd.DataFrame) -> str:
    """Describe the seeds of transfers, and those of baselines if they differ."""
    of_baselines = sorted(runs.loc[runs["n_sources"] == 0, "seed"].unique())
    of_transfers = sorted(runs.loc[runs["n_sources"] > 0, "seed"].unique()) or of_baselines
    text = _describe_seeds(of_transfers)
    return (
        text
        if of_baselines == of_transfers
        else f"{text}; of baselines {_describe_seeds(of_baselines)}"
    )


def _describe_data(metadata: Metadata, names: Iterable[str]) -> str:
    mark = format_synthetic_mark(metadata.real).rstrip(". ") if metadata.synthetic else ""
    data = mark.replace("SYNTHETIC", "synthetic") or _format_source_names({*names})
    return f"{data}, subsampled: {describe_limits(metadata.cuts)}" if metadata.cuts else data


def _format_source_names(names: set[str]) -> str:
    released = names & {dataset.name for dataset in PACKAGE_DATASETS}
    parts = [
        *(["a release of the benchmark"] if released else []),
        *(["the study's own dialogues"] if names - released else []),
    ]
    return " and ".join(parts)


def _list_algorithms(frames: Frames) -> list[str]:
    names = [*frames["transfer_runs"]["algorithm"], *frames["missing_runs"]["algorithm"]]
    ordered = frames.metadata.order_names("algorithm", names)
    return [get_algorithm_label(name) for name in ordered if name != BASELINE]


def _describe_seeds(numbers: list[int]) -> str:
    """Describe the number of seeds and their values."""
    plural = "" if len(numbers) == 1 else "s"
    listed = ", ".join(map(str, numbers))
    return f"{len(numbers)} seed{plural} (number{plural} {listed})" if numbers else "none"


def _describe_datasets(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Describe each dataset by its revision, split and number of tasks, as (dataset, text)."""
    lines = []
    for dataset, rows in runs.groupby("dataset", sort=False):
        sample = " and ".join(
            "few-sample split" if few else "full split" for few in rows["few_sample"].unique()
        )
        revision = _join_unique(rows["data_revision"])
        tasks = format_quantity(rows["target"].nunique(), "task")
        lines.append((str(dataset), f"revision {revision}, {sample}, {tasks} with a score"))
    return lines


def _join_unique(values: pd.Series[str]) -> str:
    return ", ".join(str(value) for value in values.unique())
