"""Text of ``tasktransfer status``."""

from __future__ import annotations

from tasktransfer.errors import format_quantity
from tasktransfer.operate.facts import FailedNode, NodeName, RunningNode, StudyProgress
from tasktransfer.operate.overview_text import (
    AGAIN,
    format_damaged_records,
    format_first_items,
    format_hours,
    format_indented_table,
    format_other_nodes,
)
from tasktransfer.operate.status import STATES

WIDEST = 160


def as_text(seen: StudyProgress) -> str:
    """Format a study's progress as text."""
    lines = [
        f"study {seen['study']} ({seen['results']}/)",
        "",
        *_format_groups(seen),
        "",
        *_describe_progress(seen),
    ]
    for title, items in (
        (
            "running",
            [*_describe_inputs(seen, "running"), *map(_describe_running_node, seen["running"])],
        ),
        (
            "failed",
            [*_describe_inputs(seen, "failed"), *map(_describe_failed_node, seen["failed"])],
        ),
        (
            "interrupted (resumed at the next start)",
            [*_describe_inputs(seen, "interrupted"), *map(_format_node_name, seen["interrupted"])],
        ),
    ):
        if items:
            lines += ["", f"{title}:", *format_first_items(items)]
    return "\n".join(lines) + "\n"


def _format_groups(seen: StudyProgress) -> list[str]:
    rows = [{**row, **row["states"]} for row in seen["groups"]]
    total = {"trainings": seen["trainings"], **seen["totals"]}
    shown = [state for state in STATES if seen["totals"][state] or state == "done"]
    columns = {name: name for name in ("model", "algorithm", *shown)} | {"of": "trainings"}
    return format_indented_table([*rows, {"model": "all", "algorithm": "", **total}], columns)


def _describe_progress(seen: StudyProgress) -> list[str]:
    total, done = seen["trainings"], seen["totals"]["done"]
    if total:
        lines = [f"{done:,} of {total:,} trainings done ({100 * done / total:.1f} %)"]
    else:
        lines = ["the study trains no model"]
    if seen["finished_last_hour"]:
        lines[0] += (
            f", {seen['finished_last_hour']:,} in the last hour ({seen['per_hour']:,.0f} per hour)"
        )
    lines += format_other_nodes(seen["others"])
    if not seen["left"]:
        lines.append("nothing is left to compute")
    elif done == total and seen["running"]:
        lines.append("nothing is left to train")
    elif done == total or seen["seconds_left"] is None:
        lines.append("nothing runs; start snakemake to continue")
    else:
        lines.append(f"about {format_hours(seen['seconds_left'] / 3600)} left at this speed")
    if seen["again"]:
        lines.append(f"{format_quantity(seen['again'], 'training')} to be run {AGAIN}")
    if ahead := seen["dated_in_the_future"]:
        lines.append(
            f"{format_quantity(ahead, 'record')} dated in the future, because a clock is ahead or "
            "files were copied; the next start of snakemake sets their time to now"
        )
    lines += format_damaged_records(seen["damaged"])
    most = seen["further_trainings"]
    at_most = "" if most is None else f" (at most {most:,})"
    lines += [f"{clause}{at_most}" for clause in seen["announced"]]
    again = seen["started_again"]
    if again["trainings"]:
        killed = again["times"] - again["after_errors"]
        lines.append(
            f"{format_quantity(again['times'], 'restart')} of "
            f"{format_quantity(again['trainings'], 'training')}: {again['after_errors']:,} after "
            f"an error, {killed:,} after a kill"
        )
    return lines


def _format_node_name(item: NodeName) -> str:
    seed = "" if item["seed"] is None else f" seed {item['seed']}"
    return f"{item['dataset']} {item['model'] or item['kind']} {item['label']}{seed}"


def _describe_inputs(seen: StudyProgress, state: str) -> list[str]:
    """Describe the inputs in a given state, with error and log for failed inputs."""
    chosen = [item for item in seen["inputs"] if item["state"] == state]
    if state != "failed":
        return [item["label"] for item in chosen]
    return [
        f"{item['label']}: {_shorten_error(item['error'] or 'no error was written')}\n"
        f"    {item['log']}"
        for item in chosen
    ]


def _describe_running_node(item: RunningNode) -> str:
    if item["model"] is None:
        return f"{_format_node_name(item)} ({item['host'] or '?'})"
    device = item["device"] or "waiting for a device"
    how_far = "starting" if item["percent"] is None else f"{item['percent']} %"
    left = f", {item['left']} left" if item["left"] else ""
    return f"{_format_node_name(item)}: {how_far}{left} ({device}, {item['host'] or '?'})"


def _describe_failed_node(item: FailedNode) -> str:
    error = (item["error"] or item["cause"] or "no error was written").strip()
    return f"{_format_node_name(item)}: {_shorten_error(error)}\n    {item['log']}"


def _shorten_error(error: str) -> str:
    return error if len(error) <= WIDEST else error[: WIDEST - 3] + "..."
