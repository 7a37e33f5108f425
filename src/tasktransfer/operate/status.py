"""How far a study is: what is done, running, waiting or failed, how fast it goes, how long still.

Read off the nodes' folders, so it works while Snakemake runs, on this machine or on others that
share the results folder, and when nothing runs. It looks at each folder once, reads more only of
nodes that have begun and are not finished, and of the few trainings that ended lately.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.config import TINY
from tasktransfer.core.nodes import Evaluation, Fit, Node, Stage
from tasktransfer.datasets.tiny_world import PARTS
from tasktransfer.files import locks
from tasktransfer.files.progress import with_progress
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.overview import others, stages_by_group
from tasktransfer.operate.pace import (
    Piece,
    count_future_records,
    ended_lately,
    pace,
    seconds,
)
from tasktransfer.results.finished import OnDisk, look
from tasktransfer.results.records import NOUNS
from tasktransfer.results.state import (
    HISTORY,
    JOB_LOG,
    LOG,
    Unfinished,
    history,
    last_error,
    unfinished,
)
from tasktransfer.results.study import Study

STATES = ("done", "running", "waiting", "failed", "interrupted")

_PROGRESS = re.compile(r"\] +(\d+) % (\S+)/s, (\S+) gone, (\S+) left")


@dataclass(frozen=True, slots=True)
class Begun:
    """A node that has begun and is not finished."""

    node: Node
    state: Unfinished
    events: list[dict[str, Any]]


class Watcher:
    """Looks at a study again and again; what does not change is read once.

    Args:
        study: its inputs must be known, or no place of a result is.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._estimates = Estimates(study)
        self._tries: dict[str, tuple[int, int, int]] = {}
        """Digest → bytes of a history, starts and errors in it."""

    def look(self) -> dict[str, Any]:
        """How far the study is, as plain data: ``totals`` and ``groups`` (per model and algorithm;
        a kind of stage where no run ends with it), counted by state; ``others``: what is no
        training, by kind; ``left``: nodes of all kinds; ``running`` with device, progress and time
        left; ``dated_in_the_future``: records of trainings; ``inputs``: data, token ids and tiny
        models that are being made or could not be; ``failed`` with the last line of the error and
        the log; throughput; ``seconds_left``, None where nothing tells."""
        self.study = self.study.with_choices()
        study, now, there = self.study, time.time(), look(self.study)
        left = len(study.plan.nodes) - len(there.finished)
        begun = _begun(study, there)
        states = {each.node.digest: each.state.state for each in begun}
        groups = _groups(study, there, states)
        totals = Counter[str]()
        for row in groups:
            totals.update(row["states"])
        running = [_running(study, each) for each in begun if each.state.state == "running"]
        return {
            "study": study.config.study,
            "results": study.config.results,
            "trainings": len(study.plan.stages),
            "left": left,
            "again": len(there.again),
            "damaged": [*there.damaged.values()],
            "choice_pending": bool(study.pending_choices),
            "totals": {state: totals[state] for state in STATES},
            **self._pace(there, running, now),
            "started_again": self._started_again(there),
            "groups": groups,
            "others": others(study, there),
            # What is finished needs them no more: they may have been deleted.
            "inputs": unfinished_inputs(study) if left else [],
            "running": running,
            "failed": [_failed(study, each) for each in begun if each.state.state == "failed"],
            "interrupted": [
                _named(study, each) for each in begun if each.state.state == "interrupted"
            ],
        }

    def _pace(self, there: OnDisk, running: list[dict[str, Any]], now: float) -> dict[str, Any]:
        study = self.study
        if not self._estimates.samples or self._estimates.study is not study:
            self._estimates = Estimates(study)
        work = {stage.digest: self._estimates.of(stage).seconds for stage in study.plan.stages}
        records = [
            (stage.digest, Path(study.record(stage)))
            for stage in study.plan.stages
            if stage.digest in there.finished
        ]
        pieces = [
            Piece(
                item["digest"],
                min(seconds(item["started"]) or now, now),
                now,
                work[item["digest"]] * (item["percent"] or 0) / 100,
            )
            for item in running
            if item["digest"] in work
        ]
        left = sum(value for digest, value in work.items() if digest not in there.finished)
        left -= sum(piece.work for piece in pieces)
        return {
            **pace(ended_lately(records, work, now), pieces, left, now),
            "dated_in_the_future": count_future_records(records, now),
        }

    def _started_again(self, there: OnDisk) -> dict[str, int]:
        """How many trainings were started more than once, how often in all, and how many of these
        starts came after an error (the others after a kill)."""
        for stage in self.study.plan.stages:
            if HISTORY in there.names.get(stage.digest, ()):
                file = Path(self.study.folder(stage), HISTORY)
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


