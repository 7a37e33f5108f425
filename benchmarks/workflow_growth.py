"""Measure the cost of the workflow without training: start, jobs, end, and Snakemake's load.

    python benchmarks/workflow_growth.py FOLDER [--only NAME ...]

Uses the real Snakemake, rules and default profile on the paper's study. When jobs run, a shell
script that copies prepared records replaces training. FOLDER must not exist, or must come
from an earlier call; a finished study in it is not run again. Prints a Markdown table of wall and
CPU seconds. CPU seconds include child processes, and are more reliable on a busy machine.
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
from fake_record import write_fake  # noqa: E402

STAND_IN = ROOT / "tests" / "workflow" / "fake_tasktransfer"

TRAINING = """#!/bin/sh
# A training that takes no time, or a second once {slow} is there. The rest: the tests' script.
[ "$1" = train ] || exec bash {others} "$@"
while [ $# -gt 0 ]; do
    case "$1" in --node) node="$2"; shift ;; esac
    shift
done
log="$(readlink /proc/$$/fd/1)"  # the log is in the stage's folder
out="${{log%/*}}"
[ ! -e "{records}/$node.checkpoint" ] || mkdir -p "$out/checkpoint"
: > "$out/rows.parquet"
cp "{records}/$node" "$out/metrics.json"
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
    """Seconds of a command and its child processes. ``text``: its output."""

    wall: float
    processor: float
    text: str


@dataclass(frozen=True)
class Row:
    """Row of the table."""

    what: str
    wall: float
    processor: float
    result: str
    target: str


def build_paper_study(**keys: Any) -> dict[str, Any]:
    """Return the paper's study with the tiny world and tiny models, so that it needs no data.

    It has the same trainings, and Snakemake checks the same files.
    """
    study: dict[str, Any] = yaml.safe_load(
        (ROOT / "workflow" / "presets" / "paper.yaml").read_text()
    )
    return study | {"data": {"release": "tiny_world"}, "results": "results", "models": THREE} | keys


def prepare_folder(folder: Path, study: dict[str, Any]) -> Path:
    """Prepare a working directory with a study and the script that replaces training."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    command = folder / "bin" / "tasktransfer"
    records = folder / "records"
    command.write_text(TRAINING.format(slow=folder / "slow", others=STAND_IN, records=records))
    command.chmod(0o755)
    return folder


def write_records(folder: Path) -> Path:
    """Prepare a directory with a valid record of each training stage, which the script copies.

    With invalid records, the trainings would not count as finished.
    """
    with contextlib.chdir(folder):
        study = open_study("study.yaml")
    for stage in study.plan.stages:
        write_fake(study, stage, folder / "records")
    return folder


def build_command(
    *arguments: str, cores: int = 2, snakefile: Path = ROOT / "Snakefile"
) -> list[str]:
    return [
        *(sys.executable, "-m", "snakemake", *arguments, "--snakefile", str(snakefile)),
        *("--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", str(cores)),
        *(("--configfile", "study.yaml") if snakefile.is_relative_to(ROOT) else ()),
    ]


def build_environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "FAKE_LOG": str(folder / "asked.log")}


def run_snakemake(
    folder: Path, *arguments: str, cores: int = 2, snakefile: Path = ROOT / "Snakefile"
) -> Took:
    """Run Snakemake to its end. Raises SystemExit if it fails."""
    printed = folder / "printed.txt"
    before, began = os.times(), time.perf_counter()
    with printed.open("w") as out:
        done = subprocess.run(
            build_command(*arguments, cores=cores, snakefile=snakefile),
            cwd=folder,
            env=build_environment(folder),
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"Snakemake failed. Read {printed}.")
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return Took(wall, used, printed.read_text())


def measure_dry_run(folder: Path, study: dict[str, Any], what: str, target: str) -> Iterator[Row]:
    """Yield the cost of a dry run of a new study, with every job printed."""
    prepare_folder(folder, study)
    took = run_snakemake(folder, "-n")
    yield Row(what, took.wall, took.processor, f"{get_total(took)} jobs", target)


def get_total(took: Took) -> str:
    """Return the number of jobs that a dry run counted."""
    return next(line.split()[1] for line in took.text.splitlines() if line.startswith("total"))


def measure_toy(folder: Path) -> Iterator[Row]:
    """Yield Snakemake's own cost for one-line rules with as many jobs as the paper's study."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Snakefile").write_text(TOY)
    took = run_snakemake(folder, "-n", snakefile=folder / "Snakefile")
    yield Row(
        "dry run, a toy of one-line rules", took.wall, took.processor, f"{get_total(took)} jobs", ""
    )


def measure_paper_preset(folder: Path) -> Iterator[Row]:
    yield from measure_dry_run(folder, build_paper_study(), "dry run, paper preset", "20 s")


