"""Common tables that ``collect`` writes for every design, in addition to the design's own tables.

They are runs, scores, resources, missing results and problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.core.ancestors import add_ancestors
from tasktransfer.core.nodes import Evaluation, Fit, Node, Stage
from tasktransfer.core.quantities import format_quantity
from tasktransfer.core.runs import Run
from tasktransfer.results.collect import NO_RECORD, Collected, gather
from tasktransfer.results.costs import compute_hours, describe_hardware
from tasktransfer.results.finished import read_state
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.records import NOUNS, get_selected_round
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import Columns, build_frame, read_frame, write_frame
from tasktransfer.results.study import Study

Values = tuple[Any, ...]
Rows = Iterable[Sequence[Any]]

MISSING = "missing"
"""Key of the fact on planned nodes without a record, by kind; absent if there are none."""

RESOURCES: Columns = (
    ("kind", pa.string(), "kind of node: stage (a training), fit, evaluation or data (derived)"),
    ("label", pa.string(), "name of the node in its study"),
    ("model", pa.string(), "trained model; null if there is none"),
    ("seed", pa.int64(), "random seed; null if the node has none"),
    ("path", pa.string(), "folder of the node, relative to the results folder"),
    ("hours", pa.float64(), "wall time, hours"),
    ("rounds", pa.int64(), "number of training rounds, without the untrained model"),
    ("tokens", pa.int64(), "number of tokens that a training has processed"),
    ("samples_per_second", pa.float64(), "training samples per second"),
    ("peak_memory_mb", pa.float64(), "peak memory of a training, MiB"),
    ("peak_gpu_memory_mb", pa.float64(), "peak GPU memory of a training, MiB; null without a GPU"),
    ("parameters", pa.int64(), "number of parameters of the model; null if unknown"),
    ("trained_parameters", pa.int64(), "number of trained parameters; null if unknown"),
    ("hardware", pa.string(), "GPU, or CPU with its number of threads; null if unknown"),
    ("precision", pa.string(), "floating-point precision; null if unknown"),
    ("commit", pa.string(), "commit of the code that created the record"),
    ("recipe", pa.int64(), "version of the code that created the record"),
)


def build_common_columns(about: Sequence[str]) -> dict[str, Columns]:
    """Return the columns of ``frames.COMMON``; ``about`` has the keys of ``Run.about``."""
    run: Columns = (
        ("method", pa.string(), "evaluated method"),
        ("model", pa.string(), "name of the model in the config"),
        ("seed", pa.int64(), "random seed"),
        *((key, pa.string(), f"{key} of the run; null if it has none") for key in about),
    )
    return {
        "runs": (
            *run,
            ("records", pa.list_(pa.string()), "paths of its records in the results folder"),
            ("hours", pa.float64(), "wall time of all nodes that it uses and that have a record"),
        ),
        "scores": (
            *run,
            ("measured_task", pa.string(), "evaluated task, which may differ from the run's task"),
            ("split", pa.string(), "split; for dev, the value is that of the selected round"),
            ("measure", pa.string(), "measure, or score for the task's own score (0-100)"),
            ("value", pa.float64(), "value in the measure's own unit"),
            ("instances", pa.int64(), "number of evaluated instances"),
            ("path", pa.string(), "folder of the node, relative to the results folder"),
        ),
        "resources": RESOURCES,
        "missing": (
            *run,
            ("path", pa.string(), "expected path of its record, relative to the results folder"),
            ("state", pa.string(), "waiting, running, failed, interrupted or damaged"),
            ("reason", pa.string(), "reason why it has no result, in one line"),
            ("node", pa.string(), "folder of its first unfinished node"),
            ("error", pa.string(), "last line of the error, or the damage; null if there is none"),
            ("remedy", pa.string(), "remedy"),
        ),
        "problems": (
            ("path", pa.string(), "path of the record, relative to the results folder"),
            ("error", pa.string(), "reason why it was left out"),
        ),
    }


def build_common_rows(collected: Collected, about: Sequence[str]) -> dict[str, list[Values]]:
    """Return the rows of ``frames.COMMON``."""

    def named(run: Run) -> Values:
        values = (run.about.get(key) for key in about)
        return run.method, run.model, run.seed, *(_to_text(value) for value in values)

    runs, nodes = collected.runs, collected.study.plan.nodes
    return {
        "runs": [(*named(run), *_summarise_records(collected, run)) for run in runs],
        "scores": [
            (*named(run), *row)
            for run in runs
            for node in run.results_in
            for row in _make_score_rows(collected, node)
        ],
        "resources": [_make_resource_row(collected, node) for node in nodes if collected.has(node)],
        "missing": [
            (
                *(*named(hole.run), f"{hole.wanted.path}/{RECORD}", hole.state, hole.reason),
                *(hole.node.path, hole.error, hole.remedy),
            )
            for hole in collected.missing
        ]
        + [_make_node_row(collected, node, about) for node in collected.without_run],
        "problems": list(collected.problems),
    }


def _make_node_row(collected: Collected, node: Node, about: Sequence[str]) -> Values:
    """Return the row in ``missing`` for a node without a record that is not a run's result."""
    state, error = read_state(collected.study, node)
    return (
        NOUNS[type(node)],
        node.model.name if isinstance(node, Stage) else None,
        node.seed if isinstance(node, Stage | Fit) else None,
        *(None for _ in about),
        *(f"{node.path}/{RECORD}", state, error or NO_RECORD),
        *(node.path, error, "run snakemake again"),
    )


