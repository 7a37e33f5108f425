"""What the workflow itself costs, whatever is trained: start, jobs, end, and the controller's load.

    python benchmarks/workflow_growth.py FOLDER [--only NAME ...]

Real Snakemake, the real rules and the default profile, on the paper's study; where jobs run, the
trainings are a shell script that copies ready-made records. FOLDER must not exist, or be of an
earlier call; a study in it that was finished is not run again. Prints a Markdown table of wall and
processor seconds; the latter count children too, and tell more where other programs run.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from tasktransfer.designs import open_study

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "workflow"))
from fake_record import fake_record  # noqa: E402

STAND_IN = ROOT / "tests" / "workflow" / "fake_tasktransfer"

TRAINING = """#!/bin/sh
# A training that takes no time, or a second once {slow} is there. The rest: the tests' script.
[ "$1" = train ] || exec bash {others} "$@"
save=no
while [ $# -gt 0 ]; do
    case "$1" in --out) out="$2"; shift ;; --save-checkpoint) save=yes ;; esac
    shift
done
mkdir -p "$out"
[ "$save" = no ] || mkdir -p "$out/checkpoint"
: > "$out/rows.parquet"
cp "{records}/${{out##*-}}" "$out/metrics.json"
[ ! -e {slow} ] || sleep 1
"""

TOY = """
PAIRS = [(s, t) for s in range(12) for t in range(12) if s != t]
STUDY = [f"{m}/{s}-{t}/{e}" for m in "abc" for s, t in PAIRS for e in range(5)]


rule all:
    input:
        [f"{kind}/{name}.json" for kind in ("finetune", "multitask", "after") for name in STUDY],


rule baseline:
    output: "baseline/{m}/{s}/{e}.json"
    log: "baseline/{m}/{s}/{e}.log"
    shell: "echo {output} > {log}"


rule finetune:
    input: "baseline/{m}/{s}/{e}.json"
    output: "finetune/{m}/{s}-{t}/{e}.json"
    log: "finetune/{m}/{s}-{t}/{e}.log"
    shell: "echo {output} > {log}"


rule multitask:
    output: "multitask/{m}/{s}-{t}/{e}.json"
    log: "multitask/{m}/{s}-{t}/{e}.log"
    shell: "echo {output} > {log}"


rule after:
    input: "multitask/{m}/{s}-{t}/{e}.json"
    output: "after/{m}/{s}-{t}/{e}.json"
    log: "after/{m}/{s}-{t}/{e}.log"
    shell: "echo {output} > {log}"
"""

DAILY = {"datasets": {"DailyDialog": {"tasks": "all"}}, "algorithms": "all"}
TINY = [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}]
THREE = [
    *TINY,
    {"name": "tiny-gpt", "family": "decoder", "checkpoint": "tiny"},
    {"name": "tiny-t5", "family": "encoder_decoder", "checkpoint": "tiny"},
]
FINISHED_JOBS, WATCHED_SECONDS = 1500, 30


@dataclass(frozen=True)
class Took:
    """Seconds of a command and of what it started; ``text``: what it printed."""

    wall: float
    processor: float
    text: str


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    wall: float
    processor: float
    result: str
    target: str


def paper(**keys: Any) -> dict[str, Any]:
    """The paper's study, with the tiny world and tiny models in place of the release and the hub's
    checkpoints, so that it needs no data: the same trainings, and the same files to look for."""
    study: dict[str, Any] = yaml.safe_load(
        (ROOT / "workflow" / "presets" / "paper.yaml").read_text()
    )
    return study | {"data": {"release": "tiny_world"}, "results": "results", "models": THREE} | keys


def prepared(folder: Path, study: dict[str, Any]) -> Path:
    """A working directory with a study and the stand-in."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    command = folder / "bin" / "tasktransfer"
    records = folder / "records"
    command.write_text(TRAINING.format(slow=folder / "slow", others=STAND_IN, records=records))
    command.chmod(0o755)
    return folder


def with_records(folder: Path) -> Path:
    """The same with a valid record of each training, for the stand-in to copy: one that is not
    valid is not finished."""
    records = folder / "records"
    records.mkdir(exist_ok=True)
    with contextlib.chdir(folder):
        stages = open_study("study.yaml").plan.stages
    for stage in stages:
        (records / stage.digest[:12]).write_text(fake_record(stage))
    return folder


def command(*arguments: str, cores: int = 2, snakefile: Path = ROOT / "Snakefile") -> list[str]:
    return [
        *(sys.executable, "-m", "snakemake", *arguments, "--snakefile", str(snakefile)),
        *("--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", str(cores)),
        *(("--configfile", "study.yaml") if snakefile.is_relative_to(ROOT) else ()),
    ]


def environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "FAKE_LOG": str(folder / "asked.log")}


def timed(
    folder: Path, *arguments: str, cores: int = 2, snakefile: Path = ROOT / "Snakefile"
) -> Took:
    """Run Snakemake to its end. Raises SystemExit where it fails."""
    printed = folder / "printed.txt"
    before, began = os.times(), time.perf_counter()
    with printed.open("w") as out:
        done = subprocess.run(
            command(*arguments, cores=cores, snakefile=snakefile),
            cwd=folder,
            env=environment(folder),
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"snakemake failed, see {printed}")
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return Took(wall, used, printed.read_text())


def dry_run(folder: Path, study: dict[str, Any], what: str, target: str) -> Iterator[Row]:
    """A fresh study, every job printed."""
    prepared(folder, study)
    took = timed(folder, "-n")
    yield Row(what, took.wall, took.processor, f"{total(took)} jobs", target)