def _begun(study: Study, there: OnDisk) -> list[Begun]:
    """What has a folder, and is not finished. Folders of finished nodes are not opened."""
    begun = []
    for node in with_progress(study.plan.nodes, "looking at nodes"):
        if there.names.get(node.digest) and node.digest not in there.finished:
            folder = Path(study.folder(node))
            begun.append(Begun(node, unfinished(folder), history(folder)))
    return begun


def _groups(study: Study, there: OnDisk, states: Mapping[str, str]) -> list[dict[str, Any]]:
    """Trainings by state, per model and algorithm, in the order of the config."""
    states = {**states, **dict.fromkeys(there.finished, "done")}
    rows = []
    for (model, what), stages in stages_by_group(study).items():
        counts = Counter(states.get(stage.digest, "waiting") for stage in stages)
        by_state = {state: counts[state] for state in STATES}
        group = {"model": model, "algorithm": what}
        rows.append({**group, "trainings": len(stages), "states": by_state})
    return rows


# --- what trainings are made from: dialogues, token ids, tiny models -----------------------------


def unfinished_inputs(study: Study) -> list[dict[str, Any]]:
    """Inputs that a job has begun and not finished, as plain data: ``label``, ``state`` ("running",
    "failed" or "interrupted"), ``error`` (the last line of a failed one's) and ``log``."""
    begun = []
    for label, folder, whole, log in _inputs(study):
        if whole.exists() or not log.exists():
            continue
        error = last_error(log)
        held = locks.is_held(folder.parent / f".{folder.name}.lock")
        state = "running" if held else "failed" if error else "interrupted"
        error = error if state == "failed" else None
        begun.append({"label": label, "state": state, "error": error, "log": str(log)})
    return begun


def _inputs(study: Study) -> Iterator[tuple[str, Path, Path, Path]]:
    """Label, folder, what a complete one holds and the log of the job that makes it, in the order
    in which they are made; logs as the rules of data.smk name them."""
    logs = Path(study.config.results, "logs")
    tiny = [model.name for model in study.config.models if model.checkpoint == TINY]
    if study.reads_tiny_world or tiny:
        world = Path(study.tiny_world)
        yield ("tiny world", world, world, logs / "tiny_world.log")
    caches = {study.instances(name): name for name in study.config.dataset_names}
    if tiny:
        caches |= {study.tiny_instances(name): name for name in PARTS}
    for cache, source in caches.items():
        folder = Path(cache)
        log = logs / "instances" / f"{folder.name}.log"
        yield (f"data of {source}", folder, folder / "manifest.json", log)
    for model in (model for model in study.config.models if model.is_made):
        folder = Path(study.tiny_model(model.name))
        log = logs / "models" / f"{folder.name}.log"
        kind = "tiny model" if model.checkpoint == TINY else "model"
        yield (f"{kind} {model.name}", folder, folder / "config.json", log)
    for encoded, (data, reader) in study.encoded_folders.items():
        folder = Path(encoded)
        log = logs / "encoded" / folder.parent.name / f"{folder.name}.log"
        label = f"token ids of {data.label} for {reader}"
        yield (label, folder, folder / "manifest.json", log)


# --- single nodes -------------------------------------------------------------------------------


def _running(study: Study, begun: Begun) -> dict[str, Any]:
    claim = begun.state.claim or {}
    return {
        **_named(study, begun),
        **{key: claim.get(key) for key in ("host", "pid", "device", "started")},
        **progress(Path(study.folder(begun.node), LOG)),
    }


def _failed(study: Study, begun: Begun) -> dict[str, Any]:
    last = begun.events[-1] if begun.events else {}
    return {
        **_named(study, begun),
        "error": begun.state.error,
        "cause": last.get("cause"),
        "time": last.get("time"),
        "attempts": sum(event.get("event") == "started" for event in begun.events),
    }


def _named(study: Study, begun: Begun) -> dict[str, Any]:
    """``model`` and ``seed`` are None where a node has none of its own."""
    node = begun.node
    return {
        "dataset": node.data.name if isinstance(node, Stage | Fit | Evaluation) else node.name,
        "model": node.model.name if isinstance(node, Stage) else None,
        "label": node.label,
        "kind": node.kind if isinstance(node, Stage) else NOUNS[type(node)],
        "seed": node.seed if isinstance(node, Stage | Fit) else None,
        "digest": node.digest,
        "log": f"{study.folder(node)}/{LOG if isinstance(node, Stage) else JOB_LOG}",
    }


def progress(log: Path) -> dict[str, Any]:
    """How far a running training is, by the last line with a bar in its log: percent, and time
    left as it says; None where it has not said yet."""
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
