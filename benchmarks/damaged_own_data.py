"""What it takes to refuse each damaged file of dialogues of one's own: memory and processor time.

    python benchmarks/damaged_own_data.py

Every case of tests/unit/test_declared_damage.py is a study of its own, which ``tasktransfer plan``
is asked for. Prints mebibytes, seconds of processor time and the message; 300 MiB and 2 s each are
allowed, and it ends with exit code 1 if a case takes more. The default takes a minute or two.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

from test_declared_damage import CASES, MOST_MEMORY, MOST_SECONDS, refused


def main() -> int:
    """The number of cases that take too much."""
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
