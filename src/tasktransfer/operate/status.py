"""Progress of a study: finished, running, waiting and failed nodes, speed, and remaining time.

All of it is read from the nodes' folders. It therefore works whether or not Snakemake runs, on this
machine or on another one that shares the results folder. Each folder is listed once. More is read
only for started, unfinished nodes and for the few trainings that ended recently.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tasktransfer.config import TINY
from tasktransfer.core.nodes import Evaluation, Fit, Node, Stage
from tasktransfer.datasets import TINY_PARTS
from tasktransfer.files import locks
from tasktransfer.files.progress import show_progress
from tasktransfer.operate.facts import (
    DatedPace,
    FailedNode,
    NodeName,
    ProgressGroup,
    Restarts,
    RunningNode,
    StudyProgress,
    TrainingProgress,
    UnfinishedInput,
)
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.overview import count_other_nodes, group_stages
from tasktransfer.operate.pace import (
    Piece,
    count_future_records,
    estimate_pace,
    find_ended_trainings,
    parse_time,
)
from tasktransfer.results.node_folders import NodesOnDisk, inspect_nodes
from tasktransfer.results.records import NOUNS
from tasktransfer.results.state import (
    HISTORY,
    JOB_LOG,
    LOG,
    Event,
    UnfinishedState,
    read_history,
    read_last_error,
    read_unfinished_state,
)
from tasktransfer.results.study import Study

STATES = ("done", "running", "waiting", "failed", "interrupted")

_PROGRESS = re.compile(r"\] +(\d+) % (\S+)/s, (\S+) gone, (\S+) left")


@dataclass(frozen=True, slots=True)
class StartedNode:
    """A node that has started and is not finished."""

    node: Node
    state: UnfinishedState
    events: list[Event]


class ProgressWatcher:
    """Observer of a running study, which reads unchanged files only once.

    Args:
        study: study whose inputs are known; otherwise result paths are unknown.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._estimates = Estimates(study)
        self._tries: dict[str, tuple[int, int, int]] = {}
        """Digest → bytes of a history, number of starts and of errors in it."""

    def get_progress(self) -> StudyProgress:
        """Return the study's current progress."""
        self.study = self.study.with_choices()
        study, now, there = self.study, time.time(), inspect_nodes(self.study)
        left = len(study.plan.nodes) - len(there.finished)
        begun = _list_started_nodes(study, there)
        states = {each.node.digest: each.state.state for each in begun}
        groups = _count_states_by_group(study, there, states)
        totals = Counter[str]()
        for row in groups:
            totals.update(row["states"])
        running = [
            _summarise_running_node(study, each) for each in begun if each.state.state == "running"
        ]
        return {
            "study": study.config.study,
            "results": study.config.results,
            "trainings": len(study.plan.stages),
            "left": left,
            "again": len(there.again),
            "damaged": [*there.damaged.values()],
            "choice_pending": bool(study.pending_choices),
            "announced": [choice.announcement for choice in study.pending_choices],
            "further_trainings": study.further_trainings,
            "totals": {state: totals[state] for state in STATES},
            **self._estimate_pace(there, running, now),
            "started_again": self._count_restarts(there),
            "groups": groups,
            "others": count_other_nodes(study, there),
            # A finished study no longer needs its inputs, which may have been deleted.
            "inputs": list_unfinished_inputs(study) if left else [],
            "running": running,
            "failed": [
                _summarise_failed_node(study, each)
                for each in begun
                if each.state.state == "failed"
            ],
            "interrupted": [
                _get_node_names(study, each) for each in begun if each.state.state == "interrupted"
            ],
        }

    def _estimate_pace(
        self, there: NodesOnDisk, running: list[RunningNode], now: float
    ) -> DatedPace:
        study = self.study
        if not self._estimates.samples or self._estimates.study is not study:
            self._estimates = Estimates(study)
        work = {
            stage.digest: self._estimates.estimate_cost(stage).seconds
            for stage in study.plan.stages
        }
        records = [
            (stage.digest, Path(study.get_record_path(stage)))
            for stage in study.plan.stages
            if stage.digest in there.finished
        ]
        pieces = [
            Piece(
                item["digest"],
                min(parse_time(item["started"]) or now, now),
                now,
                work[item["digest"]] * (item["percent"] or 0) / 100,
            )
            for item in running
            if item["digest"] in work
        ]
        left = sum(value for digest, value in work.items() if digest not in there.finished)
        left -= sum(piece.work for piece in pieces)
        ended = find_ended_trainings(records, work, now)
        typical = fmean(work.values()) if work else 0.0
        return {
            **estimate_pace(ended, pieces, left, now, typical),
            "dated_in_the_future": count_future_records(records, now),
        }

    def _count_restarts(self, there: NodesOnDisk) -> Restarts:
        """Count restarted trainings, restarts in total, and restarts after errors.

        The other restarts followed a kill.
        """
        for stage in self.study.plan.stages:
            if HISTORY in there.names.get(stage.digest, ()):
                file = Path(self.study.get_node_folder(stage), HISTORY)
                with suppress(OSError):
                    size = file.stat().st_size
                    if self._tries.get(stage.digest, (0,))[0] != size:
                        text = file.read_text(encoding="utf-8", errors="replace")
                        started = text.count('"event": "started"')
                        failed = text.count('"event": "failed"')
                        self._tries[stage.digest] = (size, started, failed)
        again = [
            (started - 1, failed) for _, started, failed in self._tries.values() if started > 1
        ]
        return {
            "trainings": len(again),
            "times": sum(times for times, _ in again),
            "after_errors": sum(map(min, again)),
        }


