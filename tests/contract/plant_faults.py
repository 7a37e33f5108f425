"""Check that the contract's tests can fail, by planting faults in a copy of the package.

    python tests/contract/plant_faults.py [WORD]

Each fault is one edit in ``src``, after which the test of the broken clause must fail. WORD limits
the faults to names that contain it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    """An edit of the package.

    ``old`` occurs once in ``file`` and is replaced by ``new``. ``test``: test file, and value of
    pytest's ``-k``.
    """

    name: str
    file: str
    old: str
    new: str
    test: tuple[str, str]
    also: tuple[str, str, str] | None = None
    """File, old and new of a second edit, for a second check of the same clause."""


FAULTS = (
    Fault(
        "a mixture of precisions is taken",
        "results/mixtures.py",
        "            if first == value:\n",
        "            if True:\n",
        ("records", "precision and (transfer or toy)"),
    ),
    Fault(
        "generated beside real is taken",
        "results/mixtures.py",
        '    yield ("synthetic", dataset), record["synthetic"]\n',
        "",
        ("records", "generated and (transfer or toy)"),
    ),
    Fault(
        "a damaged record is passed over",
        "results/collect.py",
        '                self.problems.append((f"{node.path}/{RECORD}", str(error)))\n',
        "                pass\n",
        ("records", "damaged and (transfer or toy)"),
    ),
    Fault(
        "the record of another node is taken",
        "results/damage.py",
        "    if not recorded.startswith(digest):\n",
        "    if False:\n",
        ("records", "another_stage and (transfer or toy)"),
        ("results/tallies.py", "    if maker != digest:\n", "    if False:\n"),
    ),
    Fault(
        "a missing run has no reason",
        "results/collect.py",
        '    reason = f"{state}: {error}" if error else state\n',
        "    return NO_RECORD\n    reason = state\n",
        ("missing", "transfer or toy"),
    ),
    Fault(
        "published values beside a generated world",
        "present/published.py",
        "np.nan if generated else published.get_value(row)\n",
        "published.get_value(row)\n",
        ("marks", "generated and panel"),
    ),
    Fault(
        "published averages over other members",
        "designs/transfer/tables/table2.py",
        '    if row["n_pairs"] == pairs:\n',
        "    if True:\n",
        ("published", "same_members and transfer"),
    ),
    Fault(
        "a limit is not told",
        "results/common_frames.py",
        '    return ", ".join(f"{name} {limit}" for _, name, limit in ordered)\n',
        '    return ""\n',
        ("marks", "cut and transfer"),
    ),
    Fault(
        "a substitute is not recorded",
        "results/collect.py",
        '            found |= record["provenance"].get("substitutes", {})\n',
        "            pass\n",
        ("marks", "stands_in and toy"),
    ),
    Fault(
        "a pack leaves out derived data",
        "operate/pack.py",
        "        if node is None or not (node_folder.folder / RECORD).is_file():\n",
        '        if node is None or node_folder.path.startswith("data"):\n',
        ("packs", "toy"),
    ),
    Fault(
        "a cell is traced to its first seed alone",
        "designs/explain/question.py",
        "found = [named.item for named in search.find(question.words)]\n",
        "found = [named.item for named in search.find(question.words)[:1]]\n",
        ("explain", "cell and (toy or panel)"),
    ),
    Fault(
        "test scores choose the sources",
        "selection/choose.py",
        'deltas = deltas if choose_by == "test" else',
        'deltas = deltas if choose_by != "" else',
        ("choices", "config_says"),
    ),
    Fault(
        "an edited card keeps old results",
        "core/nodes/data.py",
        "        return {task: self.cards[task] for task in",
        '        return {task: "" for task in',
        ("identity", "edited"),
    ),
)


def main(word: str = "") -> int:
    """Plant each fault, and return the number of undetected faults."""
    missed = 0
    for fault in FAULTS:
        if word in fault.name:
            caught = _caught(fault)
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'}: {fault.name}", flush=True)
    return missed


def _caught(fault: Fault) -> bool:
    """Return whether the clause's tests fail, and not because no test was found."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
        edits = [(fault.file, fault.old, fault.new), *([fault.also] if fault.also else [])]
        for name, old, new in edits:
            file = source / "tasktransfer" / name
            text = file.read_text(encoding="utf-8")
            if (count := text.count(old)) != 1:
                raise SystemExit(f"{name}: {old!r} stands there {count} times")
            file.write_text(text.replace(old, new), encoding="utf-8")
        of, words = fault.test
        test = ROOT / "tests" / "contract" / f"test_contract_{of}.py"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", str(test), "-k", words],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.returncode == 1 and "AssertionError" in done.stdout + done.stderr


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
