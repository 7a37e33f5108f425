"""Find the differences of two results folders: tables by row, pictures by pixel, texts by line.

python -m benchmarks.compare_results BEFORE AFTER [--tolerance 1e-12] [--ignore COLUMN ...]
    [--renames FILE]

This regression check covers the code that builds tables, figures and reports from records: equal
records must give equal tables, unless a difference is intended. Rows are joined on all columns that
have no floating-point numbers. BEFORE and AFTER are results folders, or folders that
``benchmarks.golden_results`` wrote with two versions of the code.
A renamed table or column is compared if the JSON file of ``--renames`` lists it:

    {"tables": {"old": "new"}, "columns": {"old table or *": {"old": "new"}}}

The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib import image

from benchmarks.compare_reports import compare_lines, compare_reports
from benchmarks.compare_tables import compare_tables

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
"""Parts of names of provenance columns, which are left out if records are from several runs."""
RECOMPUTED = ("inputs",)
"""Columns that describe the inputs of a row, left out if records are equal."""
FILES = (
    "tables/*.parquet",
    "figures/*.parquet",
    "figures/*.png",
    "figures/*.csv",
    "figures/*.md",
    "figures/*.tex",
    "*.html",
    "explained.txt",
)
KINDS = {".parquet": "tables", ".png": "pictures", ".html": "reports"}
"""Suffix of files → their kind in the summary; others are texts."""
ONLY = ("only before", "only after")


class Renames(NamedTuple):
    """Names of tables and columns that changed, from old to new."""

    tables: Mapping[str, str] = {}
    columns: Mapping[str, Mapping[str, str]] = {}

    def rename_file(self, name: str) -> str:
        """Return the new name of a file that belongs to a table."""
        path = Path(name)
        return str(path.with_stem(self.tables.get(path.stem, path.stem)))

    def get_renamed_columns(self, table: str) -> dict[str, str]:
        """Return the new names of columns in a table with this old name."""
        return {**self.columns.get("*", {}), **self.columns.get(table, {})}


def compare(
    before: Path,
    after: Path,
    tolerance: float,
    ignored: Sequence[str] = MACHINE,
    renames: Renames | None = None,
) -> dict[str, list[str]]:
    """Return the differences of two results folders by file, without files that agree.

    Args:
        before: first results folder.
        after: second results folder.
        tolerance: largest difference of two equal numbers: absolute, and relative above 1.
        ignored: parts of the names of columns that are left out.
        renames: tables and columns that changed their names.
    """
    differences = compare_files(before, after, tolerance, ignored, renames or Renames())
    return {name: lines for name, lines in differences.items() if lines}


def compare_files(
    before: Path, after: Path, tolerance: float, ignored: Sequence[str], renames: Renames
) -> dict[str, list[str]]:
    """Return the differences of two results folders by the files' new names."""
    old = {renames.rename_file(name): name for name in _list_files(before)}
    new = set(_list_files(after))
    differences = {}
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            differences[name] = [ONLY[0] if name in old else ONLY[1]]
            continue
        files = before / old[name], after / name
        if name.endswith(".parquet"):
            renamed = renames.get_renamed_columns(Path(old[name]).stem)
            differences[name] = compare_tables(*files, tolerance, ignored, renamed)
        elif name.endswith(".png"):
            differences[name] = compare_pictures(*files)
        elif name.endswith(".html"):
            differences[name] = compare_reports(*files, tolerance)
        else:
            texts = (file.read_text(encoding="utf-8").splitlines() for file in files)
            differences[name] = compare_lines("text", *texts)
    return differences


def _list_files(folder: Path) -> Iterable[str]:
    for kind in FILES:
        yield from (str(file.relative_to(folder)) for file in folder.glob(kind))


def compare_pictures(one: Path, other: Path) -> list[str]:
    """Return the difference of two pictures in size, or else the fraction of different pixels."""
    before, after = image.imread(one), image.imread(other)
    if before.shape != after.shape:
        return [f"size {before.shape} -> {after.shape}"]
    fraction = float((before != after).any(axis=-1).mean())
    return [f"{100 * fraction:.3f} % of the pixels differ"] if fraction else []


