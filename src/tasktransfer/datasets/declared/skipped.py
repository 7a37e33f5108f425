"""Notes on items that are skipped because they have no answer."""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.datasets.declared.answers import TaskReader
from tasktransfer.errors import format_quantity


def describe_skipped_items(reader: TaskReader) -> Iterator[str]:
    """Yield a note that counts the items without an answer that a reader has skipped, if any."""
    counts = {
        "without an answer": reader.skipped - reader.empty_lists,
        "with an empty list": reader.empty_lists,
    }
    if parts := [f"{format_quantity(n, 'item')} {what}" for what, n in counts.items() if n]:
        verb = "is" if reader.skipped == 1 else "are"
        yield f"{reader.name}: {' and '.join(parts)} {verb} skipped (missing: skip)"
