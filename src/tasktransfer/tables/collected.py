"""What every design's ``collect`` writes: runs, scores, resources, holes and problems, and beside
them its own tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tasktransfer.core.ancestors import with_ancestors
from tasktransfer.core.nodes import Evaluation, Fit, Node, Stage
from tasktransfer.core.runs import Run
from tasktransfer.results.collect import NO_RECORD, Collected, gather
from tasktransfer.results.costs import hardware_of, hours_of
from tasktransfer.results.finished import state_of
from tasktransfer.results.records import NOUNS, chosen_round
from tasktransfer.results.state import RECORD
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.numbers import counted
from tasktransfer.tables.store import Columns, frame_of, read_frame, write_frame

Values = tuple[Any, ...]
Rows = Iterable[Sequence[Any]]

MISSING = "missing"
"""Key in the tables' facts: the planned nodes without a record, by kind; absent if none is."""

RESOURCES: Columns = (
    ("kind", pa.string(), "stage (a training), fit, evaluation or data (derived)"),
    ("label", pa.string(), "what it is called in its study"),
    ("model", pa.string(), "model that is trained; null: none is"),
    ("seed", pa.int64(), "random seed; null: has none of its own"),
    ("path", pa.string(), "its folder, relative to the results folder"),
    ("hours", pa.float64(), "wall time, hours"),
    ("rounds", pa.int64(), "rounds of a training, the untrained model not counted"),
    ("tokens", pa.int64(), "tokens that a training has read"),
    ("samples_per_second", pa.float64(), "of a training"),
    ("peak_memory_mb", pa.float64(), "of a training, MiB"),
    ("peak_gpu_memory_mb", pa.float64(), "of a training, MiB; null: not on a GPU"),
    ("parameters", pa.int64(), "of the model; null: not counted"),
    ("trained_parameters", pa.int64(), "those of them that moved; null: not counted"),
    ("hardware", pa.string(), "GPU, or CPU with threads; null: not known"),
    ("precision", pa.string(), "of the arithmetic; null: not known"),
    ("commit", pa.string(), "of the code that made it"),
    ("recipe", pa.int64(), "version of what made it"),
)


def common_columns(about: Sequence[str]) -> dict[str, Columns]:
    """The columns of ``tables.COMMON``; ``about``: what the design's runs are about."""
    run: Columns = (
        ("method", pa.string(), "what is judged"),
        ("model", pa.string(), "model, as the study names it"),
        ("seed", pa.int64(), "random seed"),
        *((key, pa.string(), f"{key} of the run; null: has none") for key in about),
    )
    return {
        "runs": (
            *run,
            ("records", pa.list_(pa.string()), "its records, relative to the results folder"),
            ("hours", pa.float64(), "wall time of all that it uses, as far as records are there"),
        ),
        "scores": (
            *run,
            ("measured_task", pa.string(), "task that is measured; a run may be about another"),
            ("split", pa.string(), "split; dev of a training: with the round that it has chosen"),
            ("measure", pa.string(), "measure; score: what the task is judged by, 0-100"),
            ("value", pa.float64(), "in the measure's own unit"),
            ("instances", pa.int64(), "instances of the split that were measured"),
            ("path", pa.string(), "folder of the node, relative to the results folder"),
        ),
        "resources": RESOURCES,
        "missing": (
            *run,
            ("path", pa.string(), "where its record is expected, relative to the results folder"),
            ("state", pa.string(), "waiting, running, failed, interrupted or damaged"),
            ("reason", pa.string(), "why it has no number, in one line"),
            ("node", pa.string(), "folder of the first of its nodes that is not done"),
            ("error", pa.string(), "last line of the error, or what is damaged; null: none"),
            ("remedy", pa.string(), "what to do"),
        ),
        "problems": (
            ("path", pa.string(), "the record, relative to the results folder"),
            ("error", pa.string(), "why it was left out"),
        ),
    }


def common_rows(collected: Collected, about: Sequence[str]) -> dict[str, list[Values]]:
    """The rows of ``tables.COMMON``."""

    def named(run: Run) -> Values:
        values = (run.about.get(key) for key in about)
        return run.method, run.model, run.seed, *(_text(value) for value in values)

    runs, nodes = collected.runs, collected.study.plan.nodes
    return {
        "runs": [(*named(run), *_made_by(collected, run)) for run in runs],
        "scores": [
            (*named(run), *row)
            for run in runs
            for node in run.results_in
            for row in _scores(collected, node)
        ],
        "resources": [_resources(collected, node) for node in nodes if collected.has(node)],
        "missing": [
            (
                *(*named(hole.run), f"{hole.wanted.path}/{RECORD}", hole.state, hole.reason),
                *(hole.node.path, hole.error, hole.remedy),
            )
            for hole in collected.missing
        ]
        + [_node_row(collected, node, about) for node in collected.without_run],
        "problems": list(collected.problems),
    }


def _node_row(collected: Collected, node: Node, about: Sequence[str]) -> Values:
    """Return the row in ``missing`` of a node without a record that no run's result names."""
    state, error = state_of(collected.study, node)
    return (
        NOUNS[type(node)],
        node.model.name if isinstance(node, Stage) else None,
        node.seed if isinstance(node, Stage | Fit) else None,
        *(None for _ in about),
        *(f"{node.path}/{RECORD}", state, error or NO_RECORD),
        *(node.path, error, "run snakemake again"),
    )