def summarise(differences: Mapping[str, Sequence[str]]) -> str:
    """Count unchanged and different files by kind, in one line."""
    counts: dict[str, Counter[str]] = {}
    for name, lines in differences.items():
        state = "equal" if not lines else lines[0] if lines[0] in ONLY else "differ"
        kind = KINDS.get(Path(name).suffix, "texts")
        counts.setdefault(kind, Counter())[state] += 1
    states = ("equal", "differ", *ONLY)
    return "; ".join(
        f"{kind}: " + ", ".join(f"{count[s]} {s}" for s in states if count[s] or s == "equal")
        for kind, count in sorted(counts.items())
    )


def find_results(folder: Path) -> dict[str, Path]:
    """Return results folders by name of their pack. The folder itself has an empty name."""
    if (folder / "tables").is_dir():
        return {"": folder}
    tables = sorted(folder.glob("*/results/*/tables"))
    return {path.relative_to(folder).parts[0]: path.parent for path in tables}


def read_renames(file: Path) -> Renames:
    """Read the JSON file of ``--renames``.

    Raises:
        ValueError: the file has a key that is neither ``tables`` nor ``columns``.
    """
    renames = json.loads(file.read_text(encoding="utf-8"))
    if unknown := renames.keys() - set(Renames._fields):
        raise ValueError(f"{file}: The keys {sorted(unknown)} are unknown. Use tables and columns.")
    return Renames(**renames)


def compare_packs(
    before: Mapping[str, Path],
    after: Mapping[str, Path],
    tolerance: float,
    ignored: Sequence[str],
    renames: Renames,
) -> dict[str, dict[str, list[str]]]:
    """Return pack → file → differences. A pack that only one folder has gets a single entry."""
    compared = {}
    for pack in sorted({*before, *after}):
        if pack in before and pack in after:
            left_out = (*(RECOMPUTED if pack else MACHINE), *ignored)
            compared[pack] = compare_files(before[pack], after[pack], tolerance, left_out, renames)
        else:
            compared[pack] = {pack: [ONLY[0] if pack in before else ONLY[1]]}
    return compared


def print_differences(compared: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Print the differences of each file, and one line of counts per pack."""
    for pack, files in compared.items():
        for name, lines in files.items():
            if lines:
                print("\n".join([f"{pack}/{name}".strip("/"), *(f"  {line}" for line in lines)]))
    for pack, files in compared.items():
        counts = files[pack][0] if pack in files else summarise(files)
        print(f"{pack}: {counts}" if pack else counts)
    different = sum(bool(lines) for files in compared.values() for lines in files.values())
    print(f"{different} files differ" if different else "no difference")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="a results folder, or a folder of golden results")
    parser.add_argument("after", type=Path, help="the folder of the same records, by other code")
    what = "largest difference of two equal numbers: absolute, and relative above 1"
    parser.add_argument("--tolerance", type=float, default=1e-12, help=what)
    parser.add_argument("--ignore", nargs="*", default=[], help="parts of column names to ignore")
    parser.add_argument("--renames", type=Path, help="JSON file of renamed tables and columns")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    sides = [find_results(folder) for folder in (chosen.before, chosen.after)]
    for folder, results in zip((chosen.before, chosen.after), sides, strict=True):
        if not results:
            parser.error(f"{folder}: not a results folder, it has no tables/; collect it first")
    if ("" in sides[0]) != ("" in sides[1]):
        parser.error(f"{chosen.before} and {chosen.after}: only one of them has several packs")
    try:
        renames = Renames() if chosen.renames is None else read_renames(chosen.renames)
    except ValueError as error:
        parser.error(str(error))
    compared = compare_packs(sides[0], sides[1], chosen.tolerance, chosen.ignore, renames)
    if chosen.json:
        print(json.dumps(compared, indent=1))
    else:
        print_differences(compared)
    return int(any(lines for files in compared.values() for lines in files.values()))


if __name__ == "__main__":
    sys.exit(main())
