"""Export of runs in the schema of Every Eval Ever (version 0.3.0), for its public collection.

A run becomes an aggregate file ``data/<collection>/<developer>/<model>/<uuid>.json`` with its
measures on the test splits, and ``<uuid>_samples.jsonl`` with one line per test instance. The files
contain no dialogues: an instance is identified by its position in its dataset's revision, and
answers that quote a dialogue are replaced by codes (``coded_answers``). Equal runs give equal
files.

Source: Every Eval Ever, arXiv 2606.14516; the schemas are those of the package every-eval-ever.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Evaluation, Node, Outcome, Stage
from tasktransfer.core.runs import Run
from tasktransfer.errors import RecordError, format_quantity
from tasktransfer.files import compute_sha256, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.metrics.measures import MEASURES, Measure
from tasktransfer.operate.coded_answers import remove_quotations
from tasktransfer.results.collect import Collected, gather_records
from tasktransfer.results.revisions import is_hub_name
from tasktransfer.results.rows import read_rows
from tasktransfer.results.schema import Record
from tasktransfer.results.study import Study

SCHEMA_VERSION = "0.3.0"
_CORRECT = 100.0 - 1e-6
"""Lowest score that counts as correct, allowing for rounding."""
_MOST_LETTERS = 120
"""Largest length of a folder name."""


@dataclass(frozen=True, slots=True)
class RunNode:
    """A node of a run, its record, the tasks that belong to the run, and the split."""

    node: Node
    record: Record
    tasks: tuple[str, ...]
    split: str


class ExportSummary(TypedDict):
    """Result of an export, as ``--json`` prints it: the folder, and numbers of what was written.

    Attributes:
        without_instances: number of written runs whose answers are free text.
        lacking: number of unfinished runs, which are not written.
    """

    folder: str
    runs: int
    instances: int
    without_instances: int
    lacking: int


def export_runs(
    study: Study, out: Path, *, by: str, collection: str, with_text: bool = False
) -> ExportSummary:
    """Export every finished run of a study in the schema of Every Eval Ever.

    Args:
        out: a folder. Files of equal runs in it are replaced, and other files are kept.
        by: author of the runs.
        collection: name of the first folder in ``data/``.
        with_text: write answers that quote dialogues unchanged. Otherwise spans are written as
            codes, and runs with other free text have no instances.

    Raises:
        RecordError: no run is finished, or some records are incompatible.
    """
    collected = gather_records(study)
    if not collected.runs:
        raise RecordError(
            f"{study.config.results}: No run of {study.config_file} is finished. Run the study "
            "first."
        )
    folder, instances, without = out / "data" / make_slug(collection), 0, 0
    for run in show_progress(collected.runs, "writing runs"):
        log = _Log(study, run, tuple(_collect_run_nodes(collected, run)), by, make_slug(collection))
        lines = log.build_instance_lines(with_text=with_text)
        without += lines is None
        instances += len(lines or ())
        _write_run_files(out, log, lines)
    return {
        "folder": str(folder),
        "runs": len(collected.runs),
        "instances": instances,
        "without_instances": without,
        "lacking": len(collected.planned) - len(collected.runs),
    }


def as_text(seen: ExportSummary) -> str:
    """Format the result of an export."""
    lines = [
        f"{seen['folder']}: {format_quantity(seen['runs'], 'run')}, "
        f"{format_quantity(seen['instances'], 'test instance')}, schema {SCHEMA_VERSION}"
    ]
    if seen["without_instances"]:
        lines.append(
            f"{format_quantity(seen['without_instances'], 'run')} without instances: the answers "
            "are free text, which may quote a dialogue; if you may share it, add --with-text"
        )
    if seen["lacking"]:
        lines.append(f"left out: {format_quantity(seen['lacking'], 'unfinished run')}")
    return "\n".join(lines) + "\n"


def make_slug(name: str) -> str:
    """Convert a name to a folder name that is valid on any system."""
    plain = re.sub(r"[^A-Za-z0-9_.+-]+", "-", name).strip("-.") or "unnamed"
    short = plain[:_MOST_LETTERS].rstrip("-.")
    return f"{short}-results" if short.lower() == "data" else short  # the schema reserves "data"


def _collect_run_nodes(collected: Collected, run: Run) -> Iterator[RunNode]:
    for node in run.result_nodes:
        record = collected.record(node)
        tasks = [t for t in record["results"] if not isinstance(node, Stage) or t in node.tested]
        split = node.split if isinstance(node, Evaluation) else "test"
        yield RunNode(node, record, tuple(tasks), split)


def _write_run_files(out: Path, log: _Log, lines: Sequence[Mapping[str, Any]] | None) -> None:
    """Write a run's instances, then its aggregate file with their checksum."""
    file = out / log.path
    file.parent.mkdir(parents=True, exist_ok=True)
    aggregate = log.build_aggregate()
    if lines:
        samples = file.with_name(f"{file.stem}_samples.jsonl")
        with replace_file(samples) as part:
            text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
            part.write_text(text, encoding="utf-8")
            checksum = compute_sha256(part)
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples.relative_to(out).as_posix(),
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": len(lines),
        }
    with replace_file(file) as part:
        part.write_text(f"{json.dumps(aggregate, indent=2, ensure_ascii=False)}\n", "utf-8")


