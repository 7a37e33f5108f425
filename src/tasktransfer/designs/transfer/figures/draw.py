"""Every figure of a study: which there are, what each reads, and drawing those that changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

import tasktransfer
from tasktransfer.core.digests import digest_of
from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect import columns
from tasktransfer.designs.transfer.collect.results import Results, read_results
from tasktransfer.designs.transfer.figures.aggregate_transfer import aggregate_transfer
from tasktransfer.designs.transfer.figures.heatmap import heatmap
from tasktransfer.designs.transfer.figures.lengths import lengths
from tasktransfer.designs.transfer.figures.multi_source_bars import multi_source_bars
from tasktransfer.designs.transfer.figures.one_dataset import ASKED, LENGTHS, of_dataset
from tasktransfer.designs.transfer.figures.sample_count import sample_count
from tasktransfer.designs.transfer.figures.sample_ratio import sample_ratio
from tasktransfer.designs.transfer.figures.shuffled_source import shuffled_source
from tasktransfer.designs.transfer.figures.source_type import source_type
from tasktransfer.designs.transfer.figures.style import save
from tasktransfer.designs.transfer.figures.transfer_graph import transfer_graph
from tasktransfer.designs.transfer.tables.paper_tables import write_all_tables
from tasktransfer.files import json_text, replacing
from tasktransfer.tables.store import arrow_schema

MANIFEST = "manifest.json"
_CODE = (
    "designs/transfer/figures",
    "designs/transfer/tables",
    "datasets",
    "stats",
    "tables",
)
"""Folders of the package on which a figure depends."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure's function and the frames of ``Results`` that it reads: it is handed these and no
    others, so that a frame left out here shows in the figure and not in a stale file."""

    draw: Callable[[Results, str], Figure | None]
    reads: tuple[str, ...]
    caption: str
    """What the figure shows, for people; with its number in the paper where it has one."""


_DRAWINGS = (
    Drawing(transfer_graph, ("cells",), "Who helps whom, per model (paper, Figure 1)"),
    Drawing(
        heatmap,
        ("runs", "missing", "cells", ASKED),
        "Relative improvement by transfer, per model and algorithm (paper, Figure 3)",
    ),
    Drawing(
        sample_ratio,
        ("sizes", "cells"),
        "Score delta by target task type against the source/target sample ratio (paper, Figure 4)",
    ),
    Drawing(
        sample_count,
        ("sizes", "cells"),
        "Score delta by sample count as source and as target, per model (paper, Figure 5)",
    ),
    Drawing(lengths, (LENGTHS,), "Lengths of utterances and dialogues (paper, Figure 6)"),
    Drawing(
        aggregate_transfer,
        ("missing", "cells"),
        "Mean score delta over models and algorithms (paper, Figures 7 and 8)",
    ),
    Drawing(
        source_type,
        ("cells",),
        "Score delta by source task type, per model and algorithm (paper, Figure 9)",
    ),
    Drawing(
        multi_source_bars,
        ("deltas", "missing"),
        "Several sources at once against each alone (paper, section 6.2)",
    ),
    Drawing(
        shuffled_source,
        ("runs", "missing", "cells", "control_cells"),
        "Improvement over transfer from the source with permuted answers",
    ),
)
FIGURES = dict(zip(outputs.FIGURES, _DRAWINGS, strict=True))
"""Name → drawing; the files are ``<name>_<dataset>.png`` and ``.pdf``."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """``files``: every figure's files; ``redrawn``: the names of the figures drawn this time."""

    files: list[Path]
    redrawn: list[str]


def draw(tables_folder: Path, out: Path) -> list[Path]:
    """Draw everything that the collected tables and statistics hold.

    Per dataset the figures of ``FIGURES`` that have something to show, and the paper's tables
    (``paper_tables``). See ``draw_figures`` for what is drawn again and what is kept.

    Returns:
        The files, those that were kept included.

    Raises:
        RecordError: tables or statistics are absent or damaged.
    """
    results = read_results(tables_folder)
    return [*write_all_tables(results, out), *draw_figures(results, out).files]


def draw_figures(results: Results, out: Path) -> Drawn:
    """Draw the figures whose data, code or names changed since they were drawn into ``out``.

    ``manifest.json`` there holds the digest of what each figure was drawn from. A figure is kept
    when the digest is the same and its files are there; files of figures that have nothing to
    show any more are removed. The manifest is written after each figure, so that drawing that was
    cut off goes on where it stopped.
    """
    manifest = _read_manifest(out / MANIFEST)
    digests = dict(manifest)
    files: list[Path] = []
    redrawn: list[str] = []
    shown: list[str] = []
    tables = results.tables
    for dataset in results.metadata.ordered(
        "dataset", [*tables.runs["dataset"], *tables.missing["dataset"]]
    ):
        for name, drawing in FIGURES.items():
            stem = f"{name}_{dataset}"
            part = of_dataset(results, dataset, drawing.reads)
            digest = digest_of_drawing(name, dataset, part)
            paths = [out / f"{stem}.{ending}" for ending in outputs.FIGURE_ENDINGS]
            if manifest.get(stem) != digest or not all(path.is_file() for path in paths):
                figure = drawing.draw(part, dataset)
                if figure is None:
                    continue
                digests.pop(stem, None)
                save(figure, out, stem)
                redrawn.append(stem)
                digests[stem] = digest
                _write_manifest(out / MANIFEST, digests)
            shown.append(stem)
            files += paths
    _remove(out, [stem for stem in digests if stem not in shown])
    if set(digests) != set(shown):
        _write_manifest(out / MANIFEST, {stem: digests[stem] for stem in shown})
    return Drawn(files, redrawn)


def digest_of_drawing(name: str, dataset: str, part: Results) -> str:
    """The digest of everything that a figure depends on: its frames, its names, and the code."""
    metadata = part.metadata
    frames = {frame: _digest_of_frame(frame, _frame(part, frame)) for frame in FIGURES[name].reads}
    return digest_of(
        {
            "figure": [name, dataset],
            "code": _digest_of_code(),
            "study": [metadata.study, metadata.synthetic],
            "shorts": dict(metadata.shorts),
            "order": {key: list(names) for key, names in metadata.order.items()},
            "frames": frames,
        }
    )


def _frame(part: Results, name: str) -> pd.DataFrame | None:
    if name in (LENGTHS, ASKED):
        return part.lengths if name == LENGTHS else part.prompted
    frame: pd.DataFrame = getattr(part.tables if name in columns.TABLES else part.statistics, name)
    return frame


def _digest_of_frame(name: str, frame: pd.DataFrame | None) -> str | None:
    """Of a frame's values as Arrow writes them: the same in every process and on every machine."""
    if frame is None:
        return None
    schema = None if name == LENGTHS else arrow_schema(columns.ALL[name])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


@cache
def _digest_of_code() -> str:
    """Of all that draws: nobody has to remember to raise a version when a figure is changed."""
    package = Path(tasktransfer.__file__).parent
    digest = hashlib.sha256(mpl.__version__.encode())
    for path in sorted(path for folder in _CODE for path in (package / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read_manifest(path: Path) -> dict[str, str]:
    """Stem → digest; empty where there is none or it cannot be read: then all is drawn again."""
    try:
        manifest: Any = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _write_manifest(path: Path, digests: dict[str, str]) -> None:
    with replacing(path) as part:
        part.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _remove(out: Path, stems: list[str]) -> None:
    for stem in stems:
        for ending in outputs.FIGURE_ENDINGS:
            (out / f"{stem}.{ending}").unlink(missing_ok=True)
