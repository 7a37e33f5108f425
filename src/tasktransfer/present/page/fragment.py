"""A single table as an HTML file."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from tasktransfer.files import replace_file
from tasktransfer.present.html import HtmlTable, create_environment
from tasktransfer.present.page.text import HERE, hash_of, read_own_text


def write_fragment(path: Path, table: HtmlTable) -> Path:
    """Write a page with one table, atomically."""
    template = create_environment(HERE).get_template("fragment.html.j2")
    style = read_own_text("page.css")
    text = template.render(table=table, style=Markup(style), style_hash=hash_of(style))
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
