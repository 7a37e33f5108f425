"""What a merge did, for people, and what makes it fail."""

from __future__ import annotations

from typing import Any

from tasktransfer.errors import RecordError
from tasktransfer.operate.merge import OUTCOMES
from tasktransfer.tables.numbers import counted


def failure(seen: dict[str, Any]) -> RecordError | None:
    """What makes the command fail: conflicts, and what had to be refused."""
    conflicts, refused = seen["counts"]["conflict"], seen["counts"]["refused"]
    refused += len(seen["rekeyed"]["refused"])
    if not conflicts and not refused:
        return None
    return RecordError(
        f"{seen['other']}: {counted(conflicts, 'record')} with other numbers than here, "
        f"{refused:,} refused; nothing here was changed by them"
    )


def as_text(seen: dict[str, Any]) -> str:
    """What a merge did, for people."""
    mark = " (dry run: nothing is copied)" * seen["dry_run"]
    lines = [f"{seen['other']} -> {seen['results']}{mark}"]
    counts = [(f"{name}{note}", seen["counts"][name]) for name, note in OUTCOMES.items()]
    counts += [
        ("not finished there", seen["unfinished"]),
        ("not of this study (--all takes them)", seen["elsewhere"]),
        ("of this study are neither here nor there", seen["lacking"]),
    ]
    for name, count in counts:
        if count or name == "taken":
            lines.append(f"  {count:>7,}  {name}")
    older = seen["rekeyed"]
    if older["records"]:
        lines.append(
            f"{counted(older['records'], 'record')} of an older release re-keyed as "
            f"{counted(older['nodes'], 'node')} of today: their numbers are the same"
        )
    lines += [f"not re-keyed: {reason}" for reason in dict.fromkeys(older["refused"].values())]
    for item in seen["stages"]:
        if item["reasons"]:
            lines.append(f"{item['outcome']}: {item['stage']}")
            lines += [f"    {reason}" for reason in item["reasons"]]
    return "\n".join(lines) + "\n"
