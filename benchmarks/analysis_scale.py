"""Measure time and memory of building tables, figures and report from records of the paper's size.

    python benchmarks/analysis_scale.py FOLDER [FACTOR [INSTANCES]]

Writes constructed records (tests/scale_records.py) into FOLDER unless it already has some. Then
runs each step in a separate process: collect, statistics, figures with the printed tables, the
report, and statistics again after one record has changed. FACTOR multiplies the number of seeds: 10
means 50 seeds instead of the paper's 5. The records are still in the file system's cache when they
are read.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from scale_records import INSTANCES, paper_study, write_scale_study, write_stage
from tasktransfer.designs.transfer.runs import select_transfer_runs

COLLECT = """
from transfer_frames import write_collected_tables
frames = write_collected_tables(study)
assert frames["problems"].empty, frames["problems"]["error"].iloc[0]
assert frames["missing"].empty
print(f"{len(frames['transfer_runs']):,} runs", end="")
"""
STATISTICS = """
from transfer_frames import write_statistics
print(f"{len(write_statistics(study)['cells']):,} cells", end="")
"""
FIGURES = """
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import write_figures
write_figures(get_design(study.config), study)
"""
REPORT = """
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import write_report
write_report(get_design(study.config), study)
print(f"{Path(study.report).stat().st_size / 2**20:.1f} MiB", end="")
"""


def main(folder: Path, factor: int = 1, instances: int = INSTANCES) -> None:
    """Write missing records, run every step, and print seconds and memory."""
    if not (folder / "stages").exists():
        began = time.perf_counter()
        write_scale_study(folder, factor, instances)
        print(f"records made in {time.perf_counter() - began:.0f} s")
    write_last_run(folder, factor, instances, take="")
    for made in ("tables", "figures"):
        shutil.rmtree(folder / made, ignore_errors=True)
    steps = {"collect": COLLECT, "statistics": STATISTICS, "figures": FIGURES, "report": REPORT}
    seconds = [run(name, code, folder, factor) for name, code in steps.items()]
    print(f"{'together':28}{sum(seconds):8.1f} s")
    write_last_run(folder, factor, instances, take="another")
    for name in ("collect", "statistics"):
        run(f"{name}, one record changed", steps[name], folder, factor)


def run(name: str, code: str, folder: Path, factor: int) -> float:
    """Run Python code in a separate process, print its cost, and return its seconds."""
    began = time.perf_counter()
    tests = Path(__file__).resolve().parents[1] / "tests"
    start = f"import sys\nsys.path.insert(0, {str(tests)!r})\n"
    start += "from pathlib import Path\nfrom scale_records import paper_study\n"
    start += f"study = paper_study(Path({str(folder)!r}), {factor})\n"
    print(f"{name:28}", end="", flush=True)
    process = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", start + code])
    _, status, used = os.wait4(process, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{name} failed")
    print(
        f"\r{name:28}{seconds:8.1f} s, {used.ru_utime + used.ru_stime:7.1f} s of processors, "
        f"at most {used.ru_maxrss / 1024:7,.0f} MiB",
        flush=True,
    )
    return seconds


def write_last_run(folder: Path, factor: int, instances: int, take: str) -> None:
    """Write the last run of the study, whose record has a score that depends on ``take``."""
    study = paper_study(folder, factor)
    run = select_transfer_runs(study.plan)[-1]  # a fine-tuning: no other run ends with it
    write_stage(study, run.stages[-1], [run], instances, take)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for the records")
    parser.add_argument("factor", type=int, nargs="?", default=1, help="factor for the seeds")
    parser.add_argument(
        "instances", type=int, nargs="?", default=INSTANCES, help="test instances per record"
    )
    main(**vars(parser.parse_args()))
