"""Text of ``tasktransfer plan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasktransfer.errors import format_quantity
from tasktransfer.operate.endpoints import format_endpoints
from tasktransfer.operate.facts import DiskSpace, ModelSpeed, OtherNodes, Overview, StudyEstimate
from tasktransfer.operate.forecast.disk import format_bytes
from tasktransfer.present.columns import format_table
from tasktransfer.results.records import PLURALS

SYNTHETIC = " (synthetic data: the tiny world)"

AGAIN = "again, since other trainings start from their checkpoint, which is missing"

SHOWN = 12
"""Largest number of items of one kind that are listed; ``--json`` contains all of them."""

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
    "measured with another model": "records of another model in its family",
    "timed": "a few updates on this machine",
    "calibrated": "its operations and the rate below, mostly correct within a factor of 1.5",
    "by name": "its operations and the rate below, possibly off by a factor of 2 or 3",
    "reference values": "its operations and the rate below, possibly off by a larger factor",
}


def as_text(seen: Overview) -> str:
    """Format the overview of a study as text."""
    lines = [
        f"study {seen['study']}{SYNTHETIC if seen['synthetic'] else ''}: "
        f"{seen['config']} -> {seen['results']}/",
        "",
        *_format_runs_and_trainings(seen),
        "",
        *format_indented_table(seen["trainings"]["by_dataset_and_model"], PAIRS),
        "",
        *_format_estimate(seen["estimate"]),
        *(f"  {line}" for line in format_endpoints(seen["endpoints"])),
        "",
        *format_indented_table(seen["estimate"]["by_target"], TARGETS),
        "",
        *_describe_disk_space(seen["estimate"]["disk_bytes"]),
        "",
        *_format_progress(seen),
    ]
    return "\n".join(lines) + "\n"


def _format_runs_and_trainings(seen: Overview) -> list[str]:
    runs, trainings = seen["runs"], seen["trainings"]
    lines = [f"runs: {runs['total']:,}"]
    lines += _format_counts(runs["by_method"])
    if runs["choice_pending"]:
        lines.append("  plus runs that are selected when the trainings below are done")
    total, others = trainings["total"], trainings["without_variants"]
    names = ", ".join(name.partition(", ")[2] for name in runs["by_method"] if ", " in name)
    variant = names.split(", ")[0]
    share = f", {others:,} of them without the runs of {variant}" if others < total else ""
    lines += ["", f"trainings, shared ones counted once: {total:,}{share}"]
    if spared := trainings["spared"]:
        lines.append(
            f"  {spared:,} fewer than best rounds: jointly trained tasks share one training, which"
        )
        lines.append("  keeps a best round for each task")
    return lines + _format_counts(trainings["by_kind"])


def _format_counts(counts: dict[str, int]) -> list[str]:
    return [f"  {count:>7,}  {name}" for name, count in counts.items()]


def format_indented_table(
    rows: Sequence[Mapping[str, object]], columns: Mapping[str, str]
) -> list[str]:
    """Format a table as indented lines.

    Args:
        columns: title → key of the rows.
    """
    shown = [{title: row[key] for title, key in columns.items()} for row in rows]
    return [f"  {line}" for line in format_table(shown)]


def _format_estimate(estimate: StudyEstimate) -> list[str]:
    rows = [
        {**cost, "name": name, "wall_time": format_hours(cost["wall_hours"])}
        for name, cost in (("total", estimate["total"]), ("left", estimate["left"]))
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
        *format_indented_table(rows, columns),
        f"  {estimate['devices']} in parallel: {estimate['devices_from']} "
        "(--devices N --on cpu|gpu)",
        *(
            f"  sizes from {', '.join(sizes)}; samples and tokens over all epochs"
            for sizes in filter(None, [estimate["sizes_from"]])
        ),
        *_describe_extra_hours(estimate),
        *(_describe_speed_basis(name, basis) for name, basis in estimate["speed_from"].items()),
        f"  matrix products on {estimate['rates']}",
    ]


def _describe_extra_hours(estimate: StudyEstimate) -> list[str]:
    besides = estimate["total"]["device_hours_besides"]
    lines = []
    if besides:
        lines.append(f"  including {besides:.2g} hours for evaluations, fits and derived data")
    if served := estimate["total"]["answered_by_endpoints"]:
        lines.append(
            f"  not included: {format_quantity(served, 'evaluation')} answered by endpoints, "
            "whose speed is unknown"
        )
    return lines


def _describe_speed_basis(name: str, basis: ModelSpeed) -> str:
    parameters, trained = basis["parameters"], basis["trained_parameters"]
    share = f", {trained / 1e6:,.1f}M of them trained" if trained < parameters else ""
    return (
        f"  {name}: {parameters / 1e6:,.1f}M parameters ({basis['parameters_from']}){share}, in "
        f"{basis['precision']}, speed from {BASES[basis['speed_from']]}"
    )


def format_hours(value: float) -> str:
    """Format a duration in hours, as in 40 s, 12 min, 3.5 h or 12 days."""
    if value * 3600 < 100:
        return f"{value * 3600:.0f} s"
    if value < 2:
        return f"{value * 60:.0f} min"
    return f"{value:.1f} h" if value < 72 else f"{value / 24:,.1f} days"


def _describe_disk_space(space: DiskSpace) -> list[str]:
    parts = (
        f"{format_bytes(space['there'])} existing, {format_bytes(space['kept_checkpoints'])} "
        f"further kept checkpoints, {format_bytes(space['temporary'])} temporary, "
        f"{format_bytes(space['records_and_predictions'])} further records and predictions"
    )
    free = "" if space["free"] is None else f"; {format_bytes(space['free'])} free"
    lines = [f"disk, at most: {format_bytes(space['peak'])} ({parts}){free}"]
    if space["short"]:
        lines.append(
            "  NOT ENOUGH: Free some space, or set `results` in the config to another disk."
        )
    return lines


def _format_progress(seen: Overview) -> list[str]:
    absent = [f"not found: {text}" for text in seen["absent"]]
    absent += [f"CANNOT BE RUN: {text}" for text in seen["lacking"]]
    trainings = seen["trainings"]
    done, left, again = trainings["done"], trainings["left"], trainings["again"]
    if done is None:
        return [*absent, "finished work is unknown without these inputs"]
    more = f" ({again:,} of them {AGAIN})" if again else ""
    return [
        *absent,
        f"done: {done:,}, left: {left:,}{more}",
        *format_other_nodes(seen["others"]),
        *format_damaged_records(seen["trainings"]["damaged"]),
    ]


def format_other_nodes(rows: Sequence[OtherNodes]) -> list[str]:
    """Return one line with the counts of nodes other than trainings."""
    counts = (f"{row['done']:,} of {row['total']:,} {PLURALS[row['kind']]}" for row in rows)
    return [f"other nodes done: {', '.join(counts)}"] if rows else []


def format_damaged_records(problems: Sequence[str]) -> list[str]:
    """Format lines on damaged records, with the first reasons."""
    if not problems:
        return []
    return [
        f"{format_quantity(len(problems), 'damaged record')}: snakemake sets each aside "
        "(metrics.json.damaged-1) and computes its node again",
        *format_first_items(problems),
    ]


def format_first_items(texts: Sequence[str]) -> list[str]:
    """Format the first ``SHOWN`` texts as indented lines, and count the others."""
    more = [f"and {len(texts) - SHOWN:,} more"] if len(texts) > SHOWN else []
    return [f"  {text}" for text in (*texts[:SHOWN], *more)]