def measure_twenty_thousand(folder: Path) -> Iterator[Row]:
    yield from measure_dry_run(folder, build_paper_study(seeds=16), "dry run, 16 seeds", "75 s")


def measure_trivial_jobs(folder: Path) -> Iterator[Row]:
    """Yield the wall time per job, without the start and the programs themselves."""
    shutil.rmtree(folder, ignore_errors=True)
    write_records(prepare_folder(folder, DAILY | {"study": "jobs", "models": TINY, "seeds": 8}))
    run_snakemake(folder, "data")
    start = run_snakemake(folder, "trainings", "-n", "--quiet")  # the start, nothing printed
    took = run_snakemake(folder, "trainings", cores=1)
    jobs = len(list((folder / "results" / "stages").rglob("metrics.json")))
    own = measure_programs_alone(folder, jobs)
    overhead = (took.wall - start.wall - own) / jobs
    found = f"{jobs:,} jobs, {1000 * overhead:.1f} ms each without the programs' {own:.0f} s"
    yield Row("trivial jobs, one core, without start", took.wall, took.processor, found, "30 ms")


def measure_programs_alone(folder: Path, jobs: int) -> float:
    """Return the seconds of this many script jobs alone, extrapolated from a tenth of them."""
    words = [str(folder / "bin" / "tasktransfer"), "train", "--node"]
    count = max(1, jobs // 10)
    records = [file.name for file in (folder / "records").iterdir() if not file.suffix]
    for name in records[:count]:
        (folder / "alone" / name).mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    for name in records[:count]:
        with (folder / "alone" / name / "train.log").open("w") as log:
            subprocess.run([*words, name], stdout=log, check=True)
    return (time.perf_counter() - began) * jobs / count


def measure_finished_study(folder: Path) -> Iterator[Row]:
    """Yield the cost of calling Snakemake again on the finished study of the paper."""
    write_records(prepare_folder(folder, build_paper_study()))
    ran = run_snakemake(folder, cores=4)
    if "Nothing to be done" not in ran.text:
        yield Row("the paper preset with substitutes, 4 cores", ran.wall, ran.processor, "", "")
    took = run_snakemake(folder)
    if "Nothing to be done" not in took.text:
        raise SystemExit(f"The study is not finished. Read {folder / 'printed.txt'}.")
    yield Row("finished study", took.wall, took.processor, "nothing to be done", "15 s")


def measure_controller(folder: Path) -> Iterator[Row]:
    """Yield Snakemake's use of a core with 1,500 jobs done, thousands ready and 4 running.

    Each running job takes a second.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write_records(prepare_folder(folder, build_paper_study()))
    run_snakemake(folder, "data")
    with start_snakemake(folder, "trainings", cores=4) as process:
        records = folder / "printed.txt"
        wait_for(process, lambda: records.read_text().count("Finished jobid") >= FINISHED_JOBS)
        (folder / "slow").touch()
        time.sleep(5)
        before, began, done = (
            read_processor_seconds(process.pid),
            time.perf_counter(),
            count_finished_jobs(records),
        )
        time.sleep(WATCHED_SECONDS)
        used, wall = read_processor_seconds(process.pid) - before, time.perf_counter() - began
        rate = (count_finished_jobs(records) - done) / wall
    found = f"{100 * used / wall:.0f} % of a core, {rate:.1f} jobs a second"
    yield Row(f"controller, {done:,} jobs finished", wall, used, found, "50 %")


def count_finished_jobs(printed: Path) -> int:
    return printed.read_text().count("Finished jobid")


@contextmanager
def start_snakemake(folder: Path, *arguments: str, cores: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run Snakemake in a separate process group, which ends with the block."""
    with (folder / "printed.txt").open("w") as out:
        process = subprocess.Popen(
            build_command(*arguments, cores=cores),
            cwd=folder,
            env=build_environment(folder),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    while not condition():
        if process.poll() is not None:
            raise SystemExit("Snakemake ended before it could be measured. Read printed.txt.")
        time.sleep(1)


def read_processor_seconds(pid: int) -> float:
    """Return the processor seconds of one process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


MEASUREMENTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "toy": measure_toy,
    "paper": measure_paper_preset,
    "twenty-thousand": measure_twenty_thousand,
    "jobs": measure_trivial_jobs,
    "finished": measure_finished_study,
    "controller": measure_controller,
}


def describe_machine() -> str:
    """Return date, machine and versions as the table's caption."""
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
    """Measure everything, and print the table."""
    print(describe_machine())
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
    parser.add_argument("folder", type=Path, help="folder for the studies")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    asked = parser.parse_args()
    main(asked.folder, asked.only)