def _summarise_records(collected: Collected, run: Run) -> Values:
    used = [node for node in add_ancestors(run.results_in) if collected.has(node)]
    records = [f"{node.path}/{RECORD}" for node in run.results_in]
    return records, sum(compute_hours(collected.record(node)) for node in used)


def _make_score_rows(collected: Collected, node: Node) -> Iterator[Values]:
    """Yield the measures of a run's node, and for a training also the dev measures."""
    record = collected.record(node)
    split = node.split if isinstance(node, Evaluation) else "test"
    for task, result in record["results"].items():
        if isinstance(node, Stage) and task not in node.tested:
            continue  # tested with a round of another run
        measures = dict(result["measures"])
        if result["score"] is not None:
            measures["score"] = result["score"]
        for measure, value in measures.items():
            yield task, split, measure, value, result["instances"], node.path
    if isinstance(node, Stage):
        for task, measured in get_selected_round(record, node.select_on).dev.items():
            size = record["sizes"][task]["dev"]
            for measure, value in measured.items():
                yield task, "dev", measure, value, size, node.path


def _make_resource_row(collected: Collected, node: Node) -> Values:
    record = collected.record(node)
    provenance = record["provenance"]
    cost: Mapping[str, Any] = provenance.get("training") or {}
    counts: Mapping[str, Any] = cost.get("parameters") or {}
    host = provenance.get("host")
    rounds = None
    if isinstance(node, Stage):
        rounds = sum(entry["round"] > 0 for entry in record["training"]["rounds"])
    return (
        record["node"]["kind"],
        node.label,
        node.model.name if isinstance(node, Stage) else None,
        node.seed if isinstance(node, Stage | Fit) else None,
        node.path,
        compute_hours(record),
        rounds,
        *(cost.get(key) for key in ("tokens", "samples_per_second")),
        *(cost.get(key) for key in ("peak_memory_mb", "peak_gpu_memory_mb")),
        *(counts.get(key) for key in ("all", "trained")),
        describe_hardware(record) if host else None,
        host["precision"] if host else None,
        provenance["commit"],
        provenance["recipe"],
    )


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    parts: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return "+".join(map(str, parts))


