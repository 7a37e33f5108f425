"""How far a study is: what is done, running, waiting or failed, how fast it goes, how long still.

Read off the stages' folders, so it works while Snakemake runs, on this machine or on others that
share the results folder, and when nothing runs. It looks at each folder once, reads more only of
trainings that have begun and are not finished, and of the few that ended lately.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Stage
from tasktransfer.operate.folders import state_of
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.operate.inputs import unfinished_inputs
from tasktransfer.operate.pace import Piece, ended_lately, pace, seconds
from tasktransfer.results.finished import Found, look
from tasktransfer.results.state import HISTORY, LOG, StageState, history
from tasktransfer.results.study import Study

STATES = ("done", "running", "waiting", "failed", "interrupted")

_PROGRESS = re.compile(r"\] +(\d+) % (\S+)/s, (\S+) gone, (\S+) left")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A training that has begun and is not finished."""

    stage: Stage
    state: StageState
    events: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Tries:
    """How often a training was started, and how often it failed with an error."""

    started: int
    failed: int


class Watcher:
    """Looks at a study again and again; what does not change is read once.

    Args:
        study: its inputs must be known, or no place of a result is.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._estimates = Estimates(study)
        self._tries: dict[str, tuple[int, Tries]] = {}

    def look(self) -> dict[str, Any]:
        """How far the study is, as plain data: ``totals`` and ``groups`` (per model and algorithm;
        a kind of stage where no run ends with it), counted by state; ``running`` with device,
        progress and time left; ``inputs``: data, token ids and tiny models that are being made or
        could not be; ``failed`` with the last line of the error and the log; throughput;
        ``seconds_left``, None where nothing tells."""
        self.study = self.study.with_choice()
        study, now, found = self.study, time.time(), look(self.study)
        left = len(study.plan.stages) - len(found.finished)
        begun = _begun(study, found)
        states = {each.stage.digest: each.state.state for each in begun}
        groups = _groups(study, found, states)
        running = [_running(study, each) for each in begun if each.state.state == "running"]
        return {
            "study": study.config.study,
            "results": study.config.results,
            "trainings": len(study.plan.stages),
            "left": left,
            "again": len(found.again),
            "damaged": [*found.damaged.values()],
            "choice_pending": study.choice_pending,
            "totals": _added(row["states"] for row in groups),
            **self._pace(found, running, now),
            "started_again": self._started_again(found),
            "groups": groups,
            # Trainings that are finished need them no more: they may have been deleted.
            "inputs": unfinished_inputs(study) if left else [],
            "running": running,
            "failed": [_failed(study, each) for each in begun if each.state.state == "failed"],
            "interrupted": [
                _named(study, each) for each in begun if each.state.state == "interrupted"
            ],
        }

    def _pace(self, found: Found, running: list[dict[str, Any]], now: float) -> dict[str, Any]:
        study = self.study
        if not self._estimates.samples or self._estimates.study is not study:
            self._estimates = Estimates(study)
        work = {stage.digest: self._estimates.of(stage).seconds for stage in study.plan.stages}
        records = (
            (stage.digest, Path(study.record(stage)))
            for stage in study.plan.stages
            if stage.digest in found.finished
        )
        pieces = [
            Piece(
                item["digest"],
                seconds(item["started"]) or now,
                now,
                work[item["digest"]] * (item["percent"] or 0) / 100,
            )
            for item in running
        ]
        left = sum(value for digest, value in work.items() if digest not in found.finished)
        left -= sum(piece.work for piece in pieces)
        return pace(ended_lately(records, work, now), pieces, left, now)

    def _started_again(self, found: Found) -> dict[str, int]:
        """How many trainings were started more than once, how often in all, and how many of these
        starts came after an error (the others after a kill)."""
        for stage in self.study.plan.stages:
            if HISTORY in found.names.get(stage.digest, ()):
                file = Path(self.study.folder(stage), HISTORY)
                try:
                    size = file.stat().st_size
                except OSError:
                    continue
                if self._tries.get(stage.digest, (0, None))[0] != size:
                    self._tries[stage.digest] = (size, _tries(file))
        again = [tries for _, tries in self._tries.values() if tries.started > 1]
        return {
            "trainings": len(again),
            "times": sum(tries.started - 1 for tries in again),
            "after_errors": sum(min(tries.failed, tries.started - 1) for tries in again),
        }


def _begun(study: Study, found: Found) -> list[Unfinished]:
    """What has a folder, and is not finished. Folders of finished trainings are not opened."""
    begun = []
    for stage in study.plan.stages:
        names = found.names.get(stage.digest)
        if not names or stage.digest in found.finished:
            continue
        folder = Path(study.folder(stage))
        begun.append(Unfinished(stage, state_of(folder), history(folder)))
    return begun


def _groups(study: Study, found: Found, states: Mapping[str, str]) -> list[dict[str, Any]]:
    """Trainings by state, per model and algorithm, in the order of the config."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for stage in study.plan.stages:
        what = study.plan.group_of(stage)
        state = "done" if stage.digest in found.finished else states.get(stage.digest, "waiting")
        counts.setdefault((stage.model.name, what), Counter())[state] += 1
    return [
        {
            "model": model.name,
            "algorithm": what,
            "trainings": counts[model.name, what].total(),
            "states": {state: counts[model.name, what][state] for state in STATES},
        }
        for model in study.config.models
        for what in study.plan.groups
        if (model.name, what) in counts
    ]


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return {state: total[state] for state in STATES}


# --- single trainings ---------------------------------------------------------------------------


def _running(study: Study, unfinished: Unfinished) -> dict[str, Any]:
    claim = unfinished.state.claim or {}
    return {
        **_named(study, unfinished),
        "host": claim.get("host"),
        "pid": claim.get("pid"),
        "device": claim.get("device"),
        "started": claim.get("started"),
        **progress(Path(study.folder(unfinished.stage), LOG)),
    }


def _failed(study: Study, unfinished: Unfinished) -> dict[str, Any]:
    last = unfinished.events[-1] if unfinished.events else {}
    return {
        **_named(study, unfinished),
        "error": unfinished.state.error,
        "cause": last.get("cause"),
        "time": last.get("time"),
        "attempts": sum(event.get("event") == "started" for event in unfinished.events),
    }


def _named(study: Study, unfinished: Unfinished) -> dict[str, Any]:
    stage = unfinished.stage
    return {
        "dataset": stage.dataset,
        "model": stage.model.name,
        "label": stage.label,
        "kind": stage.kind,
        "seed": stage.seed,
        "digest": stage.digest,
        "log": f"{study.folder(stage)}/{LOG}",
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
    found = list(_PROGRESS.finditer(tail))
    if not found:
        return {"percent": None, "per_second": None, "left": None}
    percent, rate, _, left = found[-1].groups()
    return {"percent": int(percent), "per_second": rate, "left": left}


def _tries(file: Path) -> Tries:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Tries(0, 0)
    return Tries(text.count('"event": "started"'), text.count('"event": "failed"'))
