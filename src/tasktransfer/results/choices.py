"""Choices that a plan depends on, each stored once as JSON (``core.plan.Choice``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasktransfer.core.plan import get_choice_file_name
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replace_file


def read_choice(results: str | Path, name: str) -> Any | None:
    """Return a stored choice, or None if it is still pending. Planners call this at every start.

    Raises:
        RecordError: the file is damaged.
    """
    path = Path(results, get_choice_file_name(name))
    if not path.exists():
        return None
    try:
        return json_text.read(path)
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{path}: The file is damaged ({error!r}). Delete it, and run the study again to "
            "repeat the selection."
        ) from error


def write_choice(results: str | Path, name: str, chosen: Any) -> None:
    """Write a choice atomically."""
    path = Path(results, get_choice_file_name(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        part.write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")
