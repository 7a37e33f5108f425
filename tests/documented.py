"""Command lines of a documentation page, as a reader copies them."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OURS = ("tasktransfer", "snakemake", "make")


def commands(page: Path, programs: tuple[str, ...] = OURS) -> list[str]:
    """Return the lines of shell blocks that call one of the programs; joins continued lines."""
    found = []
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in ("", "sh", "bash", "console"):
            lines = re.sub(r"\\\n\s*", " ", block).splitlines()
            found += [line.strip().removeprefix("$ ") for line in lines]
    return [line for line in found if line.split(" ", 1)[0] in programs and " " in line]
