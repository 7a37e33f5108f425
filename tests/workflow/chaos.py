"""Fault test: random processes of a study are killed repeatedly, and no result may be lost.

To run the demo by hand with 50 kills, one every four seconds:

    python tests/workflow/chaos.py --kills 50 --every 4 workflow/presets/demo.yaml
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tasktransfer.files import locks

ROOT = Path(__file__).resolve().parents[2]
MARK = "TASKTRANSFER_CHAOS"

SMALL_STUDY: dict[str, Any] = {
    "study": "faults",
    "data": {"release": "tiny_world", "tiny_world": {"dialogues": 120}},
    "datasets": {"DailyDialog": {"tasks": ["emotion_recognition", "topic_classification"]}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "algorithms": "all",
    "training": {"learning_rate": 2e-3, "batch_size": 8, "epochs": 4},
}
"""Config of a study whose trainings take seconds."""

NOTHING: dict[str, Any] = {
    "differences": [],
    "half files": [],
    "trained twice": [],
    "left behind": [],
}
"""Verdict on a study without problems."""

NOT_NUMBERS = ["seconds", "hours", "samples_per_second", "peak_memory_mb", "peak_gpu_memory_mb"]
NOT_NUMBERS += ["commit"]
"""Columns of ``runs`` that describe the course of a training, not its result."""


@dataclass
class Toll:
    """Kills and starts of a study."""

    kills: Counter[str] = field(default_factory=Counter)
    """Number of killed processes by activity."""
    starts: int = 0
    """Number of starts of Snakemake."""


def snakemake(folder: Path, study: Path, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *arguments),
        *("--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", "2"),
        *("--max-jobs-per-timespan", "100/1s"),
        *("--directory", str(folder), "--configfile", str(study)),
    ]


def environment(folder: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept_always = {"TASKTRANSFER_RESUME_SECONDS": "0"}
    return {**os.environ, "PATH": path, MARK: str(folder), "HF_HUB_OFFLINE": "1", **kept_always}


def undisturbed(folder: Path, study: Path, *targets: str) -> None:
    """Run a study, or some targets of it, to the end."""
    folder.mkdir(parents=True, exist_ok=True)
    command = snakemake(folder, study, *targets)
    done = subprocess.run(
        command, env=environment(folder), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout[-4000:] + done.stderr[-8000:])


def under_fire(folder: Path, study: Path, kills: int, every: float, seed: int = 0) -> Toll:
    """Run a study, and kill one of its processes at random every few seconds.

    Snakemake is started again whenever it ends, even if its jobs are still running.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    toll = Toll()
    running: subprocess.Popen[bytes] | None = None
    with (folder / "snakemake.log").open("ab") as log:
        while toll.kills.total() < kills:
            if running is None or running.poll() is not None:
                if running is not None and running.returncode == 0:
                    break
                unlock = snakemake(folder, study, "--unlock")
                subprocess.run(unlock, env=environment(folder), stderr=log, check=False)
                command = snakemake(folder, study)
                running = subprocess.Popen(command, env=environment(folder), stderr=log, stdout=log)
                toll.starts += 1
                _wait_for_work(folder, running)
            time.sleep(every * (0.5 + chance.random()))
            victims = living(folder)
            if victims:
                pid, what = chance.choice(victims)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                toll.kills[what] += 1
    if running is not None and running.poll() is None:
        running.kill()
        running.wait()
    subprocess.run(snakemake(folder, study, "--unlock"), env=environment(folder), check=True)
    return toll


def _wait_for_work(folder: Path, running: subprocess.Popen[bytes]) -> None:
    """Wait until Snakemake has started its first job.

    If it were always killed while starting, especially on a busy machine, it would make no
    progress.
    """
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        if any(what not in ("snakemake", "shell") for _, what in living(folder)):
            return
        time.sleep(0.2)


