"""Text of ``tasktransfer explain`` for a node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasktransfer.present.numbers import format_score

Facts = Mapping[str, Any]


def as_text(facts: Facts) -> str:
    """Format a node's facts in sections: results, related nodes, provenance, identity, commands."""
    lines = format_section(f"{name(facts)}: {facts['state']}", format_pairs(describe_node(facts)))
    for title, key in (("Uses", "uses"), ("Used by", "users")):
        lines += format_section(title, [_format_line(node) for node in facts[key]])
    lines += format_prompt(facts)
    lines += format_section("Made with", format_pairs(describe_provenance(facts).items()))
    identity = json.dumps(facts.get("identity", {}), indent=1, ensure_ascii=False)
    lines += format_section("Identity", identity.splitlines())
    return "\n".join([*lines, *format_section("Run again", facts["commands"])]).rstrip() + "\n"


def format_prompt(facts: Facts) -> list[str]:
    """Return the lines of a prompted model's prompt; empty for other nodes."""
    question = facts.get("asked")
    if not question:
        return []
    if "lacking" in question:
        return format_section("Prompt", [f"cannot be shown: {question['lacking']}"])
    lines: list[str] = []
    for prompt, choices in zip(question["prompts"], question["choices"], strict=True):
        lines += [*prompt.splitlines(), ""]
        lines += format_pairs([("choices", "; ".join(choices) or "none: the answer is generated")])
    lines += format_pairs([("gold", ", ".join(question["right"]))])
    return format_section(f"Prompt of instance {question['instance']} ({question['id']})", lines)


def format_section(heading: str, lines: Sequence[str]) -> list[str]:
    """Return indented lines below a heading; empty if there are no lines."""
    return [heading, *(f"  {line}" for line in lines), ""] if lines else []


def format_pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return one aligned line per name and value."""
    return [f"{name:<14}{value}" for name, value in items]


def name(facts: Facts) -> str:
    """Return a node's kind and label."""
    return f"{facts.get('kind') or facts.get('node', 'training')} {facts.get('label', '')}".rstrip()


def _format_line(facts: Facts) -> str:
    return f"{facts['digest'][:12]}  {name(facts)}: {facts['state']}  {facts['folder']}"


def describe_node(facts: Facts) -> list[tuple[str, str]]:
    """Return rows about a node's paths and the content of its record."""
    rows = [("digest", facts.get("digest", "unknown"))]
    if facts.get("node", "stage") == "stage":
        rows.append(("starts from", ", ".join(facts.get("parents", ())) or "the base model"))
    rows += [("record", facts["record"]), ("log", facts["log"] or "none")]
    if facts["error"]:
        rows.append(("error", facts["error"]))
    if "commit" in facts:
        rows += _list_result_rows(facts)
    if not facts["in_plan"]:
        rows.append(("plan", "not in this study's plan"))
    return rows


def _list_result_rows(facts: Facts) -> list[tuple[str, str]]:
    rows = [("result", text) for text in _list_measures(facts)]
    by = f" by {facts['made_by']}" if facts["made_by"] else ""
    rows.append(("made", f"{facts['started']}{by}, {facts['seconds']:.0f} s"))
    beside = facts["rows"]
    if beside:
        rows.append(("rows", f"{beside['path']} ({beside['rows']} rows)"))
        rows.append(("", f"sha256 {beside['sha256']}"))
    if facts["synthetic"]:
        rows.append(("data", "SYNTHETIC: generated dialogues, not real ones"))
    rows += [("cut", f"{key} {limit}") for key, limit in facts["cuts"].items()]
    rows += [("stand-in", f"{what}: {instead}") for what, instead in facts["stand_ins"].items()]
    return rows + [("note", note) for note in facts["notes"]]


def _list_measures(facts: Facts) -> list[str]:
    if facts["node"] != "stage":
        told = {**facts["report"], **facts["measures"]}
        counts = facts["instances"] or {task: sum(n.values()) for task, n in facts["sizes"].items()}
        return [
            *(
                f"{name} {_format_measures(measures)}"
                for name, measures in told.items()
                if name not in counts
            ),
            *(
                f"{task} {_format_measures(told.get(task, {}))} ({n} instances)"
                for task, n in counts.items()
            ),
        ]
    scores = facts["scores"]
    named = {task: "" if len(scores) == 1 else f" {task}" for task in scores}
    scored = "".join(f", test{named[task]} {format_score(value)}" for task, value in scores.items())
    several = len(facts["selections"]) > 1
    rounds = [
        f"dev{' ' + '+'.join(fact['select_on']) if several else ''} {fact['dev_score']:.2f} at "
        f"epoch {fact['round']} of {facts['epochs']}"
        for fact in facts["selections"]
    ]
    return [", ".join(rounds) + scored]


def _format_measures(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in measures.items())


def describe_provenance(facts: Facts) -> dict[str, str]:
    """Return the provenance of a finished node: name of the line → text."""
    if "commit" not in facts:
        return {}
    dirty = {True: ", with uncommitted changes", False: "", None: ""}[facts["dirty"]]
    versions = (f"{name} {version}" for name, version in facts["versions"].items())
    lines = {
        "commit": (facts["commit"] or "unknown") + dirty,
        "versions": ", ".join([f"tasktransfer {facts['tasktransfer']}", *versions]),
        "config digest": f"{facts['config_digest']} (study {facts['study']})",
    }
    sample = "few-sample" if facts["few_sample"] else "all samples"
    lines |= {"recipe": str(facts["recipe"]), "data": f"{facts['data_revision']} ({sample})"}
    if facts["node"] == "stage":
        hyperparameters = (facts["hyperparameters"] or {}).items()
        lines["weights"] = (facts["model"] or {}).get("weights", "unknown")
        lines["trained with"] = ", ".join(f"{name} {value}" for name, value in hyperparameters)
        if adapter := (facts["model"] or {}).get("adapter"):
            started = {"start": facts["identity"].get("adapter_start", "continue")}
            settings = {**adapter, **(started if facts["parents"] else {})}
            lines["adapter"] = ", ".join(f"{name} {value}" for name, value in settings.items())
        if counts := facts["parameters"]:
            share = counts["trained"] / counts["all"]
            lines["parameters"] = (
                f"{counts['all']:,}, of which {counts['trained']:,} ({share:.1%}) are trained"
            )
    if host := facts["host"]:
        device = host["gpu"] or f"{host['device']} ({host['cpu']})"
        made = f"{host['precision']}, {host['threads']} threads, {host['platform']}"
        lines["hardware"] = f"{device}, {made}"
    return lines