@dataclass(frozen=True, slots=True)
class _Log:
    """One run in the form of the schema."""

    study: Study
    run: Run
    judged: tuple[RunNode, ...]
    by: str
    collection: str

    @property
    def digest(self) -> str:
        nodes = [judged.node.digest for judged in self.judged]
        tasks = [list(judged.tasks) for judged in self.judged]
        return compute_digest([self.collection, self.by, self.run.method, nodes, tasks])

    @property
    def path(self) -> str:
        """Path of the aggregate file, relative to the folder of the export."""
        developer, _, model = self.model_id.partition("/")
        name = uuid.UUID(bytes=bytes.fromhex(self.digest)[:16], version=4)
        return f"data/{self.collection}/{developer}/{model}/{name}.json"

    @property
    def model_id(self) -> str:
        """Identifier of the model: developer and checkpoint, or author and name if trained."""
        if self._is_prompted and self._hub_name:
            developer, _, name = self._hub_name.rpartition("/")
            return f"{make_slug(developer or 'unnamed')}/{make_slug(name)}"
        if self._is_prompted:
            return f"{make_slug(self.by)}/{make_slug(self.run.model)}"
        words = [self.run.model, self.run.method, *self._about.values()]
        what = make_slug("-".join(words))
        return f"{make_slug(self.by)}/{what}-seed{self.run.seed}-{self.digest[:8]}"

    @property
    def _hub_name(self) -> str:
        """Hub name of the run's base model, or "" for a local checkpoint."""
        names = {model.name: model.checkpoint for model in self.study.config.models}
        checkpoint = names.get(self.run.model, "")
        return checkpoint if checkpoint and is_hub_name(checkpoint) else ""

    @property
    def _is_prompted(self) -> bool:
        return isinstance(self.run.outcome, Outcome) and not self.run.outcome.starts

    @property
    def _about(self) -> dict[str, str]:
        return {
            key: "+".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            for key, value in self.run.about.items()
            if value is not None
        }

    @property
    def evaluation_id(self) -> str:
        return f"{self.collection}/{self.model_id}/{self._finished}"

    @property
    def _finished(self) -> int:
        """Time at which the run's last record was finished, in seconds since 1970."""
        ends = [
            datetime.fromisoformat(made["started"]).timestamp() + made["seconds"].get("total", 0.0)
            for made in (judged.record["provenance"] for judged in self.judged)
        ]
        return int(max(ends))

    def build_aggregate(self) -> dict[str, Any]:
        """Return the content of the aggregate file, without the reference to instances."""
        made = self.judged[0].record["provenance"]
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.evaluation_id,
            "evaluation_timestamp": made["started"],
            "retrieved_timestamp": str(self._finished),
            "source_metadata": {
                "source_name": f"tasktransfer, study {self.study.config.study}",
                "source_type": "evaluation_run",
                "source_organization_name": made.get("made_by") or self.by,
                "evaluator_relationship": "third_party" if self._is_prompted else "first_party",
            },
            "eval_library": {"name": "tasktransfer", "version": made["tasktransfer"]},
            "model_info": self._build_model_info(),
            "evaluation_results": [
                result for judged in self.judged for result in self._collect_results(judged)
            ],
        }

    def _build_model_info(self) -> dict[str, Any]:
        weights = self.study.revisions.models.get(self.run.model)
        is_open = self._is_prompted and self._hub_name
        details = {
            "deployment_type": "self_deployed",
            "model_availability": "open_weights" if is_open else "unknown",
            "base_model": self._hub_name or self.run.model,
            "base_weights": weights.weights if weights else "none",
            "method": self.run.method,
            "seed": str(self.run.seed),
            **self._about,
        }
        name = self.run.model if self._is_prompted else f"{self.run.model}, {self.run.method}"
        return {"name": name, "id": self.model_id, "additional_details": details}

    def _collect_results(self, judged: RunNode) -> Iterator[dict[str, Any]]:
        for task in judged.tasks:
            result = judged.record["results"][task]
            measures = dict(result["measures"])
            if result["score"] is not None:
                measures["score"] = result["score"]
            for name, value in measures.items():
                if name in MEASURES:
                    yield {
                        "evaluation_result_id": _format_result_id(judged, task, name),
                        "evaluation_name": f"{judged.record['node']['dataset']}/{task}",
                        "source_data": _build_source(judged, task),
                        "metric_config": _build_metric(MEASURES[name]),
                        "score_details": {
                            "score": value,
                            "details": {"instances": str(result["instances"])},
                        },
                        "generation_config": {"additional_details": _format_settings(judged.node)},
                    }

    def build_instance_lines(self, *, with_text: bool) -> list[dict[str, Any]] | None:
        """Return one JSON object per scored instance.

        Return None if answers are free text and ``with_text`` is false.
        """
        lines: list[dict[str, Any]] = []
        for judged in self.judged:
            named = judged.record["rows"]
            if named is None:
                continue
            file = Path(self.study.get_node_folder(judged.node), named["file"])
            rows = _select_task_rows(read_rows(file, named), judged)
            if not with_text:
                try:
                    rows = remove_quotations(file, judged.record, rows)
                except RecordError:
                    return None
            lines += (self._build_instance_line(judged, row) for row in rows.to_pylist())
        return lines

    def _build_instance_line(self, judged: RunNode, row: Mapping[str, Any]) -> dict[str, Any]:
        node, task = judged.record["node"], row["task"]
        where = f"{node['dataset']} {judged.record['data_revision']}, {judged.split} split"
        raw = f"not passed on: instance {row['index']} ({row['instance_id']}) of {task}, {where}"
        reference = list(row["gold"])
        answer = " | ".join(row["prediction"])
        scored = judged.record["results"][task]["score"] is not None
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.evaluation_id,
            "model_id": self.model_id,
            "evaluation_name": f"{node['dataset']}/{task}",
            **(
                {"evaluation_result_id": _format_result_id(judged, task, "score")} if scored else {}
            ),
            "sample_id": f"{task}/{row['index']}",
            "sample_hash": hashlib.sha256("".join([raw, *reference]).encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": raw, "reference": reference},
            "output": {"raw": list(row["prediction"])},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": answer,
                    "extraction_method": "none",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": row["score"], "is_correct": row["score"] >= _CORRECT},
            "metadata": {
                "dialogue": row["cluster"] or "unknown",
                "instance_id": row["instance_id"],
            },
        }