def living(folder: Path) -> list[tuple[int, str]]:
    """Return (pid, activity) of every process of a study by age, including orphans."""
    found: dict[int, str] = {}
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if f"{MARK}={folder}".encode() not in (process / "environ").read_bytes().split(b"\0"):
                continue
            words = (process / "cmdline").read_bytes().decode().split("\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if any(words):
            found[int(process.name)] = what_it_does(words, found.get(parent))
    return [*found.items()]


def what_it_does(words: list[str], parent: str | None = None) -> str:
    """Return a process's activity, from its command line and its parent's activity."""
    if "tasktransfer.cli.host" in words:  # children of a host share its command line
        return {"host": "supervisor", "supervisor": "training"}.get(parent or "", "host")
    if "snakemake" in words:
        return "snakemake"
    if words[0].endswith(("sh", "bash")):
        return "shell"
    place = next((i for i, word in enumerate(words) if word.endswith("tasktransfer")), None)
    return words[place + 1] if place is not None else Path(words[0]).name


# --- differences and leftovers ---


def differences(disturbed: Path, calm: Path) -> list[str]:
    """List the differences between two results folders, except times."""
    found = []
    for path in sorted(calm.rglob("tables/*.parquet")):
        name = path.relative_to(calm)
        ours, theirs = _table(disturbed / name), _table(path)
        if not ours.equals(theirs):
            found.append(f"{name} differs")
    one, other = _predictions(disturbed), _predictions(calm)
    found += [
        f"{name} differs" for name in sorted({*one, *other}) if one.get(name) != other.get(name)
    ]
    if not other:
        found.append("nothing was predicted")
    return found


def _table(path: Path) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    return frame.drop(columns=[name for name in NOT_NUMBERS if name in frame])


def _predictions(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("rows.parquet")
    }


def half_files(folder: Path) -> list[str]:
    """List half-written files, and resume states of finished trainings."""
    halves = [*folder.rglob("*.part"), *folder.rglob("*.draft"), *folder.rglob("stages/**/.resume")]
    return sorted(str(path.relative_to(folder)) for path in halves)


def trained_twice(folder: Path) -> list[str]:
    """List stages whose history continues after they were finished, or that finished twice."""
    found = []
    for path in sorted(folder.rglob("history.jsonl")):
        events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
        if events.count("finished") != 1 or events[-1] != "finished":
            found.append(f"{path.parent.relative_to(folder)}: {' '.join(events)}")
    return found


def attempts(folder: Path) -> Counter[str]:
    """Count the events in all histories: started, failed, finished."""
    counts: Counter[str] = Counter()
    for path in folder.rglob("history.jsonl"):
        counts.update(json.loads(line)["event"] for line in path.read_text().splitlines())
    return counts


def resumed(folder: Path) -> int:
    """Return the number of records whose training was interrupted and resumed."""
    records = (json.loads(path.read_text()) for path in folder.rglob("stages/**/metrics.json"))
    return sum(
        any("resumed" in note for note in record["provenance"]["notes"]) for record in records
    )


def left_behind(folder: Path) -> list[str]:
    """List the remaining processes and held locks after a study's workflow has ended."""
    deadline = time.monotonic() + 10  # the host notices, and ends
    while (processes := living(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    held = [str(path) for path in folder.rglob(".claim") if locks.is_held(path)]
    return [what for _, what in processes] + held


def verdict(disturbed: Path, calm: Path) -> dict[str, Any]:
    """Return all lists that must be empty, by name."""
    return {
        "differences": differences(disturbed, calm),
        "half files": half_files(disturbed),
        "trained twice": trained_twice(disturbed),
        "left behind": left_behind(disturbed),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between kills, about")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="chaos-"))
    began = time.monotonic()
    undisturbed(base / "calm", chosen.study.resolve())
    print(f"undisturbed: {time.monotonic() - began:.0f} s, in {base / 'calm'}", flush=True)
    began = time.monotonic()
    fire = base / "fire"
    toll = under_fire(fire, chosen.study.resolve(), chosen.kills, chosen.every, chosen.seed)
    print(f"under fire: {time.monotonic() - began:.0f} s, {toll}", flush=True)
    undisturbed(fire, chosen.study.resolve())
    print(f"with the clean run: {time.monotonic() - began:.0f} s")
    print(f"events {dict(attempts(fire))}, {resumed(fire)} trainings went on after a kill")
    found = verdict(fire, base / "calm")
    print(json.dumps(found, indent=1))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
