"""The Python API: open, plan and run a study, and load its results as pandas data frames.

    import tasktransfer as tt

    results = tt.load_results("results/demo")
    results.cells                   # one row per cell of the heatmap: delta, interval, p, q
    results.describe("cells")       # the meaning of each column
    tt.plan("workflow/presets/demo.yaml").runs
    tt.run("workflow/presets/demo.yaml", cores=2)
    tt.load_model("my-model").predict(["Where is my order?"])

Loading results and planning import neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasktransfer.errors import ConfigError, RecordError, suggest_name
from tasktransfer.files import json_text

if TYPE_CHECKING:
    from tasktransfer.jobs.predictor import Predictor
    from tasktransfer.results.study import Study

__all__ = ["Results", "StudyPlan", "load_model", "load_results", "open_study", "plan", "run"]

_FIRST = ("runs", "scores", "deltas", "cells", "summary", "missing")
"""Tables that ``repr`` lists first, if the study has them."""


class _Description(pd.DataFrame):
    """A data frame whose texts are printed in full; pandas cuts them after 50 characters."""

    def __repr__(self) -> str:
        rows = (f"{row.column} ({row.type})\n    {row.meaning}" for row in self.itertuples())
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None, "display.max_rows", None):
            return self.to_html(index=False)


@dataclass(frozen=True, repr=False)
class Results(Mapping[str, pd.DataFrame]):
    """The tables of a study, by name. A table is read on first use.

    ``results["cells"]`` and ``results.cells`` are the same data frame. Every design has ``runs``,
    ``scores``, ``missing`` and ``problems``; docs/columns.md lists the others.
    """

    folder: Path
    """Folder of the Parquet files."""
    metadata: Mapping[str, Any]
    """Facts about the study: ``study``, ``synthetic``, ``records``, ``version`` and others."""
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def runs(self) -> pd.DataFrame:
        """Table with one row per run."""
        return self["runs"]

    @property
    def scores(self) -> pd.DataFrame:
        """Table with one row per run and measure."""
        return self["scores"]

    @property
    def cells(self) -> pd.DataFrame:
        """Table of effects over all seeds with interval, p and q, one row per cell."""
        return self["cells"]

    @property
    def summary(self) -> pd.DataFrame:
        """Table of means over cells with intervals, one row per dataset, model and algorithm."""
        return self["summary"]

    @property
    def missing(self) -> pd.DataFrame:
        """Table of planned results without a usable record, one row per result."""
        return self["missing"]

    def describe(self, table: str) -> pd.DataFrame:
        """Return a data frame with the name, type and meaning of each column of a table.

        Unlike other data frames, it prints long texts in full.

        Raises:
            KeyError: the study has no such table.
        """
        schema = pq.read_schema(self._find_file(table))
        rows = [
            (name, str(column.type), (column.metadata or {}).get(b"description", b"").decode())
            for name, column in zip(schema.names, schema, strict=True)
        ]
        return _Description(rows, columns=["column", "type", "meaning"])

    def __getitem__(self, table: str) -> pd.DataFrame:
        if table not in self._frames:
            file = self._find_file(table)
            try:
                self._frames[table] = pq.read_table(file).to_pandas()
            except (OSError, pa.ArrowException) as error:
                raise RecordError(
                    f"{file}: The table cannot be read ({error}). Run `tasktransfer collect` "
                    "and `tasktransfer statistics` again."
                ) from error
        return self._frames[table]

    def _find_file(self, table: str) -> Path:
        file = self.folder / f"{table}.parquet"
        if not file.is_file():
            raise KeyError(
                f"{self.folder}: The study has no table "
                f"{table!r}.{suggest_name(table, list(self))} Print the object to see the names "
                "of all tables."
            )
        return file

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(file.stem for file in self.folder.glob("*.parquet")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        names = list(self)
        first = [name for name in _FIRST if name in names]
        lines = [f"Results of study {self.metadata.get('study', '?')!r} in {self.folder}"]
        if self.metadata.get("synthetic"):
            lines.append("  synthetic dialogues")
        for name in first:
            rows = pq.read_metadata(self._find_file(name)).num_rows
            lines.append(f"  {name:10} {rows:>8,} rows")
        others = [name for name in names if name not in first]
        if others:
            shown = ", ".join(others[:8]) + (", …" if len(others) > 8 else "")
            lines.append(f"  also: {shown}")
        return "\n".join(lines)


def load_results(path: str | Path) -> Results:
    """Load the tables of a study.

    Args:
        path: results folder of the study (``results/demo``), or its folder of tables.

    Raises:
        RecordError: the folder has no tables.
    """
    folder = Path(path)
    if not (folder / "runs.parquet").is_file():
        folder /= "tables"
    runs = folder / "runs.parquet"
    if not runs.is_file():
        raise RecordError(
            f"{path}: The folder contains no tables of a study. Pass the study's results folder, "
            "or write the tables with `tasktransfer collect` and `tasktransfer statistics`."
        )
    try:
        footer = (pq.read_schema(runs).metadata or {}).get(b"tasktransfer", b"{}")
        return Results(folder, json_text.loads(footer))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RecordError(
            f"{runs}: The table cannot be read ({error}). Run `tasktransfer collect` again."
        ) from error


def load_model(folder: str | Path) -> Predictor:
    """Load a model exported by ``tasktransfer export-model``.

        model = tt.load_model("my-model")
        model.labels
        model.predict(["Where is my order?", [{"speaker": "agent", "text": "Hello"}, "Hi"]])

    ``predict`` takes texts, lists of turns, or objects with ``turns`` and the fields of the model's
    query. It returns label and probability per dialogue (``jobs.predictor.Predictor``).

    Args:
        folder: the exported folder.

    Raises:
        ModelError: a file is missing or damaged.
        DataError: the model reads words, and scikit-learn is not installed.
    """
    from tasktransfer.jobs.predictor import load_predictor  # noqa: PLC0415

    return load_predictor(folder)


def open_study(config: str | Path, changes: Mapping[str, Any] | None = None) -> Study:
    """Open a study from its config file, without running it. Data and models may be missing.

    Args:
        config: path of the study's YAML file.
        changes: values that override the file's, as a nested mapping:
            ``{"training": {"epochs": 2}}``.

    Raises:
        ConfigError: the config is not valid.
        DataError, ModelError: data or models are damaged.
    """
    from tasktransfer import designs  # noqa: PLC0415

    return designs.open_study(config, changes, need_inputs=False)


@dataclass(frozen=True, repr=False)
class StudyPlan:
    """The planned runs of a study."""

    study: str
    runs: pd.DataFrame
    """One row per run: ``method``, ``model``, ``seed`` and what the run is about."""
    trainings: int
    """Number of distinct training runs; several runs may share one."""

    def __repr__(self) -> str:
        lines = [f"Plan of study {self.study!r}: {len(self.runs):,} runs"]
        lines[0] += f", {self.trainings:,} distinct training runs"
        counts = self.runs["method"].value_counts(sort=False)
        lines += [f"  {method:24} {count:>8,}" for method, count in counts.items()]
        return "\n".join(lines)


def plan(config: str | Path, changes: Mapping[str, Any] | None = None) -> StudyPlan:
    """Return the planned runs of a study. Arguments and errors are as for ``open_study``."""
    study = open_study(config, changes)
    rows = [
        {"method": run.method, "model": run.model, "seed": run.seed, **run.about}
        for run in study.plan.runs
    ]
    return StudyPlan(study.config.study, pd.DataFrame(rows), len(study.plan.stages))


def run(
    config: str | Path,
    changes: Mapping[str, Any] | None = None,
    *,
    cores: int | None = None,
    gpus: int | None = None,
    profile: str = "default",
) -> Results:
    """Run a study with Snakemake, as ``tasktransfer run`` does, and load its results.

    Finished jobs are not run again.

    Args:
        config: path of the study's YAML file.
        changes: values that override the file's, as a nested mapping.
        cores: number of CPU cores, None for all.
        gpus: number of GPU jobs that run in parallel, None for one per GPU.
        profile: name of a shipped Snakemake profile, or folder of another profile.

    Raises:
        ConfigError: the config is not valid, or the profile does not exist.
        TaskTransferError: a job failed; the message has the error and the log of each.
    """
    from tasktransfer.cli.run_study import Request, run_study  # noqa: PLC0415

    if not Path(config).is_file():
        raise ConfigError(
            f"{config}: The file does not exist. Pass the path of a study's YAML file."
        )
    study = run_study(Request(str(config), changes or {}, cores, gpus, profile))
    return load_results(study.config.results)
