"""The frame of jobs other than training.

It locks the node's folder, ends at once if the node is complete, does the work, and writes the
record last. A job that runs a model leases a device before torch is imported, as training does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tasktransfer.core.nodes import Data, Evaluation, Fit
from tasktransfer.data.recipes import Recipe
from tasktransfer.files import remove_partial_files
from tasktransfer.fits import Learner
from tasktransfer.jobs.needs import runs_model
from tasktransfer.results.artefacts import compute_checksums
from tasktransfer.results.damage import find_damage, set_files_aside
from tasktransfer.results.provenance import describe_host, describe_provenance
from tasktransfer.results.records import (
    build_node_record,
    describe_node,
    list_parts,
    list_written_parts,
    read_record,
    write_record,
)
from tasktransfer.results.rows import Row, write_rows
from tasktransfer.results.state import RECORD, claim_folder, record_event
from tasktransfer.results.study import Study
from tasktransfer.selection.selector import Selector
from tasktransfer.training.device import lease_device, list_devices

if TYPE_CHECKING:  # imports torch
    from tasktransfer.results.schema import Host, Sizes, TaskResult
    from tasktransfer.training.setup import Setup

Measures = dict[str, dict[str, float]]


@dataclass
class JobOutput:
    """The results of a job.

    Attributes:
        sizes: task → split → number of instances.
        results: task → result.
        rows: rows of predictions.
        report: numbers that a recipe reports about derived data, or counts of a prompted model.
        host: device that a model was run on, if any.
        notes: notes for the user.
    """

    sizes: dict[str, Sizes] = field(default_factory=dict)
    results: dict[str, TaskResult] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    report: Measures = field(default_factory=dict)
    host: Host | None = None
    notes: list[str] = field(default_factory=list)

    def add_result(self, task: str, measures: dict[str, float], instances: int, split: str) -> None:
        """Add a task's result on a split to the record."""
        score = measures.get("score")
        self.results[task] = {"measures": measures, "score": score, "instances": instances}
        self.sizes[task] = {split: instances}

    def set_host(self, setup: Setup, threads: int) -> None:
        """Add the machine that ran a model, and notes on its setup, to the record."""
        from tasktransfer.training.torch_facts import describe_machine  # noqa: PLC0415  # imports torch

        self.host = describe_machine(setup.device, setup.precision, threads)
        self.notes += [note for note in setup.eval_budget.notes if note not in self.notes]


class DesignParts(Protocol):
    """The parts of the study's design that its jobs use (``designs.design.Design``)."""

    @property
    def recipes(self) -> Mapping[str, Recipe]: ...
    @property
    def learners(self) -> Mapping[str, Learner]: ...
    @property
    def selectors(self) -> Mapping[str, Selector]: ...
    @property
    def facts(self) -> Callable[[Any], Mapping[str, str]]: ...
    @property
    def substitutes(self) -> Callable[[Any], Mapping[str, str]]: ...


def run_recorded_job(
    study: Study,
    node: Data | Fit | Evaluation,
    design: DesignParts,
    work: Callable[[Path, JobOutput], None],
) -> None:
    """Do a node's work in its locked folder unless it is finished, then write its record.

    If the job runs a model, it leases a device first.
    """
    folder, output = Path(study.get_node_folder(node)), JobOutput()
    with ExitStack() as held:
        tell = held.enter_context(claim_folder(folder, _print_message, label=node.label))
        problem = find_damage(folder, node.digest, "all")
        if problem is None and (folder / RECORD).exists():
            parts = list_parts(read_record(folder / RECORD))
            if all((folder / part).exists() for part in parts):
                _print_message(f"{folder}: The job is already finished.")
                return
        if problem is not None:
            kept = set_files_aside(folder)
            names = ", ".join(file.name for file in kept)
            _print_message(f"{problem}. The files are kept as {names}, and the job runs again.")
        remove_partial_files(folder)
        record_event(folder, "started", digest=node.digest)
        if runs_model(node):
            tell(device=held.enter_context(lease_device(list_devices())) or "cpu")
        started, began = datetime.now(UTC), time.perf_counter()
        work(folder, output)
        dataset = node.name if isinstance(node, Data) else node.data.name
        # A fit on representations does not record the device that computed them.
        host = output.host or (None if runs_model(node) else describe_host())
        rows = None
        if output.rows:
            rows = write_rows(folder, output.rows, digest=node.digest, dataset=dataset)
        record = build_node_record(
            node,
            synthetic=bool(study.is_synthetic(dataset)),
            sizes=output.sizes,
            results=output.results,
            report=output.report,
            rows=rows,
            artefacts=compute_checksums(
                folder, list_written_parts(describe_node(node), output.sizes)
            ),
            provenance=describe_provenance(
                node,
                study=study.config.study,
                config_digest=study.config.digest,
                host=host,
                started=started,
                seconds={"total": time.perf_counter() - began},
                notes=output.notes,
                substitutes=design.substitutes(study.config),
            ),
        )
        write_record(folder / RECORD, record)
        record_event(folder, "finished", digest=node.digest)
    measured_by_task = {task: result["measures"] for task, result in output.results.items()}
    sentences = [
        f"{task} " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
        for task, scores in (measured_by_task or output.report).items()
    ]
    _print_message(f"{node.label}: {'; '.join(sentences)}")


def _print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
