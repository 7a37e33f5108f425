"""The page's own files, escaping of values for the page, and a single table as an HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasktransfer.files import replace_file
from tasktransfer.present.html import HtmlTable, create_environment

HERE = Path(__file__).parent


def read_package_text(name: str) -> str:
    """Read a text file of the package.

    Args:
        name: name of a file in this folder, or a path relative to the package, such as
            ``designs/transfer/report/heatmap.js``.
    """
    path = HERE / name
    return (path if path.exists() else HERE.parents[1] / name).read_text(encoding="utf-8")


def escape_json(value: Any) -> Markup:
    """Escape JSON so that it cannot end the script element that contains it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def encode_data_uri(text: str, kind: str) -> str:
    """Return a text as a base64 data URI with the media type ``kind``."""
    return f"data:{kind};base64,{base64.b64encode(text.encode('utf-8')).decode('ascii')}"


def hash_text(text: str) -> str:
    """Return the hash of a style or script for the content security policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def write_fragment(path: Path, table: HtmlTable) -> Path:
    """Write a single table as an HTML page, atomically, and return its path."""
    template = create_environment(HERE).get_template("fragment.html.j2")
    style = read_package_text("page.css")
    text = template.render(table=table, style=Markup(style), style_hash=hash_text(style))
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path