def _format_result_id(judged: RunNode, task: str, measure: str) -> str:
    return f"{judged.node.digest[:12]}/{task}/{judged.split}/{measure}"


def _select_task_rows(rows: pa.Table, judged: RunNode) -> pa.Table:
    """Return the rows that are scored for a run's tasks, on the evaluated split."""
    kept = pc.and_(
        pc.is_in(rows["task"], pa.array(judged.tasks, pa.string())),
        pc.and_(
            pc.is_valid(rows["score"]), pc.equal(pc.fill_null(rows["split"], "test"), judged.split)
        ),
    )
    return rows.filter(kept)


def _build_source(judged: RunNode, task: str) -> dict[str, Any]:
    record = judged.record
    return {
        "dataset_name": record["node"]["dataset"] + " (generated)" * record["synthetic"],
        "source_type": "other",
        "additional_details": {
            "task": task,
            "split": judged.split,
            "data_revision": record["data_revision"],
            "few_sample": str(record["few_sample"]).lower(),
            "synthetic": str(record["synthetic"]).lower(),
            **{key: str(limit) for key, limit in record["provenance"].get("cuts", {}).items()},
            **record["provenance"].get("substitutes", {}),
        },
    }


def _build_metric(measure: Measure) -> dict[str, Any]:
    return {
        "metric_id": f"tasktransfer.{measure.name}",
        "metric_name": measure.name,
        "metric_kind": measure.name,
        "metric_unit": "percent" if measure.high == 100 else "points",
        "lower_is_better": not measure.higher_is_better,
        "score_type": "continuous",
        "min_score": _format_bound(measure.low),
        "max_score": _format_bound(measure.high),
    }


def _format_bound(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"


def _format_settings(node: Node) -> dict[str, str]:
    """Map setting names to JSON texts, including the node's digest."""
    identity = node.identity
    settings = identity.get("training") or identity.get("settings") or {}
    return {"digest": node.digest, **{key: json.dumps(value) for key, value in settings.items()}}
