"""Rating sheets as HTML files, and their key.

A sheet needs no network and no server. It does not say which model wrote a reply: the key does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from markupsafe import Markup

from tasktransfer.core.identity import compute_digest
from tasktransfer.designs.empathetic.replies import AnsweredContext, sample_contexts
from tasktransfer.designs.empathetic.sheets.items import (
    CHECKS,
    Item,
    Kind,
    Meaning,
    assign_items,
    list_questions,
    make_checks,
    make_items,
)
from tasktransfer.errors import ConfigError
from tasktransfer.files import json_text, replace_file
from tasktransfer.present.html import create_environment, hash_text

HERE = Path(__file__).parent
SCHEMA = 1
KEY = "key.json"


class SheetKey(TypedDict):
    """Content of ``key.json``: the items of each sheet by their IDs, and what they stand for.

    ``key``: digest of the other entries, which every answer repeats.
    """

    schema: int
    kind: Kind
    seed: int
    sheets: dict[str, list[str]]
    items: dict[str, Meaning]
    key: str


@dataclass(frozen=True, slots=True)
class Sheets:
    """Sheets for raters.

    Attributes:
        kind: ratings, or pairs.
        sheets: name of a sheet → its items in their order.
        key: content of the key file.
    """

    kind: Kind
    sheets: dict[str, list[Item]]
    key: SheetKey


def plan_sheets(
    contexts: Sequence[AnsweredContext],
    kind: Kind,
    *,
    instances: int,
    raters: int,
    overlap: int,
    seed: int,
) -> Sheets:
    """Return the items of each rater's sheet. The same arguments give the same sheets.

    Args:
        contexts: contexts with replies, of which some are sampled.
        kind: ratings, or pairs.
        instances: number of contexts.
        raters: number of sheets.
        overlap: number of raters of the same item.
        seed: seed of all random choices.

    Raises:
        ConfigError: there are not enough contexts, models or raters.
    """
    if overlap > raters:
        raise ConfigError(
            f"--overlap {overlap}: The number is larger than --raters {raters}. Reduce the overlap."
        )
    kept = sample_contexts(contexts, instances, f"{kind} {seed}")
    if kind == "pairs" and len(contexts[0].replies) < 2:
        raise ConfigError("--models: A pair needs two models. Add another model.")
    chance = random.Random(f"items {kind} {seed}")
    items = list(make_items(kept, kind, chance))
    if not items:
        raise ConfigError("--models: The replies of all models are identical. Choose other models.")
    checks = [list(make_checks(kept, kind, chance)) for _ in range(raters)]
    assigned = assign_items(items, checks, overlap, chance)
    digits = len(str(raters))
    sheets = {f"rater-{n:0{digits}}": sheet for n, sheet in enumerate(assigned, 1)}
    meanings = {item.id: item.meaning for sheet in assigned for item in sheet}
    key: SheetKey = {
        "schema": SCHEMA,
        "kind": kind,
        "seed": seed,
        "sheets": {name: [item.id for item in sheet] for name, sheet in sheets.items()},
        "items": dict(sorted(meanings.items())),
        "key": "",
    }
    named = {name: value for name, value in key.items() if name != "key"}
    return Sheets(kind, sheets, {**key, "key": compute_digest(named)[:12]})


def write_sheets(sheets: Sheets, out: Path) -> list[Path]:
    """Write ``sheets/<rater>.html`` and ``key.json`` below a folder, and return the files."""
    folder = out / "sheets"
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{name}.html": render_sheet(sheets, name) for name in sheets.sheets}
    files[out / KEY] = json_text.encode(sheets.key, indent=2) + "\n"
    for file, text in files.items():
        with replace_file(file) as part:
            part.write_text(text, encoding="utf-8")
    return list(files)


def render_sheet(sheets: Sheets, name: str) -> str:
    """Return a sheet as an HTML page."""
    style, script = ((HERE / file).read_text("utf-8") for file in ("sheet.css", "sheet.js"))
    questions, answers = list_questions(sheets.kind)
    return (
        create_environment(HERE)
        .get_template("sheet.html.j2")
        .render(
            kind=sheets.kind,
            name=name,
            key=sheets.key["key"],
            items=sheets.sheets[name],
            checks=CHECKS,
            questions=questions,
            answers=answers,
            style=Markup(style),
            script=Markup(script),
            style_hash=hash_text(style),
            script_hash=hash_text(script),
        )
    )
