"""The report of a study: one HTML file with its figures that needs no network and no server."""

from __future__ import annotations

import base64
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from PIL import Image

from tasktransfer.files import replace_file
from tasktransfer.present.declared import SECTIONS, Analysis, Block, Figure
from tasktransfer.present.figures import describe_absent_figure
from tasktransfer.present.html import (
    PAGE,
    HtmlTable,
    create_environment,
    hash_text,
    read_package_text,
)
from tasktransfer.present.kit.style import DPI
from tasktransfer.present.marks import format_notes, list_marks
from tasktransfer.present.page.common_blocks import (
    build_cost_table,
    build_curves,
    build_missing_tables,
    format_warnings,
    is_only_waiting,
)
from tasktransfer.present.tables import AbsentOutput, build_printed_tables, to_html
from tasktransfer.results.common_frames import MISSING
from tasktransfer.results.frames import Frames

MAX_PIXELS = 4_000_000
"""Maximum size of an embedded figure; no page is wider than 2,000 pixels on a screen."""
CSS_DPI = 96
COLOURS = 256
"""Palette size; figures have few colours, and a palette reduces the file to a third."""


@dataclass(frozen=True, slots=True)
class EmbeddedImage:
    """An embedded image: a data URI, its printed size in pixels of the page, and its own notes."""

    source: str
    width: int
    height: int
    notes: str


