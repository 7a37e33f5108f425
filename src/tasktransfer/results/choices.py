"""Choices that a plan depends on, each written down once as JSON (``core.plan.Choice``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasktransfer.core.plan import choice_file
from tasktransfer.errors import RecordError
from tasktransfer.files import json_text, replacing


def read_choice(results: str | Path, name: str) -> Any | None:
    """What was chosen; None: nothing yet. Planners ask at every start.

    Raises:
        RecordError: the file is damaged.
    """
    path = Path(results, choice_file(name))
    if not path.exists():
        return None
    try:
        return json_text.read(path)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: damaged ({error!r}); delete it, it is made again") from error


def write_choice(results: str | Path, name: str, chosen: Any) -> None:
    """Write down what was chosen, whole or not at all."""
    path = Path(results, choice_file(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")
