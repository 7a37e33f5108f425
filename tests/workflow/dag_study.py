"""A small study in its own folder, run by the real Snakemake, whose trainings only touch files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from fake_record import write_fake
from forked_snakemake import run_snakemake

from tasktransfer.designs import open_study
from tasktransfer.errors import TaskTransferError

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_tasktransfer")

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"
MODEL = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}
OTHER = {"name": "tiny-gpt", "family": "decoder", "checkpoint": "tiny"}
SMALL: dict[str, Any] = {
    "study": "dag",
    "datasets": {"DailyDialog": {"tasks": [A, B]}},
    "models": [MODEL],
}


@dataclass(frozen=True)
class Sandbox:
    """A working directory with a study and a fake ``tasktransfer`` on the PATH."""

    folder: Path

    def write(self, **keys: Any) -> None:
        (self.folder / "study.yaml").write_text(yaml.safe_dump(SMALL | keys))
        with chdir(self.folder), suppress(TaskTransferError):
            study = open_study("study.yaml")
            for stage in study.plan.stages:
                write_fake(study, stage, self.folder / "made")

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        words = [
            *arguments,
            *("--workflow-profile", ROOT / "profiles" / "default", "--cores", "2"),
            # With the profile's longer timespan, each call would wait at its end.
            *("--max-jobs-per-timespan", "100/1s"),
            # Last, because all following words would count as files.
            *("--configfile", "study.yaml"),
            *(() if "--snakefile" in arguments else ("--snakefile", ROOT / "Snakefile")),
        ]
        return run_snakemake(words, self.folder, self.environment(**environment))

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment variables for the fake ``tasktransfer``."""
        return {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "FAKE_LOG": str(self.folder / "asked.log"),
            "FAKE_RECORDS": str(self.folder / "made"),
            "FAKE_RECORD_MAKER": str(Path(__file__).with_name("fake_record.py")),
            **more,
        }

    def run(self, *arguments: str, **environment: str) -> Counter[str]:
        """Run to the end, and count what was trained, collected and picked, by kind."""
        log = self.folder / "asked.log"
        log.unlink(missing_ok=True)
        done = self.call(*arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(line.split("/stages/")[-1].split("/")[0] for line in lines)

    def paths(self, kind: str, name: str) -> list[Path]:
        return sorted((self.folder / "results" / "stages" / kind).rglob(name))


def sandbox(folder: Path) -> Sandbox:
    (folder / "bin").mkdir(parents=True)
    shutil.copy2(FAKE, folder / "bin" / "tasktransfer")
    return Sandbox(folder)


def touch_later(path: Path) -> None:
    """Set a file's modification time well after that of all other files."""
    now = path.stat().st_mtime + 100
    os.utime(path, (now, now))


def records(study: Sandbox) -> dict[str, int]:
    """Return every record with its modification time in nanoseconds."""
    return {str(p): p.stat().st_mtime_ns for p in study.paths("", "metrics.json")}


def trained(study: Sandbox) -> list[str]:
    """Return the trainings that the fake was called for in the last run."""
    lines = (study.folder / "asked.log").read_text().splitlines()
    return [line for line in lines if "/stages/" in line]