def _made_by(collected: Collected, run: Run) -> Values:
    used = [node for node in with_ancestors(run.results_in) if collected.has(node)]
    records = [f"{node.path}/{RECORD}" for node in run.results_in]
    return records, sum(hours_of(collected.record(node)) for node in used)


def _scores(collected: Collected, node: Node) -> Iterator[Values]:
    """What a run's node measured; of a training, what its round was chosen by too."""
    record = collected.record(node)
    split = node.split if isinstance(node, Evaluation) else "test"
    for task, result in record["results"].items():
        if isinstance(node, Stage) and task not in node.tested:
            continue  # tested with a round that another run asks for
        measures = dict(result["measures"])
        if result["score"] is not None:
            measures["score"] = result["score"]
        for measure, value in measures.items():
            yield task, split, measure, value, result["instances"], node.path
    if isinstance(node, Stage):
        for task, measured in chosen_round(record, node.select_on).dev.items():
            size = record["sizes"][task]["dev"]
            for measure, value in measured.items():
                yield task, "dev", measure, value, size, node.path


def _resources(collected: Collected, node: Node) -> Values:
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
        hours_of(record),
        rounds,
        *(cost.get(key) for key in ("tokens", "samples_per_second")),
        *(cost.get(key) for key in ("peak_memory_mb", "peak_gpu_memory_mb")),
        *(counts.get(key) for key in ("all", "trained")),
        hardware_of(record) if host else None,
        host["precision"] if host else None,
        provenance["commit"],
        provenance["recipe"],
    )


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    parts: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return "+".join(map(str, parts))


def metadata_of(
    collected: Collected,
    *,
    order: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    stand_ins: Mapping[str, str] | None = None,
    cuts: str = "",
    shorts: Mapping[str, str] | None = None,
) -> Metadata:
    """What every table says of the study.

    Args:
        collected: generated dialogues and cuts are taken from its records.
        order: kind of name → names in the study's order.
        facts: what else captions say.
        stand_ins: what stands in for what; None: as the records say.
        cuts: limits in force that no record's own identity says.
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
            **_makers(collected),
            **_one_run(collected),
            **({MISSING: missing} if (missing := collected.describe_missing()) else {}),
            **(facts or {}),
        },
        cuts=", ".join(filter(None, (collected.cuts, cuts))),
    )


def _makers(collected: Collected) -> dict[str, str]:
    """Which labs made the records, beside every title where there are several."""
    makers = Counter(
        record["provenance"].get("made_by") or "this results folder"
        for record in collected.records.values()
    )
    listed = ", ".join(f"{name} ({counted(n, 'record')})" for name, n in makers.items())
    return {f"mark: {len(makers)} LABS": f"made by {listed}"} if len(makers) > 1 else {}


def _one_run(collected: Collected) -> dict[str, str]:
    """Return a mark beside every title if the study trains once, with one seed."""
    seeds = {run.seed for run in collected.runs if run.stages}
    if not seeds or len(seeds) > 1:
        return {}
    text = "one run of each training (one seed), so that how much trainings differ is not known"
    return {"mark: ONE RUN": text}


def earlier_rows(study: Study, name: str, columns: Columns) -> list[tuple[Any, ...]]:
    """The rows of a table that is made of dialogues, where these are no longer there.

    Raises:
        RecordError: it is not there either.
    """
    file = Path(study.tables, f"{name}.parquet")
    frame, _ = read_frame(file, columns, "give the dialogues, or a pack that has the table")
    return list(frame.itertuples(index=False, name=None))


def read_tables(
    study: Study, columns: Mapping[str, Columns]
) -> tuple[dict[str, pd.DataFrame], Metadata]:
    """Tables of a study by name, and what they say of it.

    Args:
        columns: name → columns, of those that are read; one at least.

    Raises:
        RecordError: a table is absent or damaged.
    """
    frames: dict[str, pd.DataFrame] = {}
    for name, described in columns.items():
        frames[name], metadata = read_frame(Path(study.tables, f"{name}.parquet"), described)
    return frames, metadata


def collect_common(study: Study, complete: bool, about: Sequence[str], **said: Any) -> None:
    """All that ``collect`` is of a design without tables of its own.

    Args:
        complete: refuse a study with holes.
        about: keys of ``Run.about`` that name a run.
        said: arguments of ``metadata_of``.

    Raises:
        RecordError: see ``gather`` and ``Collected.require``.
    """
    collected = gather(study)
    collected.require(complete=complete)
    write_collected(collected, {}, {}, metadata_of(collected, **said), about)


def write_collected(
    collected: Collected,
    tables: Mapping[str, Rows | pd.DataFrame],
    columns: Mapping[str, Columns],
    metadata: Metadata,
    about: Sequence[str],
) -> None:
    """Write a design's tables and the common ones, each atomically, and say what is missing.

    Args:
        tables: name → rows, or a frame of them.
        columns: name → columns, of the design's tables.
        about: keys of ``Run.about`` that name a run.
    """
    folder = Path(collected.study.tables)
    folder.mkdir(parents=True, exist_ok=True)
    every = {**common_columns(about), **columns}
    for name, rows in {**common_rows(collected, about), **tables}.items():
        frame = rows if isinstance(rows, pd.DataFrame) else frame_of(rows, every[name])
        write_frame(folder / f"{name}.parquet", frame, every[name], metadata)
    collected.tell()
