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
    thing = "turn" if reader.section.kind == "utterance_classification" else "item"
    if parts := [f"{format_quantity(n, thing)} {what}" for what, n in counts.items() if n]:
        text = f"{' and '.join(parts)} {'is' if reader.skipped == 1 else 'are'} skipped"
        if reader.section.missing is None:
            rule = "by default. Set missing: refuse to report missing answers as errors."
        else:
            rule = "(missing: skip)"
        yield f"{reader.name}: {text} {rule}"