def total(took: Took) -> str:
    """The number of jobs that a dry run counted."""
    return next(line.split()[1] for line in took.text.splitlines() if line.startswith("total"))


def toy(folder: Path) -> Iterator[Row]:
    """Snakemake's own part: rules of one line each, as many trainings as the paper's study has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Snakefile").write_text(TOY)
    took = timed(folder, "-n", snakefile=folder / "Snakefile")
    yield Row(
        "dry run, a toy of one-line rules", took.wall, took.processor, f"{total(took)} jobs", ""
    )


def paper_preset(folder: Path) -> Iterator[Row]:
    yield from dry_run(folder, paper(), "dry run, paper preset", "20 s")


def twenty_thousand(folder: Path) -> Iterator[Row]:
    yield from dry_run(folder, paper(seeds=16), "dry run, 16 seeds", "75 s")


def trivial_jobs(folder: Path) -> Iterator[Row]:
    """Wall time over what the start takes and the programs themselves, a job."""
    shutil.rmtree(folder, ignore_errors=True)
    with_records(prepared(folder, DAILY | {"study": "jobs", "models": TINY, "seeds": 8}))
    timed(folder, "data")
    start = timed(folder, "trainings", "-n", "--quiet")  # the start, nothing printed
    took = timed(folder, "trainings", cores=1)
    jobs = len(list((folder / "results" / "stages").rglob("metrics.json")))
    own = programs_alone(folder, jobs)
    overhead = (took.wall - start.wall - own) / jobs
    found = f"{jobs:,} jobs, {1000 * overhead:.1f} ms each beside the programs' {own:.0f} s"
    yield Row("trivial jobs, one core, start taken off", took.wall, took.processor, found, "30 ms")


def programs_alone(folder: Path, jobs: int) -> float:
    """What so many of the stand-in take by themselves, by as many as a tenth of them."""
    words = [str(folder / "bin" / "tasktransfer"), "train", "--save-checkpoint", "--out"]
    count = max(1, jobs // 10)
    records = [file.name for file in (folder / "records").iterdir()]
    began = time.perf_counter()
    for name in records[:count]:
        subprocess.run([*words, str(folder / "alone" / f"seed0-{name}")], check=True)
    return (time.perf_counter() - began) * jobs / count


def finished(folder: Path) -> Iterator[Row]:
    """The paper's study, run to the end by the stand-in, asked for once more."""
    with_records(prepared(folder, paper()))
    ran = timed(folder, cores=4)
    if "Nothing to be done" not in ran.text:
        yield Row("the paper preset run by the stand-in, 4 cores", ran.wall, ran.processor, "", "")
    took = timed(folder)
    if "Nothing to be done" not in took.text:
        raise SystemExit(f"not finished: see {folder / 'printed.txt'}")
    yield Row("finished study", took.wall, took.processor, "nothing to be done", "15 s")


def controller(folder: Path) -> Iterator[Row]:
    """Its share of a core with 1,500 jobs done, thousands ready, four of a second each running."""
    shutil.rmtree(folder, ignore_errors=True)
    with_records(prepared(folder, paper()))
    timed(folder, "data")
    with started(folder, "trainings", cores=4) as process:
        records = folder / "printed.txt"
        wait(process, lambda: records.read_text().count("Finished jobid") >= FINISHED_JOBS)
        (folder / "slow").touch()
        time.sleep(5)
        before, began, done = processor_of(process.pid), time.perf_counter(), finished_jobs(records)
        time.sleep(WATCHED_SECONDS)
        used, wall = processor_of(process.pid) - before, time.perf_counter() - began
        rate = (finished_jobs(records) - done) / wall
    found = f"{100 * used / wall:.0f} % of a core, {rate:.1f} jobs a second"
    yield Row(f"controller, {done:,} jobs finished", wall, used, found, "50 %")


def finished_jobs(printed: Path) -> int:
    return printed.read_text().count("Finished jobid")


@contextmanager
def started(folder: Path, *arguments: str, cores: int) -> Iterator[subprocess.Popen[bytes]]:
    """Snakemake in a process group of its own, ended with the block."""
    with (folder / "printed.txt").open("w") as out:
        process = subprocess.Popen(
            command(*arguments, cores=cores),
            cwd=folder,
            env=environment(folder),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    while not condition():
        if process.poll() is not None:
            raise SystemExit("snakemake ended before it could be watched: see printed.txt")
        time.sleep(1)


def processor_of(pid: int) -> float:
    """Processor seconds of one process, without those of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


MEASUREMENTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "toy": toy,
    "paper": paper_preset,
    "twenty-thousand": twenty_thousand,
    "jobs": trivial_jobs,
    "finished": finished,
    "controller": controller,
}


def where() -> str:
    """Date, machine and versions, as the table's caption."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    today = datetime.datetime.now().date().isoformat()
    return (
        f"{today}, {os.cpu_count()} cores of {cpu}, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, Snakemake {version('snakemake')}, load "
        f"{os.getloadavg()[0]:.1f} at the start"
    )


def main(folder: Path, names: list[str]) -> None:
    """Measure and print."""
    print(where())
    print("\n| what | wall s | processor s | result | target |\n|---|---|---|---|---|")
    for name in names:
        for row in MEASUREMENTS[name]((folder / name).absolute()):
            print(
                f"| {row.what} | {row.wall:.1f} | {row.processor:.1f} | {row.result} | "
                f"{row.target} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where studies are made")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    asked = parser.parse_args()
    main(asked.folder, asked.only)
