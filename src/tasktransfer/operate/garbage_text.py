"""Text of ``tasktransfer gc``."""

from __future__ import annotations

from pathlib import Path

from tasktransfer.errors import format_quantity
from tasktransfer.operate.forecast.disk import format_bytes
from tasktransfer.operate.garbage import Garbage, Item


def as_text(garbage: Garbage) -> str:
    """Format the removable paths as text, with sizes by kind and in total."""
    lines = []
    kinds = sorted({item.kind for item in garbage.items})
    for kind in kinds:
        group = [item for item in garbage.items if item.kind == kind]
        size = format_bytes(sum(item.bytes for item in group))
        lines.append(f"{kind}: {len(group):,}, {size}")
        lines += [
            f"  {format_bytes(i.bytes):>9}  {path}" for i in group for path in _format_item(i)
        ]
    lines += [f"note: {text}" for text in garbage.remarks]
    if garbage.kept:
        size = format_bytes(sum(size for _, size in garbage.kept))
        lines.append(
            f"kept: {len(garbage.kept):,} records of other settings with their predictions, "
            f"{size} (--records removes them too)"
        )
        lines += [f"  {format_bytes(size):>9}  {path}" for path, size in garbage.kept]
    total = (
        f"{format_quantity(len(garbage.items), 'item')} to remove, {format_bytes(garbage.bytes)}"
    )
    lines.append(f"{garbage.results}: {total if garbage.items else 'nothing to remove'}")
    return "\n".join(lines) + "\n"


def _format_item(item: Item) -> tuple[str, ...]:
    """Format an item as lines, in which several paths of a folder share a line."""
    if len(item.paths) == 1:
        return item.paths
    names = ", ".join(Path(path).name for path in item.paths)
    return (f"{item.held_by}/ ({names})",)
