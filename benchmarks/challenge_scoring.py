"""Measure the time of a leaderboard with many full-size submissions.

Writes N archives with every task of a dataset's test split (gold answers with random errors, each
archive with its own quality). Then times ``tasktransfer leaderboard`` in a separate process.

    .venv/bin/python benchmarks/challenge_scoring.py --data DIR --dataset DailyDialog --entries 100
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.challenge.format import (
    FILES,
    format_csv,
    list_row_ids,
    to_values,
    write_archive,
)
from tasktransfer.tasks.card import Instance, Task


def main() -> None:
    """Write the archives, score them, and print the time."""
    asked = _parse_arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = make_archives(folder, asked.data, asked.dataset, asked.entries)
        size = sum(path.stat().st_size for path in folder.glob("*.zip")) / asked.entries / 2**20
        print(f"{asked.entries} archives of {rows:,} rows, {size:.1f} MiB each")
        seconds = time_leaderboard(folder, asked.data, asked.cores)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"leaderboard: {seconds:.1f} s wall, {used.ru_utime + used.ru_stime:.1f} s of processors, "
        f"{asked.cores} processes of at most {used.ru_maxrss / 1024:,.0f} MiB"
    )
    print(f"load of the machine in the last minute: {os.getloadavg()[0]:.1f}")


def make_archives(folder: Path, data: Path, dataset: str, entries: int) -> int:
    """Write the archives, and return the number of rows in each."""
    release = DATASETS[dataset].reader.open(data, True)
    tests = [
        (DATASETS[dataset].tasks[name], list(release.instances(name, "test")))
        for name in release.tasks
    ]
    rows = 0
    for entry in range(entries):
        chance = random.Random(entry)
        quality = 0.3 + 0.6 * entry / entries
        members: dict[str, bytes] = {}
        for card, instances in tests:
            for file in FILES:
                answers = [
                    _sample_answer(card, instance, quality, chance) for instance in instances
                ]
                flat = [
                    row
                    for instance, answer in zip(instances, answers, strict=True)
                    for row in zip(
                        list_row_ids(card, instance.id), to_values(card, answer), strict=True
                    )
                ]
                members[f"{card.name}/{file}"] = format_csv(flat, "csv")
                rows += len(flat)
        write_archive(folder / f"entry{entry:03}.zip", members)
    return rows // entries


def _sample_answer(
    card: Task, instance: Instance, quality: float, chance: random.Random
) -> tuple[str, ...]:
    """Return the gold answer with probability ``quality``, else a plausible wrong one."""
    right = chance.random() < quality
    if card.kind == "span":
        if right:
            return instance.target[:1]
        words = instance.context.split()
        begin = chance.randrange(max(1, len(words)))
        return (" ".join(words[begin : begin + chance.randint(1, 12)]),)
    if right:
        return instance.target
    if card.kind == "multi_label":
        return tuple(chance.sample(card.labels, 2))
    return tuple(chance.choice(card.labels) for _ in instance.target)


def time_leaderboard(folder: Path, data: Path, cores: int) -> float:
    """Return the wall time in seconds, including Python's start and reading the release."""
    command = [sys.executable, "-m", "tasktransfer", "leaderboard", str(folder)]
    command += ["--data", str(data), "--out", str(folder / "out"), "--jobs", str(cores)]
    one_each = {**os.environ, "OMP_NUM_THREADS": "1"}
    began = time.perf_counter()
    subprocess.run(command, check=True, env=one_each, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--dataset", default="DailyDialog", choices=("DailyDialog", "Friends"))
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
