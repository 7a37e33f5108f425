"""An explanation for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasktransfer.tables.numbers import DASH, counted, delta, interval, number, p_equals, score
from tasktransfer.tables.text import text_table

Facts = Mapping[str, Any]

WIDTH = 100
_INDENT = "      "


def as_text(facts: Facts) -> str:
    """What ``explain`` gathered, in sections: number, seeds, trainings, what to run, notes."""
    lines = [_title(facts), "", *_section("Number", _number(facts))]
    lines += _section("Seeds", _seeds(facts))
    trainings = _distinct(facts)
    common = _common(trainings)
    lines += _section("All of its trainings", _pairs(common.items()))
    for heading, part in _by_run(facts):
        lines += _section(heading, _trainings(part, common))
    lines += _section("Run again", _commands(trainings))
    lines += _section("Notes", [line for note in facts["notes"] for line in _wrapped(note, "- ")])
    return "\n".join(lines).rstrip() + "\n"


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return [heading, *(f"  {line}" for line in lines), ""] if lines else []


def _title(facts: Facts) -> str:
    origin = f"{' + '.join(facts['sources'])} -> " if facts["sources"] else ""
    return (
        f"{facts['dataset']}, {facts['model']}, {facts['algorithm']}: {origin}{facts['target']}\n"
        f"config {facts['config']}, results in {facts['results']}"
    )


def _wrapped(text: str, mark: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:<14}{value}" for name, value in items]


# --- the number -----------------------------------------------------------------------------------


def _number(facts: Facts) -> list[str]:
    number = facts["number"]
    seeds = number["seeds"]
    of = f"mean of {len(seeds)} of {number['of_seeds']} seeds"
    if not facts["sources"]:
        return _pairs([("score", f"{score(number['score'])} ({of})")])
    if number["delta"] is None:
        return [f"none: no seed has both the run and its baseline (of {number['of_seeds']})"]
    improvement = number["improvement"]
    rows = [
        ("score", f"{score(number['score'])} ({of})"),
        ("baseline", score(number["baseline_score"])),
        ("delta", f"{delta(number['delta'])} points"),
        (
            "improvement",
            "none: the baseline is 0" if improvement is None else _percent(improvement),
        ),
    ]
    return _pairs([*rows, *_certainty(facts["statistics"])])


def _certainty(statistics: Facts | None) -> list[tuple[str, str]]:
    if statistics is None:
        return [("interval", "not computed"), ("test", "not computed")]
    old = "" if statistics["up_to_date"] else "  (outdated, see notes)"
    instances = statistics["instances"]
    seeds = len(statistics["seeds"])
    over = counted(seeds, "seed") + (
        f" and {instances} test instances" if instances else " alone: no predictions"
    )
    over += ": nothing is known of other seeds" if seeds == 1 else ""
    low, high = statistics["low"], statistics["high"]
    ends = "cannot be told" if low is None else interval(low, high, "+.2f")
    return [("interval", f"{ends} (95 %, over {over}){old}"), ("test", _test(statistics) + old)]


def _test(statistics: Facts) -> str:
    family = statistics["family"]
    if statistics["p"] is None:
        return "none"
    level = f"q <= {statistics['level']}"
    if len(statistics["seeds"]) == 1:
        # What the heatmap's dotted frame says: no claim about the cell.
        verdict = f"one training only ({'' if statistics['significant'] else 'not '}{level} by its "
        verdict += "test instances, other seeds unknown)"
    else:
        verdict = f"{'' if statistics['significant'] else 'not '}significant at {level}"
    return (
        f"{p_equals('p', statistics['p'])}, {p_equals('q', statistics['q'])}: {verdict}\n"
        f"{'':16}(Benjamini-Hochberg over {family['tests']} {family['what']}; "
        f"{level} in {family['significant']})"
    )


def _seeds(facts: Facts) -> list[str]:
    rows = []
    for seed in facts["seeds"]:
        row = {"seed": str(seed["seed"]), "score": score(seed["score"])}
        state = _state(seed, "")
        if facts["sources"]:
            row |= {
                "baseline": score(seed["baseline_score"]),
                "delta": delta(seed["delta"]),
                "improvement": _percent(seed["improvement"]),
            }
            state += _state(seed, "baseline_")
        rows.append(row | {"": state})
    return text_table(rows, left=("seed", ""))


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{number(value, '+.1f')} %"


def _state(seed: Facts, which: str) -> str:
    """Nothing to say of what is done."""
    if seed[f"{which}state"] == "done":
        return ""
    return f"{which.replace('_', ': ') or 'run: '}{seed[f'{which}reason']}  "


# --- the trainings --------------------------------------------------------------------------------


def _by_run(facts: Facts) -> list[tuple[str, list[Facts]]]:
    parts = []
    for seed in facts["seeds"]:
        parts.append((f"Trainings, seed {seed['seed']}", seed["trainings"]))
        if facts["sources"]:
            parts.append((f"Its baseline, seed {seed['seed']}", seed["baseline_trainings"]))
    return parts


def _distinct(facts: Facts) -> list[Facts]:
    """Every training once, in the order in which they have to be run."""
    listed = [training for _, part in _by_run(facts) for training in part]
    return list({training["folder"]: training for training in listed}.values())


def _made_with(training: Facts) -> dict[str, str]:
    """What made a finished training, by the name of the line."""
    if "commit" not in training:
        return {}
    host = training["host"]
    device = host["gpu"] or f"{host['device']} ({host['cpu']})"
    dirty = {True: ", with uncommitted changes", False: "", None: ""}[training["dirty"]]
    sample = "few-sample" if training["few_sample"] else "all samples"
    return {
        "commit": (training["commit"] or "unknown") + dirty,
        "versions": f"tasktransfer {training['tasktransfer']}, "
        + ", ".join(f"{name} {version}" for name, version in training["versions"].items()),
        "recipe": str(training["recipe"]),
        "data": f"{training['data_revision']} ({sample})",
        "weights": (training["model"] or {}).get("weights", "unknown"),
        "trained with": ", ".join(
            f"{name} {value}" for name, value in (training["hyperparameters"] or {}).items()
        ),
        "config digest": f"{training['config_digest']} (study {training['study']})",
        "hardware": f"{device}, {host['precision']}, {host['threads']} threads, {host['platform']}",
    }


def _common(trainings: Sequence[Facts]) -> dict[str, str]:
    """The lines that say the same of every finished training; they are printed once."""
    made = [lines for training in trainings if (lines := _made_with(training))]
    if len(made) < 2:
        return {}
    return {
        name: value
        for name, value in made[0].items()
        if all(other[name] == value for other in made)
    }


def _trainings(part: Sequence[Facts], common: Mapping[str, str]) -> list[str]:
    lines = []
    for place, training in enumerate(part, 1):
        lines.append(f"{place}. {_name(training)}: {training['state']}")
        own = {k: v for k, v in _made_with(training).items() if k not in common}
        for name, value in (*_about(training), *own.items()):
            lines.append(f"   {name:<14}{value}")
    return lines


def _name(training: Facts) -> str:
    return f"{training.get('kind', 'training')} {training.get('label', '')}".rstrip()


def _about(training: Facts) -> list[tuple[str, str]]:
    parent = training.get("parent")
    rows = [
        ("digest", training.get("digest", "unknown")),
        ("starts from", parent or "the base model"),
        ("record", training["record"]),
        ("log", training["log"] or "none"),
    ]
    if training["error"]:
        rows.append(("error", training["error"]))
    if "commit" in training:
        rows += _result(training)
    if not training["in_plan"]:
        rows.append(("plan", "this study's plan does not have it"))
    return rows


def _result(training: Facts) -> list[tuple[str, str]]:
    scores = training["scores"]
    named = {task: "" if len(scores) == 1 else f" {task}" for task in scores}
    scored = "".join(f", test{named[task]} {score(value)}" for task, value in scores.items())
    rows = [
        (
            "result",
            f"dev {training['dev_score']:.2f} at epoch {training['best_epoch']} of "
            f"{training['epochs']}{scored}",
        ),
        ("trained", f"{training['started']}, {training['seconds']:.0f} s"),
    ]
    predictions = training["predictions"]
    if predictions:
        rows.append(("predictions", f"{predictions['path']} ({predictions['rows']} rows)"))
        rows.append(("", f"sha256 {predictions['sha256']}"))
    return rows + [("note", note) for note in training["notes"]]


def _commands(trainings: Sequence[Facts]) -> list[str]:
    """Per training, in order. Delete the record, ask for it."""
    lines = []
    for training in trainings:
        if training["commands"]:
            lines.append(f"# seed {training['seed']}, {_name(training)}")
            lines += training["commands"]
    return lines
