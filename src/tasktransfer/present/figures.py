"""Declared figures, which are drawn again only if their data or code changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import pandas as pd
import pyarrow as pa

import tasktransfer
from tasktransfer.core.digests import compute_digest
from tasktransfer.files import json_text, replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.present.csv_text import to_csv
from tasktransfer.present.declared import FIGURE_ENDINGS, Analysis, Figure
from tasktransfer.present.kit.style import save
from tasktransfer.present.paper_files import draw_for_paper, list_paper_endings
from tasktransfer.present.tables import Left
from tasktransfer.results.frames import Frames

FigureStyle = Literal["screen", "paper"]
MANIFEST = "manifest.json"
CODE = ("present", "results", "stats", "datasets")
"""Folders of the package on which every figure depends, in addition to its design's folder."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Result of drawing figures.

    Args:
        names: figures that have files.
        redrawn: figures that were drawn in this call.
        left: figures that the study does not have, with the reason.
    """

    names: list[str]
    redrawn: list[str]
    left: list[Left]
    endings: Sequence[str] = FIGURE_ENDINGS

    def files(self, folder: Path) -> list[Path]:
        """Return the files of every figure."""
        return [folder / f"{name}.{ending}" for name in self.names for ending in self.endings]


def draw_figures(
    shown: Analysis, frames: Frames, out: Path, style: FigureStyle = "screen"
) -> Drawn:
    """Draw the figures whose data, code or names changed since they were drawn into ``out``.

    ``manifest.json`` in this folder has a digest of each figure's inputs. A figure is kept if its
    digest is unchanged and its files exist. Files of figures without data are removed. The manifest
    is written after each figure, so that interrupted drawing resumes where it stopped. Module
    ``kit.paper`` describes the style ``paper``.
    """
    out.mkdir(parents=True, exist_ok=True)
    manifest = _read_manifest(out / MANIFEST)
    digests = dict(manifest)
    endings = list_paper_endings() if style == "paper" else FIGURE_ENDINGS
    drawn = Drawn([], [], [], endings)
    for figure in show_progress(shown.figures, "drawing figures"):
        part = frames.select(figure.reads)
        if figure.part is not None:
            part = figure.part(part)
        caption = shown.read_caption(figure.text or figure.name, figure.caption)
        digest = compute_drawing_digest(figure, part)
        if style == "paper":
            digest = compute_digest([digest, caption])
        csv = out / f"{figure.name}.csv"
        paths = [out / f"{figure.name}.{ending}" for ending in endings]
        paths += [csv] if figure.data else []
        if manifest.get(figure.name) != digest or not all(path.is_file() for path in paths):
            canvas = figure.draw(part) if figure.planned(frames.study) else None
            if canvas is None:
                drawn.left.append(explain_absence(figure))
                continue
            if style == "paper":
                draw_for_paper(partial(figure.draw, part), canvas, out / figure.name, caption)
            else:
                save(canvas, out, figure.name)
            if figure.data is not None:
                with replace_file(csv) as file:
                    file.write_text(to_csv(figure.data(part)), encoding="utf-8")
            drawn.redrawn.append(figure.name)
            digests[figure.name] = digest
            _write_manifest(out / MANIFEST, digests)
        drawn.names.append(figure.name)
    gone = [name for name in digests if name not in drawn.names]
    _remove(out, gone, endings)
    tables = {table.name for table in shown.tables}
    _remove(out, [name for name in gone if name not in tables], ("csv",))
    if set(digests) != set(drawn.names):
        _write_manifest(out / MANIFEST, {name: digests[name] for name in drawn.names})
    return drawn


def explain_absence(figure: Figure) -> Left:
    """Return the reason why a study does not have a figure."""
    return Left(
        figure.name,
        figure.title,
        f"{figure.title}: the study {figure.nothing}.",
        figure.section,
    )


def compute_drawing_digest(figure: Figure, part: Frames) -> str:
    """Return the digest of everything that a figure depends on: frames, names and code."""
    metadata = part.metadata
    return compute_digest(
        {
            "figure": [figure.name, figure.title],
            "code": _compute_code_digest(part.study.config.design, _locate_file(figure.draw)),
            "study": [metadata.study, metadata.synthetic, metadata.cuts],
            "facts": dict(metadata.facts),
            "shorts": dict(metadata.shorts),
            "order": {key: list(names) for key, names in metadata.order.items()},
            "frames": {name: _compute_frame_digest(frame) for name, frame in part.items()},
        }
    )


def _compute_frame_digest(frame: pd.DataFrame) -> str:
    """Return a digest of a frame's values in Arrow format, equal in all processes and machines."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


@cache
def _compute_code_digest(design: str, file: str) -> str:
    """Return a digest of all drawing code, so that changed figures need no version number.

    ``file`` is the file of the figure's function, which may be in a plugin.
    """
    package = Path(tasktransfer.__file__).parent
    folders = [*CODE, f"designs/{design}"]
    digest = hashlib.sha256(mpl.__version__.encode())
    paths = {path for folder in folders for path in (package / folder).rglob("*.py")}
    for path in sorted({*paths, Path(file)}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _locate_file(draw: Any) -> str:
    return str((draw.func if isinstance(draw, partial) else draw).__code__.co_filename)


def _read_manifest(path: Path) -> dict[str, str]:
    """Read name → digest; empty if the file is missing or unreadable, so that all is redrawn."""
    try:
        manifest: Any = json_text.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _write_manifest(path: Path, digests: dict[str, str]) -> None:
    with replace_file(path) as part:
        part.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _remove(out: Path, names: Sequence[str], endings: Sequence[str]) -> None:
    for name in names:
        for ending in endings:
            (out / f"{name}.{ending}").unlink(missing_ok=True)
