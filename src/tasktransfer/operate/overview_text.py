"""An overview of a study for people: the text of ``tasktransfer plan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tasktransfer.operate.endpoints import format_endpoints
from tasktransfer.operate.forecast.disk import in_words
from tasktransfer.results.records import PLURALS
from tasktransfer.tables.numbers import counted
from tasktransfer.tables.text import text_table

SYNTHETIC = " (synthetic data: the tiny world)"

AGAIN = "once more, since others start from their checkpoint, which is gone"

SHOWN = 12
"""Things of one kind that are listed; the others are counted. ``--json`` has them all."""

PAIRS = {name: name for name in ("dataset", "model", "tasks", "trainings")}
TARGETS = {
    "dataset": "dataset",
    "target": "short",
    "trainings": "trainings",
    "done": "done",
    "left": "left",
    "hours": "device_hours",
    "hours left": "device_hours_left",
}
"""Title of a column → key of its value."""

BASES = {
    "measured": "the study's own records",
    "measured with another model": "records of another model of its family",
    "calibrated": "the operations it needs and the rate below: mostly right within a factor of 1.5",
    "by name": "the operations it needs and the rate below: may be off two or three times",
    "reference values": "the operations it needs and the rate below: may be off several times",
}


def as_text(seen: dict[str, Any]) -> str:
    """An overview for people."""
    lines = [
        f"study {seen['study']}{SYNTHETIC if seen['synthetic'] else ''}: "
        f"{seen['config']} -> {seen['results']}/",
        "",
        *_counted(seen),
        "",
        *table(seen["trainings"]["by_dataset_and_model"], PAIRS),
        "",
        *_estimated(seen["estimate"]),
        *(f"  {line}" for line in format_endpoints(seen["endpoints"])),
        "",
        *table(seen["estimate"]["by_target"], TARGETS),
        "",
        *_disk(seen["estimate"]["disk_bytes"]),
        "",
        *_progress(seen),
    ]
    return "\n".join(lines) + "\n"


def _counted(seen: dict[str, Any]) -> list[str]:
    runs, trainings = seen["runs"], seen["trainings"]
    lines = [f"runs: {runs['total']:,}"]
    lines += _counts(runs["by_method"])
    if runs["choice_pending"]:
        lines.append("  and those that are chosen when the trainings below are done")
    total, others = trainings["total"], trainings["without_variants"]
    names = ", ".join(name.partition(", ")[2] for name in runs["by_method"] if ", " in name)
    variant = names.split(", ")[0]
    share = f", {others:,} of them without the runs of {variant}" if others < total else ""
    lines += ["", f"distinct trainings: {total:,}{share}"]
    if spared := trainings["spared"]:
        lines.append(
            f"  {spared:,} fewer than there are best rounds: tasks that are trained together and "
            "selected on each"
        )
        lines.append("  of them in turn are one training, which leaves a best round for each")
    return lines + _counts(trainings["by_kind"])


def _counts(counts: dict[str, int]) -> list[str]:
    return [f"  {count:>7,}  {name}" for name, count in counts.items()]


def table(rows: Sequence[dict[str, Any]], columns: Mapping[str, str]) -> list[str]:
    """``text_table``, indented. ``columns``: title → key of the rows."""
    shown = [{title: row[key] for title, key in columns.items()} for row in rows]
    return [f"  {line}" for line in text_table(shown)]


def _estimated(estimate: dict[str, Any]) -> list[str]:
    rows = [
        {**estimate[key], "name": name, "wall_time": hours(estimate[key]["wall_hours"])}
        for name, key in (("in all", "total"), ("left", "left"))
    ]
    columns = {
        "estimate": "name",
        "trainings": "trainings",
        "samples": "samples",
        "tokens": "tokens",
        "predicted": "evaluated_samples",
        "GPU-hours" if estimate["device"] == "cuda" else "core-hours": "device_hours",
        f"wall time on {estimate['devices']}": "wall_time",
    }
    return [
        *table(rows, columns),
        f"  {estimate['devices']} side by side: {estimate['devices_from']} "
        "(--devices N --on cpu|gpu)",
        f"  sizes from {', '.join(estimate['sizes_from'])}; samples and tokens over all epochs",
        *_besides(estimate),
        *(_basis(name, basis) for name, basis in estimate["speed_from"].items()),
        f"  matrix products on {estimate['rates']}",
    ]


def _besides(estimate: dict[str, Any]) -> list[str]:
    besides = estimate["total"]["device_hours_besides"]
    lines = []
    if besides:
        lines.append(f"  in it for evaluations, fits and derived data: {besides:.2g} hours")
    if served := estimate["total"]["answered_by_endpoints"]:
        lines.append(
            f"  not in it: {counted(served, 'evaluation')} answered by endpoints, "
            "whose speed nothing here tells"
        )
    return lines


def _basis(name: str, basis: dict[str, Any]) -> str:
    parameters, trained = basis["parameters"], basis["trained_parameters"]
    share = f", {trained / 1e6:,.1f}M of them trained" if trained < parameters else ""
    return (
        f"  {name}: {parameters / 1e6:,.1f}M parameters ({basis['parameters_from']}){share}, in "
        f"{basis['precision']}, speed from {BASES[basis['speed_from']]}"
    )


def hours(value: float) -> str:
    """A time for people: 40 s, 12 min, 3.5 h, 12 days."""
    if value * 3600 < 100:
        return f"{value * 3600:.0f} s"
    if value < 2:
        return f"{value * 60:.0f} min"
    return f"{value:.1f} h" if value < 72 else f"{value / 24:,.1f} days"


def _disk(space: dict[str, Any]) -> list[str]:
    parts = (
        f"{in_words(space['there'])} there, {in_words(space['kept_checkpoints'])} kept checkpoints "
        f"to come, {in_words(space['temporary'])} temporary, "
        f"{in_words(space['records_and_predictions'])} records and predictions to come"
    )
    free = "" if space["free"] is None else f"; {in_words(space['free'])} free"
    lines = [f"disk, at most: {in_words(space['peak'])} ({parts}){free}"]
    if space["short"]:
        lines.append("  NOT ENOUGH: free some, or put `results` of the config elsewhere")
    return lines


def _progress(seen: dict[str, Any]) -> list[str]:
    absent = [f"not found: {text}" for text in seen["absent"]]
    absent += [f"CANNOT BE RUN: {text}" for text in seen["lacking"]]
    done, left, again = (seen["trainings"][key] for key in ("done", "left", "again"))
    if done is None:
        return [*absent, "what exists already cannot be told without it"]
    more = f" ({again:,} of them {AGAIN})" if again else ""
    return [
        *absent,
        f"done: {done:,}, left: {left:,}{more}",
        *others(seen["others"]),
        *damaged(seen["trainings"]["damaged"]),
    ]


def others(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What is no training, on a line."""
    counts = (f"{row['done']:,} of {row['total']:,} {PLURALS[row['kind']]}" for row in rows)
    return [f"made besides: {', '.join(counts)}"] if rows else []


def damaged(problems: Sequence[str]) -> list[str]:
    """Records that count as left, and why; the first few."""
    if not problems:
        return []
    return [
        f"{counted(len(problems), 'damaged record')}: snakemake sets each aside "
        "(metrics.json.damaged-1) and makes its node once more",
        *first_of(problems),
    ]


def first_of(texts: Sequence[str]) -> list[str]:
    """The first ``SHOWN`` of some texts, indented, and how many more there are."""
    more = [f"and {len(texts) - SHOWN:,} more"] if len(texts) > SHOWN else []
    return [f"  {text}" for text in (*texts[:SHOWN], *more)]
