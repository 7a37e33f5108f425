"""Text output of a cell's explanation."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tasktransfer.core.quantities import format_quantity
from tasktransfer.operate.explain_text import (
    describe_node,
    describe_provenance,
    format_pairs,
    format_section,
    name,
)
from tasktransfer.present.numbers import (
    DASH,
    format_delta,
    format_interval,
    format_named_p,
    format_number,
    format_score,
)
from tasktransfer.present.text import format_table

Facts = Mapping[str, Any]

WIDTH = 100


def as_text(facts: Facts) -> str:
    """Format what ``explain`` returned, in sections: number, seeds, trainings, commands, notes."""
    lines = [_format_title(facts), "", *format_section("Number", _format_number(facts))]
    lines += format_section("Seeds", _format_seeds(facts))
    trainings = _list_distinct_trainings(facts)
    common = _find_common_lines(trainings)
    lines += format_section("Common to all its runs", format_pairs(common.items()))
    for heading, part in _group_trainings(facts):
        lines += format_section(heading, _format_trainings(part, common))
    lines += format_section("Run again", _list_commands(trainings))
    lines += format_section(
        "Notes", [line for note in facts["notes"] for line in _wrap_text(note, "- ")]
    )
    return "\n".join(lines).rstrip() + "\n"


def _format_title(facts: Facts) -> str:
    origin = f"{' + '.join(facts['sources'])} -> " if facts["sources"] else ""
    return (
        f"{facts['dataset']}, {facts['model']}, {facts['algorithm']}: {origin}{facts['target']}\n"
        f"config {facts['config']}, results in {facts['results']}"
    )


def _wrap_text(text: str, mark: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


# --- the number -----------------------------------------------------------------------------------


def _format_number(facts: Facts) -> list[str]:
    number = facts["number"]
    seeds = number["seeds"]
    of = f"mean of {len(seeds)} of {number['of_seeds']} seeds"
    if not facts["sources"]:
        return format_pairs([("score", f"{format_score(number['score'])} ({of})")])
    if number["delta"] is None:
        return [f"none: no seed has both the run and its baseline (of {number['of_seeds']})"]
    improvement = number["improvement"]
    rows = {
        "score": f"{format_score(number['score'])} ({of})",
        "baseline": f"{format_score(number['baseline_score'])} (mean of {number['baselines']})",
        "delta": f"{format_delta(number['delta'])} points",
        "improvement": "none: the baseline is 0"
        if improvement is None
        else _format_percent(improvement),
    }
    return format_pairs([*rows.items(), *_format_certainty(facts["statistics"])])


def _format_certainty(statistics: Facts | None) -> list[tuple[str, str]]:
    if statistics is None:
        return [("interval", "not computed"), ("test", "not computed")]
    old = "" if statistics["up_to_date"] else "  (outdated, see notes)"
    seeds = len(statistics["seeds"])
    over = f"{format_quantity(seeds, 'seed')} {_describe_resampling(statistics)}"
    over += ": variation between seeds unknown" if seeds == 1 else ""
    low, high = statistics["low"], statistics["high"]
    ends = f"not available: {statistics['no_interval']}"
    if low is not None:
        ends = format_interval(low, high, "+.2f")
    return [("interval", f"{ends} (95 %, over {over}){old}"), ("test", _test(statistics) + old)]


def _describe_resampling(statistics: Facts) -> str:
    """Describe what the interval resamples in place of other test sets."""
    instances, dialogues = statistics["instances"], statistics["dialogues"]
    if not instances:
        return "alone: no predictions"
    if statistics["resampled_by"] == "dialogue":
        return f"and {format_quantity(dialogues, 'dialogue')} ({instances} test instances)"
    return f"and {instances} test instances, whose dialogues are unknown"


def _test(statistics: Facts) -> str:
    family = statistics["family"]
    if statistics["p"] is None:
        return "none"
    level = f"q <= {statistics['level']}"
    if statistics["q"] is None:
        return (
            f"{format_named_p('p', statistics['p'])}: one run only, variation between seeds unknown"
        )
    verdict = f"{'' if statistics['significant'] else 'not '}significant at {level}"
    return (
        f"{format_named_p('p', statistics['p'])}, {format_named_p('q', statistics['q'])}: "
        f"{verdict}\n{'':16}(Benjamini-Hochberg over {family['tests']} {family['what']}; "
        f"{level} in {family['significant']})"
    )


def _format_seeds(facts: Facts) -> list[str]:
    rows = []
    for seed in facts["seeds"]:
        row = {"seed": str(seed["seed"]), "score": format_score(seed["score"])}
        state = _describe_state(seed, "")
        if facts["sources"]:
            row |= {
                "baseline": format_score(seed["baseline_score"]),
                "delta": format_delta(seed["delta"]),
                "improvement": _format_percent(seed["improvement"]),
            }
            state += _describe_state(seed, "baseline_")
        rows.append(row | {"": state})
    return format_table(rows, left=("seed", ""))


def _format_percent(value: float | None) -> str:
    return DASH if value is None else f"{format_number(value, '+.1f')} %"


def _describe_state(seed: Facts, which: str) -> str:
    """Return why a run is not finished; empty if it is."""
    if seed[f"{which}state"] == "done":
        return ""
    return f"{which.replace('_', ': ') or 'run: '}{seed[f'{which}reason']}  "


# --- the trainings --------------------------------------------------------------------------------


def _group_trainings(facts: Facts) -> list[tuple[str, list[Facts]]]:
    parts = []
    for seed in facts["seeds"]:
        parts.append((f"Trainings, seed {seed['seed']}", seed["trainings"]))
        if facts["sources"]:
            parts.append((f"Its baseline, seed {seed['seed']}", seed["baseline_trainings"]))
    return parts


def _list_distinct_trainings(facts: Facts) -> list[Facts]:
    """Return every training once, in the order in which they have to run."""
    listed = [training for _, part in _group_trainings(facts) for training in part]
    return list({training["folder"]: training for training in listed}.values())


def _find_common_lines(trainings: Sequence[Facts]) -> dict[str, str]:
    """Return the lines that are equal for all finished trainings, which are printed once."""
    made = [lines for training in trainings if (lines := describe_provenance(training))]
    if len(made) < 2:
        return {}
    return {
        name: value
        for name, value in made[0].items()
        if all(other[name] == value for other in made)
    }


def _format_trainings(part: Sequence[Facts], common: Mapping[str, str]) -> list[str]:
    lines = []
    for index, training in enumerate(part, 1):
        lines.append(f"{index}. {name(training)}: {training['state']}")
        own = {k: v for k, v in describe_provenance(training).items() if k not in common}
        for line in format_pairs((*describe_node(training), *own.items())):
            lines.append(f"   {line}")
    return lines


def _list_commands(trainings: Sequence[Facts]) -> list[str]:
    """Return the commands that repeat each training, in order: delete its record, rebuild it."""
    lines = []
    for training in trainings:
        if training["commands"]:
            lines.append(f"# seed {training['seed']}, {name(training)}")
            lines += training["commands"]
    return lines