def _list_started_nodes(study: Study, there: NodesOnDisk) -> list[StartedNode]:
    """Return the unfinished nodes that already have a folder."""
    begun = []
    for node in show_progress(study.plan.nodes, "looking at nodes"):
        if there.names.get(node.digest) and node.digest not in there.finished:
            folder = Path(study.get_node_folder(node))
            begun.append(StartedNode(node, read_unfinished_state(folder), read_history(folder)))
    return begun


def _count_states_by_group(
    study: Study, there: NodesOnDisk, states: Mapping[str, str]
) -> list[ProgressGroup]:
    """Count trainings by state per model and algorithm, in the config's order."""
    states = {**states, **dict.fromkeys(there.finished, "done")}
    rows: list[ProgressGroup] = []
    for (model, what), stages in group_stages(study).items():
        counts = Counter(states.get(stage.digest, "waiting") for stage in stages)
        by_state = {state: counts[state] for state in STATES}
        rows.append(
            {"model": model, "algorithm": what, "trainings": len(stages), "states": by_state}
        )
    return rows


# --- inputs of trainings: dialogues, token ids, tiny models --------------------------------------


def list_unfinished_inputs(study: Study) -> list[UnfinishedInput]:
    """Return the inputs whose preparation has started but not finished."""
    begun: list[UnfinishedInput] = []
    for label, folder, whole, log in _iterate_inputs(study):
        if whole.exists() or not log.exists():
            continue
        error = read_last_error(log)
        held = locks.is_held(folder.parent / f".{folder.name}.lock")
        state = "running" if held else "failed" if error else "interrupted"
        error = error if state == "failed" else None
        begun.append({"label": label, "state": state, "error": error, "log": str(log)})
    return begun


def _iterate_inputs(study: Study) -> Iterator[tuple[str, Path, Path, Path]]:
    """Yield the label, folder, completion file and log of each input.

    They are in the order of their creation. Logs are named as in the rules of data.smk.
    """
    logs = Path(study.config.results, "logs")
    tiny = [model.name for model in study.config.models if model.checkpoint == TINY]
    if study.reads_tiny_world or tiny:
        world = Path(study.tiny_world)
        yield ("tiny world", world, world, logs / "tiny_world.log")
    caches = {study.get_instances_folder(name): name for name in study.config.dataset_names}
    if tiny:
        caches |= {study.get_tiny_instances_folder(name): name for name in TINY_PARTS}
    for cache, source in caches.items():
        folder = Path(cache)
        log = logs / "instances" / f"{folder.name}.log"
        yield (f"data of {source}", folder, folder / "manifest.json", log)
    for model in (model for model in study.config.models if model.is_created):
        folder = Path(study.get_created_model_folder(model.name))
        log = logs / "models" / f"{folder.name}.log"
        kind = "tiny model" if model.checkpoint == TINY else "model"
        yield (f"{kind} {model.name}", folder, folder / "config.json", log)
    for encoded, (data, reader) in study.encoded_folders.items():
        folder = Path(encoded)
        log = logs / "encoded" / folder.parent.name / f"{folder.name}.log"
        label = f"token ids of {data.label} for {reader}"
        yield (label, folder, folder / "manifest.json", log)


# --- single nodes -------------------------------------------------------------------------------


def _summarise_running_node(study: Study, begun: StartedNode) -> RunningNode:
    claim = begun.state.claim or {}
    return {
        **_get_node_names(study, begun),
        "host": claim.get("host"),
        "pid": claim.get("pid"),
        "device": claim.get("device"),
        "started": claim.get("started"),
        **read_progress(Path(study.get_node_folder(begun.node), LOG)),
    }


def _summarise_failed_node(study: Study, begun: StartedNode) -> FailedNode:
    last = begun.events[-1] if begun.events else {}
    return {
        **_get_node_names(study, begun),
        "error": begun.state.error,
        "cause": last.get("cause"),
        "time": last.get("time"),
        "attempts": sum(event.get("event") == "started" for event in begun.events),
    }


def _get_node_names(study: Study, begun: StartedNode) -> NodeName:
    """Return the names of a node, with None for a missing model or seed."""
    node = begun.node
    return {
        "dataset": node.data.name if isinstance(node, Stage | Fit | Evaluation) else node.name,
        "model": node.model.name if isinstance(node, Stage) else None,
        "label": node.label,
        "kind": node.kind if isinstance(node, Stage) else NOUNS[type(node)],
        "seed": node.seed if isinstance(node, Stage | Fit) else None,
        "digest": node.digest,
        "log": f"{study.get_node_folder(node)}/{LOG if isinstance(node, Stage) else JOB_LOG}",
    }


def read_progress(log: Path) -> TrainingProgress:
    """Read percent, speed and remaining time from the last progress bar in a log.

    The values are None before the first progress bar.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 8192))
            tail = stream.read().decode("utf-8", "replace")
    except OSError:
        tail = ""
    bars = list(_PROGRESS.finditer(tail))
    if not bars:
        return {"percent": None, "per_second": None, "left": None}
    percent, rate, _, left = bars[-1].groups()
    return {"percent": int(percent), "per_second": rate, "left": left}
