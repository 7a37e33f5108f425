"""Differences of two results folders: tables by row, pictures by pixel, texts by line.

python -m benchmarks.compare_results BEFORE AFTER [--tolerance 1e-9] [--ignore COLUMN ...]

This regression check covers the code that runs after records are written: equal records must give
equal tables, unless a difference is intended. Rows are joined on all columns that are not of
floating point. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import image
from pandas.api.types import is_float_dtype

MACHINE = (
    "seconds",
    "gpu_hours",
    "samples_per_second",
    "tokens_per_second",
    "peak_memory",
    "energy_kwh",
    "commit",
    "host",
    "device",
    "started",
    "record_sha256",
)
"""Parts of names of provenance columns, which are left out."""
SHOWN = 5
"""Number of examples printed per kind of difference."""


def compare(
    before: Path, after: Path, tolerance: float, ignored: Sequence[str] = MACHINE
) -> dict[str, list[str]]:
    """Return the differences of two results folders by file, without equal files.

    Args:
        tolerance: largest absolute difference of two numbers that count as equal.
        ignored: parts of the names of columns that are left out.
    """
    names = sorted({*_files(before), *_files(after)})
    found = {}
    for name in names:
        one, other = before / name, after / name
        if not one.exists() or not other.exists():
            found[name] = [f"only {'after' if other.exists() else 'before'}"]
        elif name.endswith(".parquet"):
            found[name] = tables(one, other, tolerance, ignored)
        elif name.endswith(".png"):
            found[name] = pictures(one, other)
        else:
            found[name] = texts(one, other)
    return {name: lines for name, lines in found.items() if lines}


def _files(folder: Path) -> Iterable[str]:
    for kind in ("tables/*.parquet", "figures/*.png", "figures/*.csv", "figures/*.md"):
        yield from (str(file.relative_to(folder)) for file in folder.glob(kind))


def tables(one: Path, other: Path, tolerance: float, ignored: Sequence[str]) -> list[str]:
    """Return the differences of two Parquet tables: columns, rows, numbers."""
    before, after = (_read(file, ignored) for file in (one, other))
    lines = [f"column {name}: only before" for name in before.columns.difference(after.columns)]
    lines += [f"column {name}: only after" for name in after.columns.difference(before.columns)]
    shared = [name for name in before.columns if name in after.columns]
    numbers = [n for n in shared if is_float_dtype(before[n]) or is_float_dtype(after[n])]
    keys = [name for name in shared if name not in numbers]
    if not keys:
        same_size = len(before) == len(after)
        return lines + ([] if same_size else [f"{len(before)} rows before, {len(after)} after"])
    numbered = [_numbered(frame, keys) for frame in (before, after)]
    joined = numbered[0].merge(
        numbered[1], on=[*keys, "_nth"], how="outer", suffixes=("", "_after"), indicator="_side"
    )
    for side, word in (("left_only", "before"), ("right_only", "after")):
        rows = joined[joined["_side"] == side]
        if len(rows):
            examples = "; ".join(_named(row, keys) for _, row in rows.head(SHOWN).iterrows())
            lines.append(f"{len(rows)} rows only {word}: {examples}")
    both = joined[joined["_side"] == "both"]
    return lines + [line for name in numbers if (line := _moved(both, name, keys, tolerance))]


def _read(file: Path, ignored: Sequence[str]) -> pd.DataFrame:
    frame = pd.read_parquet(file)
    dropped = [name for name in frame.columns if any(part in name for part in ignored)]
    return frame.drop(columns=dropped)


def _numbered(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Convert keys to text, and number rows with equal keys by their order."""
    frame = frame.assign(**{name: frame[name].map(_text).astype(object) for name in keys})
    return frame.assign(_nth=frame.groupby(keys, sort=False).cumcount())


def _text(value: object) -> str:
    return str(value.tolist()) if isinstance(value, np.ndarray) else str(value)


def _named(row: pd.Series, keys: list[str]) -> str:
    return " ".join(str(row[name]) for name in keys)[:120]


def _moved(both: pd.DataFrame, name: str, keys: list[str], tolerance: float) -> str:
    """Describe the differences in a column of numbers; empty if there are none."""
    one, other = (pd.to_numeric(both[n], errors="coerce") for n in (name, f"{name}_after"))
    apart = (one - other).abs()
    differs = (apart > tolerance) | (one.isna() != other.isna())
    if not differs.any():
        return ""
    rows = both[differs].head(SHOWN)
    examples = "; ".join(
        f"{_named(row, keys)}: {row[name]:.6g} -> {row[f'{name}_after']:.6g}"
        for _, row in rows.iterrows()
    )
    return f"column {name}: {differs.sum()} of {len(both)} differ, by {apart.max():.3g}: {examples}"


def pictures(one: Path, other: Path) -> list[str]:
    """Return the differences of two pictures: their sizes, or the fraction of pixels."""
    before, after = image.imread(one), image.imread(other)
    if before.shape != after.shape:
        return [f"size {before.shape} -> {after.shape}"]
    share = float((before != after).any(axis=-1).mean())
    return [f"{100 * share:.3f} % of the pixels differ"] if share else []


def texts(one: Path, other: Path) -> list[str]:
    """Return the number of different lines in two texts, and the first one."""
    before, after = (file.read_text(encoding="utf-8").splitlines() for file in (one, other))
    if before == after:
        return []
    pairs = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    more = f"{len(before)} lines -> {len(after)}; " if len(before) != len(after) else ""
    first = f": {pairs[0][0][:100]!r} -> {pairs[0][1][:100]!r}" if pairs else ""
    return [f"{more}{len(pairs)} lines differ{first}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="a results folder with tables/ and figures/")
    parser.add_argument("after", type=Path, help="the folder of the same study, by other code")
    parser.add_argument(
        "--tolerance", type=float, default=1e-9, help="absolute tolerance of numbers"
    )
    parser.add_argument("--ignore", nargs="*", default=[], help="parts of column names to ignore")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    for folder in (chosen.before, chosen.after):
        if not (folder / "tables").is_dir():
            parser.error(f"{folder}: not a results folder, it has no tables/; collect it first")
    found = compare(chosen.before, chosen.after, chosen.tolerance, (*MACHINE, *chosen.ignore))
    if chosen.json:
        print(json.dumps(found, indent=1))
    else:
        for name, lines in found.items():
            print("\n".join([name, *(f"  {line}" for line in lines)]))
        print(f"{len(found)} files differ" if found else "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