def build_metadata(
    collected: Collected,
    *,
    order: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    stand_ins: Mapping[str, str] | None = None,
    cuts: str = "",
    shorts: Mapping[str, str] | None = None,
) -> Metadata:
    """Return the metadata of the study's tables.

    Args:
        collected: the study's records, which say whether dialogues are synthetic or subsampled.
        order: kind of name → names in the study's order.
        facts: further facts for captions.
        stand_ins: input of the paper → its substitute; None to take them from the records.
        cuts: limits that are not in the identity of any record.
        shorts: task → short name.
    """
    config, synthetic = collected.study.config, collected.synthetic
    named = collected.stand_ins if stand_ins is None else stand_ins
    generated = any(synthetic.values())
    return Metadata(
        config.study,
        config.digest,
        generated,
        len(collected.records),
        shorts=shorts or {},
        order=order or {},
        real=sorted(name for name, is_synthetic in synthetic.items() if not is_synthetic)
        if generated
        else [],
        facts={
            **{f"stand-in: {name}": text for name, text in named.items()},
            **_mark_labs(collected),
            **_mark_one_run(collected),
            **({MISSING: missing} if (missing := collected.describe_missing()) else {}),
            **(facts or {}),
        },
        cuts=", ".join(filter(None, (collected.cuts, cuts))),
    )


def _mark_labs(collected: Collected) -> dict[str, str]:
    """Return a mark next to every title if records were created by several labs."""
    makers = Counter(
        record["provenance"].get("made_by") or "this results folder"
        for record in collected.records.values()
    )
    listed = ", ".join(f"{name} ({format_quantity(n, 'record')})" for name, n in makers.items())
    return {f"mark: {len(makers)} LABS": f"made by {listed}"} if len(makers) > 1 else {}


def _mark_one_run(collected: Collected) -> dict[str, str]:
    """Return a mark next to every title if the study trains with one seed."""
    seeds = {run.seed for run in collected.runs if run.stages}
    if not seeds or len(seeds) > 1:
        return {}
    text = "one run per method (one seed), so variation between seeds is unknown"
    return {"mark: ONE RUN": text}


def read_earlier_rows(study: Study, name: str, columns: Columns) -> list[tuple[Any, ...]]:
    """Return the earlier rows of a table that is computed from dialogues that are not available.

    Raises:
        RecordError: the earlier table is missing or damaged.
    """
    file = Path(study.tables, f"{name}.parquet")
    frame, _ = read_frame(file, columns, "give the dialogues, or a pack that has the table")
    return list(frame.itertuples(index=False, name=None))


def read_tables(
    study: Study, columns: Mapping[str, Columns]
) -> tuple[dict[str, pd.DataFrame], Metadata]:
    """Read tables of a study, and their metadata.

    Args:
        study: the study.
        columns: name → columns of the tables to read; at least one.

    Raises:
        RecordError: a table is missing or damaged.
    """
    frames: dict[str, pd.DataFrame] = {}
    steps = (f"`tasktransfer {step} {study.arguments()}`" for step in ("collect", "statistics"))
    remedy = f"run {' and '.join(steps)} again"
    for name, described in columns.items():
        path = Path(study.tables, f"{name}.parquet")
        frames[name], metadata = read_frame(path, described, remedy)
    return frames, metadata


def collect_common(study: Study, complete: bool, about: Sequence[str], **said: Any) -> None:
    """Write the common tables; this is the command ``collect`` of a design without own tables.

    Args:
        study: the study.
        complete: true to refuse a study with missing results.
        about: keys of ``Run.about`` that identify a run.
        said: arguments of ``build_metadata``.

    Raises:
        RecordError: see ``gather`` and ``Collected.require``.
    """
    collected = gather(study)
    collected.require(complete=complete)
    write_collected(collected, {}, {}, build_metadata(collected, **said), about)


def write_collected(
    collected: Collected,
    tables: Mapping[str, Rows | pd.DataFrame],
    columns: Mapping[str, Columns],
    metadata: Metadata,
    about: Sequence[str],
) -> None:
    """Write a design's tables and the common ones, each atomically, and print what is missing.

    Args:
        collected: the study's records.
        tables: name → rows, or a frame.
        columns: name → columns of the design's tables.
        metadata: metadata for the footers.
        about: keys of ``Run.about`` that identify a run.
    """
    folder = Path(collected.study.tables)
    folder.mkdir(parents=True, exist_ok=True)
    every = {**build_common_columns(about), **columns}
    for name, rows in {**build_common_rows(collected, about), **tables}.items():
        frame = rows if isinstance(rows, pd.DataFrame) else build_frame(rows, every[name])
        write_frame(folder / f"{name}.parquet", frame, every[name], metadata)
    collected.tell()
