"""Text and failure of ``tasktransfer merge``."""

from __future__ import annotations

from tasktransfer.errors import RecordError, format_quantity
from tasktransfer.operate.merge import OUTCOMES, MergeResult


def find_error(seen: MergeResult) -> RecordError | None:
    """Return the error for conflicts or rejected records, or None."""
    conflicts, rejected = seen["counts"]["conflict"], seen["counts"]["rejected"]
    if not conflicts and not rejected:
        return None
    return RecordError(
        f"{seen['other']}: The merge has {format_quantity(conflicts, 'conflict')} with your "
        f"numbers and {format_quantity(rejected, 'rejected record')}. Your records are unchanged."
    )


def as_text(seen: MergeResult) -> str:
    """Format the result of a merge."""
    mark = " (dry run: nothing is copied)" * seen["dry_run"]
    lines = [f"{seen['other']} -> {seen['results']}{mark}"]
    counts = [(f"{name}{note}", seen["counts"][name]) for name, note in OUTCOMES.items()]
    counts += [
        ("unfinished there", seen["unfinished"]),
        ("from other studies (use --all to copy them)", seen["elsewhere"]),
        ("needed by this study but missing in both folders", seen["lacking"]),
    ]
    for name, count in counts:
        if count or name == "copied":
            lines.append(f"  {count:>7,}  {name}")
    for item in seen["stages"]:
        if item["reasons"]:
            lines.append(f"{item['outcome']}: {item['stage']}")
            lines += [f"    {reason}" for reason in item["reasons"]]
    return "\n".join(lines) + "\n"