def encode_image(path: Path) -> EmbeddedImage:
    """Encode a PNG file as a data URI, after scaling it down to ``MAX_PIXELS``.

    Raises:
        OSError: the file is missing or not an image.
    """
    with Image.open(path) as opened:
        image, size = opened.convert("RGB"), opened.size
        notes = str(opened.info.get("Description", ""))
    if image.width * image.height > MAX_PIXELS:
        scale = math.sqrt(MAX_PIXELS / (image.width * image.height))
        smaller = (round(image.width * scale), round(image.height * scale))
        image = image.resize(smaller, Image.Resampling.LANCZOS)
    flat = image.quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    flat.save(buffer, "PNG", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    width, height = (round(pixels * CSS_DPI / DPI) for pixels in size)
    return EmbeddedImage(f"data:image/png;base64,{encoded}", width, height, notes)


STYLES = ("page.css",)
FIRST_SCRIPT = "curves.js"
"""Script that the designs' scripts use."""
SCRIPTS = ("explain.js", "tables.js")
LINKS_NOTE = (
    "This file contains all text, tables and figures. Links to records and PDFs work only while "
    "the page is in its results folder."
)
LONG_NAME = 12
"""Number of letters from which tables show a task's short name."""
NOTHING_MISSING = (
    "Nothing is missing: every planned run has a result, every node of the plan has a record, and "
    "no record is damaged."
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure on the page; ``pdf`` is a link, or empty if there is no PDF."""

    name: str
    title: str
    caption: str
    source: str
    width: int
    height: int
    pdf: str
    folded: bool = False


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the page.

    ``left`` has sentences on tables and figures that are missing, and ``sentences`` the collapsed
    part of the answer.
    """

    name: str
    title: str
    blocks: Sequence[Block]
    tables: Sequence[HtmlTable] = ()
    figures: Sequence[Picture] = ()
    left: Sequence[str] = ()
    sentences: Sequence[str] = ()


def write_page(shown: Analysis, frames: Frames, figures: Path, out: Path) -> Path:
    """Write the report of a study.

    Args:
        shown: the design's declarations.
        frames: the study's frames.
        figures: folder with the figures as PNG; missing figures are left out.
        out: file to write. Its links assume that it is in the results folder.
    """
    text = render_page(shown, frames, figures, out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(out) as part:
        part.write_text(text, encoding="utf-8")
    return out


def render_page(shown: Analysis, frames: Frames, figures: Path, folder: Path) -> str:
    """Render the report as HTML, with links relative to ``folder``."""
    style = "\n".join(map(read_package_text, (*STYLES, *shown.styles)))
    script = "\n".join(map(read_package_text, (FIRST_SCRIPT, *shown.scripts, *SCRIPTS)))
    metadata = frames.metadata
    return (
        create_environment(PAGE, _select_short_names(metadata.shorts))
        .get_template("page.html.j2")
        .render(
            title=("SYNTHETIC: " if metadata.synthetic else "") + metadata.study,
            question=shown.question,
            version=metadata.version,
            synthetic=metadata.synthetic,
            real=" and ".join(metadata.real),
            troubles=format_warnings(
                shown.missing(frames), frames["problems"], metadata.facts.get(MISSING, "")
            ),
            waiting=is_only_waiting(shown.missing(frames), frames["problems"]),
            marks=format_notes(list_marks(metadata)),
            sections=list(_make_sections(shown, frames, figures, folder)),
            explain=format_explain_command(frames),
            style=Markup(style),
            script=Markup(script),
            style_hash=hash_text(style),
            script_hash=hash_text(script),
        )
    )


def _select_short_names(shorts: Mapping[str, str]) -> dict[str, str]:
    """Map long names to their short names, except where several names share one."""
    counts = Counter(shorts.values())
    return {
        name: short
        for name, short in shorts.items()
        if len(name) >= LONG_NAME and counts[short] == 1 and short
    }


def format_explain_command(frames: Frames) -> str:
    """Return the study's ``explain`` command, with placeholders for table and cell."""
    arguments = frames.study.format_arguments()
    return " ".join(part for part in ("tasktransfer explain TABLE WORDS", arguments) if part)


def _make_sections(
    shown: Analysis, frames: Frames, figures: Path, folder: Path
) -> Iterable[PageSection]:
    """Yield the non-empty sections of the page, in the order of ``SECTIONS``."""
    more = {name: list(blocks) for name, blocks in shown.blocks(frames).items()}
    blocks = _make_common_blocks(shown, frames)
    tables = build_printed_tables(shown, frames)
    for name, title in SECTIONS.items():
        declared = [figure for figure in shown.figures if figure.section == name]
        pictures = list(_load_pictures(shown, declared, figures, folder))
        texts, sentences = [*more.get(name, []), *blocks.get(name, [])], []
        if name == "answer":
            first, others = blocks[name][:1], blocks[name][1:]
            texts = [*first, *more.get(name, []), *others]
            if pictures:  # the picture shows what the other sentences say
                texts, sentences = [*first, *more.get(name, [])], [block.text for block in others]
        section = PageSection(
            name,
            title,
            texts,
            [to_html(t) for t in tables if t.section == name and not isinstance(t, AbsentOutput)],
            pictures,
            [
                *(t.why for t in tables if t.section == name and isinstance(t, AbsentOutput)),
                *(
                    describe_absent_figure(f).why
                    for f in shown.figures
                    if f.section == name
                    and _is_missing(f, figures)
                    and (name != "answer" or f.planned(frames.study))
                ),
            ],
            sentences,
        )
        if section.blocks or section.tables or section.figures or section.left:
            yield section


def _make_common_blocks(shown: Analysis, frames: Frames) -> Mapping[str, Sequence[Block]]:
    """Return the blocks that every report has: answer, missing results, cost and provenance."""
    missing, problems = shown.missing(frames), frames["problems"]
    columns = shown.missing_columns(missing)
    listed = build_missing_tables(
        missing, problems, columns, sum(c.head.kind != "long" for c in columns)
    )
    nodes = frames.metadata.facts.get(MISSING, "")
    curves = filter(None, [build_curves(frames["training_rounds"])])
    lost = [Block(text=f"No record exists for {nodes}.")] if nodes else []
    return {
        "answer": [Block(text=sentence) for sentence in shown.answer(frames)],
        "missing": [*lost, *(Block(table=t) for t in listed)] or [Block(text=NOTHING_MISSING)],
        "cost": [Block(table=build_cost_table(frames["resources"]))]
        if len(frames["resources"])
        else [],
        "made": [Block(facts=[*shown.facts(frames)]), Block(text=LINKS_NOTE), *curves],
    }


def _is_missing(figure: Figure, figures: Path) -> bool:
    return not (figures / f"{figure.name}.png").exists()


def _load_pictures(
    shown: Analysis, declared: Sequence[Figure], figures: Path, folder: Path
) -> Iterable[Picture]:
    for figure in declared:
        if _is_missing(figure, figures):
            continue
        path = figures / f"{figure.name}.png"
        image, pdf = encode_image(path), path.with_suffix(".pdf")
        caption = shown.read_caption(figure.text or figure.name, figure.caption)
        beside = pdf.exists() and pdf.is_relative_to(folder)
        yield Picture(
            name=figure.name,
            title=figure.title,
            caption=" ".join(part for part in (caption, image.notes) if part),
            source=image.source,
            width=image.width,
            height=image.height,
            pdf=pdf.relative_to(folder).as_posix() if beside else "",
            folded=figure.folded,
        )
