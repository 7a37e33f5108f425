"""Measure memory and CPU time until damaged files of a user's own dialogues are refused.

    python benchmarks/damaged_own_data.py

Runs ``tasktransfer plan`` for every case of tests/unit/test_declared_damage.py. Prints mebibytes,
CPU seconds and the error message. The exit code is 1 if a case takes more than 300 MiB or 2 s. It
takes a minute or two.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

from test_declared_damage import CASES, MOST_MEMORY, MOST_SECONDS, refused


def main() -> int:
    """Run all cases, and return the number of those that take too much."""
    over = 0
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            told = refused(case, Path(folder))
            text = told.message.replace(f"{folder}/", "")
        is_over = told.memory > MOST_MEMORY or told.seconds > MOST_SECONDS
        over += is_over
        print(
            f"{told.memory:4.0f} MiB {told.seconds:4.2f} s{' !' * is_over}  {name}: {text:.150}",
            flush=True,
        )
    print(f"{len(CASES)} files refused, {over} of them over {MOST_MEMORY} MiB or {MOST_SECONDS} s")
    return over


if __name__ == "__main__":
    sys.exit(min(main(), 1))
