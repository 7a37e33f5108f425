"""Measurements of this machine's speed, cached for a day in the user's cache folder."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasktransfer.files import json_text, replace_file

Measurement = dict[str, Any]
"""A measurement, with the time ``at`` which it was made in seconds since 1970."""
REMEMBERED_SECONDS = 24 * 3600.0
"""Lifetime of a measurement: one day, since host names may be reassigned to other machines."""


_MEASURED: dict[tuple[str, str], Measurement] = {}
"""Measurements of this process by file and key, which are used if the file cannot be written."""


def describe_machine(device: str) -> str:
    """Describe this machine and a device, as the key of a measurement."""
    return f"{platform.node()}, {platform.machine()}, {os.cpu_count()} cores, {device}"


def locate_cache_file(name: str) -> Path:
    """Return the path of a cache file. A relative ``XDG_CACHE_HOME`` is ignored, as specified."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "tasktransfer" / name


def read_measurement(name: str, key: str) -> Measurement | None:
    """Read a measurement from a cache file. Return None if it is missing, damaged or too old."""
    entry = _read_entries(name).get(key, _MEASURED.get((name, key)))
    if entry is None or not 0 <= time.time() - entry["at"] < REMEMBERED_SECONDS:
        return None
    return entry


def cache_measurement(name: str, key: str, content: Mapping[str, object]) -> None:
    """Write a measurement into a cache file. If this is impossible, only this process keeps it."""
    entry: Measurement = {"at": time.time(), **content}
    try:
        with replace_file(locate_cache_file(name)) as part:
            part.write_text(json.dumps({**_read_entries(name), key: entry}, indent=1) + "\n")
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        _MEASURED[name, key] = entry


def _read_entries(name: str) -> dict[str, Measurement]:
    """Read the entries of a cache file, or an empty mapping from a damaged file."""
    try:
        entries = json_text.loads(locate_cache_file(name).read_bytes())
        return {key: entry for key, entry in entries.items() if _is_entry(entry)}
    except (OSError, ValueError, AttributeError, RuntimeError):
        return {}


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("at"), int | float)
