"""Text of ``tasktransfer explain``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tasktransfer.designs.explain.explanation import (
    Explanation,
    Means,
    NodeFacts,
    RowFacts,
    RunFacts,
    Value,
)
from tasktransfer.present.columns import format_table
from tasktransfer.present.numbers import format_delta, format_number, format_score
from tasktransfer.results.costs import compute_seconds
from tasktransfer.results.schema import Record
from tasktransfer.results.state import DONE

_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
Line = tuple[str, str]
"""Name and value."""


def as_text(explanation: Explanation) -> str:
    """Format an explanation in sections: rows, runs, nodes, provenance, commands and notes."""
    nodes = {node.digest: node for node in explanation.nodes}
    lines = [explanation.title, f"config {explanation.config}, results in {explanation.results}"]
    lines += [*explanation.marks, ""]
    common = _find_common_lines(explanation.nodes)
    for row in explanation.rows:
        lines += _format_row(row)
        for run in row.runs:
            lines += _format_run(run, nodes, common)
    if not explanation.rows:
        for node in explanation.nodes:
            lines += _format_node(node)
    lines += _format_section("Common to all records", _format_pairs(common.items()))
    commands = (_format_commands(node) for node in explanation.nodes if node.commands)
    lines += _format_section("Run again", [line for part in commands for line in part])
    notes = (
        textwrap.wrap(note, 100, initial_indent="- ", subsequent_indent="  ", **_WHOLE_WORDS)
        for note in explanation.notes
    )
    lines += _format_section("Notes", [line for wrapped in notes for line in wrapped])
    return "\n".join(lines).rstrip() + "\n"


def _format_section(heading: str, lines: Sequence[str]) -> list[str]:
    """Return indented lines below a heading, or an empty list if there are no lines."""
    return [heading, *(f"  {line}".rstrip() for line in lines), ""] if lines else []


def _format_pairs(lines: Iterable[Line]) -> list[str]:
    return [f"{name:<14}{value}" for name, value in lines]


# --- rows and runs --------------------------------------------------------------------------------


def _format_row(row: RowFacts) -> list[str]:
    """Format a row: its scores in the current records, its numbers and its published values."""
    lines = [] if row.means is None else [*_format_means(row.means), ""]
    if row.up_to_date is False:
        lines.append("The table's numbers are outdated, see the notes:")
    values = {**row.numbers, **row.published}
    width = max(map(len, values), default=0)
    lines += [
        f"{key:<{width}}  {_format_value(value):<12}  {row.meanings.get(key, '')}"
        for key, value in values.items()
    ]
    more = row.source_runs - len(row.runs)
    lines += _format_pairs([("runs", f"{row.source_runs}{f', {more} not listed' * bool(more)}")])
    names = ", ".join(f"{key} {value}" for key, value in row.names.items())
    return _format_section(names or "Runs", lines)


def _format_value(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _format_means(means: Means) -> list[str]:
    """Format a table of scores by seed and their means."""
    label = f"mean of {len(means.seeds)} of {len(means.by_seed)} seeds"
    if means.references > len(means.seeds):
        label += f", {means.references} {means.reference} runs"
    listed = [
        *((str(seed), scores) for seed, scores in means.by_seed.items()),
        (label, means.scores),
    ]
    rows = []
    for seed, scores in listed:
        row = {"seed": seed, "score": format_score(scores.score)}
        if means.reference:
            percent = format_number(scores.improvement, "+.1f")
            row[means.reference] = format_score(scores.reference)
            row |= {"delta": format_delta(scores.delta), "improvement (%)": percent}
        rows.append(row)
    return format_table(rows, left=("seed",))


def _format_run(run: RunFacts, nodes: dict[str, NodeFacts], common: Mapping[str, str]) -> list[str]:
    """Format a run and its nodes as lines.

    Each node is described once, and then removed from ``nodes``.
    """
    names = dict(run.names)
    heading = f"{names.pop('method')}, {names.pop('model')}, seed {names.pop('seed')}: "
    heading += ", ".join(f"{key} {value}" for key, value in names.items() if value) or "of all"
    lines = [] if run.state == DONE else [f"run: {run.reason}"]
    for number, digest in enumerate(run.nodes, 1):
        node = nodes.pop(digest, None)
        if node is None:
            lines.append(f"{number}. {digest[:12]}, described above")
            continue
        own = [line for line in _describe_provenance(node).items() if line[0] not in common]
        described = [*_format_pairs([*_describe_node(node), *own]), *_format_prompt(node)]
        lines += [f"{number}. {node.title}: {node.state}", *(f"   {line}" for line in described)]
    return _format_section(heading, lines or ["no record is known"])


# --- nodes ----------------------------------------------------------------------------------------


def _format_node(node: NodeFacts) -> list[str]:
    """Format all facts about one node as lines."""
    lines = _format_section("Node", _format_pairs(_describe_node(node)))
    lines += _format_section("Uses", [*map(_format_related_node, node.uses)])
    lines += _format_section("Used by", [*map(_format_related_node, node.users)])
    lines += _format_section("Prompt", _format_prompt(node))
    identity = json.dumps(node.node["identity"] if node.node else {}, indent=1, ensure_ascii=False)
    return lines + _format_section("Identity", identity.splitlines())


def _format_related_node(node: NodeFacts) -> str:
    return f"{node.digest[:12]}  {node.title}: {node.state}  {node.folder}"


def _format_commands(node: NodeFacts) -> list[str]:
    """Return the commands that delete a node's record and compute it again."""
    seed = f"seed {node.node['seed']}, " if node.node and node.node["kind"] == "stage" else ""
    return [f"# {seed}{node.title}", *node.commands]


def _format_prompt(node: NodeFacts) -> list[str]:
    """Return the lines of a prompted model's prompt, or an empty list for other nodes."""
    prompt = node.prompt
    if prompt is None:
        return []
    if isinstance(prompt, str):
        return [f"the prompt cannot be shown: {prompt}"]
    lines = [f"instance {prompt.instance} ({prompt.id})"]
    for text, choices in zip(prompt.prompts, prompt.choices, strict=True):
        lines += [*text.splitlines(), ""]
        lines += _format_pairs([("choices", "; ".join(choices) or "none: the answer is generated")])
    return lines + _format_pairs([("gold", ", ".join(prompt.gold))])


def _describe_node(node: NodeFacts) -> Iterator[Line]:
    """Yield a node's paths and the results in its record."""
    yield "digest", node.digest
    if node.node and node.node["kind"] == "stage":
        yield "starts from", ", ".join(node.node["parents"]) or "the base model"
    yield "record", node.record
    yield "log", node.log or "none"
    if node.error:
        yield "error", node.error
    if node.content is not None:
        yield from _describe_results(node, node.content)
    if not node.in_plan:
        yield "plan", "not in this study's plan"


def _describe_results(node: NodeFacts, record: Record) -> Iterator[Line]:
    provenance, rows = record["provenance"], record["rows"]
    for text in _list_measures(record):
        yield "result", text
    by = f" by {provenance['made_by']}" if "made_by" in provenance else ""
    yield "made", f"{provenance['started']}{by}, {compute_seconds(record):.0f} s"
    if rows:
        yield "rows", f"{node.folder}/{rows['file']} ({rows['rows']} rows)"
        yield "", f"sha256 {rows['sha256']}"
    if record["synthetic"]:
        yield "data", "SYNTHETIC: generated dialogues, not real ones"
    for key, limit in provenance.get("cuts", {}).items():
        yield "limit", f"{key} {limit}"
    for name, substitute in provenance.get("substitutes", {}).items():
        yield "substitute", f"{name}: {substitute}"
    for note in provenance["notes"]:
        yield "note", note


def _list_measures(record: Record) -> list[str]:
    """Return the results in a record, in one line for a training, and by task for other nodes."""
    results = record["results"]
    if record["node"]["kind"] == "stage":
        selections, epochs = record["training"]["selections"], len(record["training"]["rounds"])
        parts = [
            f"dev{' ' + '+'.join(each['select_on']) if len(selections) > 1 else ''} "
            f"{each['dev_score']:.2f} at epoch {each['round']} of {epochs}"
            for each in selections
        ]
        for task, result in results.items():
            name = f" {task}" if len(results) > 1 else ""
            parts.append(f"test{name} {format_score(result['score'])}")
        return [", ".join(parts)]
    reported = record.get("report", {})
    counts = {task: result["instances"] for task, result in results.items()}
    counts = counts or {task: sum(sizes.values()) for task, sizes in record["sizes"].items()}
    lines = [f"{k} {_format_measures(v)}" for k, v in reported.items() if k not in counts]
    for task, count in counts.items():
        measures = results[task]["measures"] if task in results else reported.get(task, {})
        lines.append(f"{task} {_format_measures(measures)} ({count} instances)")
    return lines


def _format_measures(measures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in measures.items())


# --- provenance -----------------------------------------------------------------------------------


def _find_common_lines(nodes: Sequence[NodeFacts]) -> dict[str, str]:
    """Return the lines of provenance that all records share, which are printed only once."""
    first, *others = [lines for node in nodes if (lines := _describe_provenance(node))] or [{}]
    return {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}


def _describe_provenance(node: NodeFacts) -> dict[str, str]:
    """Describe the provenance of a finished node, as a mapping from line name to text."""
    record = node.content
    if record is None:
        return {}
    made = record["provenance"]
    versions = (f"{name} {version}" for name, version in made["versions"].items())
    sample = "few-sample" if record["few_sample"] else "all samples"
    lines = {
        "commit": (made["commit"] or "unknown")
        + ", with uncommitted changes" * bool(made["dirty"]),
        "versions": ", ".join([f"tasktransfer {made['tasktransfer']}", *versions]),
        "config digest": f"{made['config_digest']} (study {made['study']})",
        "recipe": str(made["recipe"]),
        "revision": f"{record['data_revision']} ({sample})",
    }
    if record["node"]["kind"] == "stage":
        lines |= _describe_training(record)
    if host := made.get("host"):
        device = host["gpu"] or f"{host['device']} ({host['cpu']})"
        details = f"{host['precision']}, {host['threads']} threads, {host['platform']}"
        lines["hardware"] = f"{device}, {details}"
    return lines


def _describe_training(record: Record) -> dict[str, str]:
    """Describe a training: its weights, hyperparameters, adapter and parameters."""
    identity: dict[str, Any] = record["node"]["identity"]
    model, hyperparameters = identity.get("model") or {}, identity.get("training") or {}
    lines = {
        "weights": model.get("weights", "unknown"),
        "trained with": ", ".join(f"{key} {value}" for key, value in hyperparameters.items()),
    }
    if adapter := model.get("adapter"):
        has_parents = record["node"]["kind"] == "stage" and record["node"]["parents"]
        start = {"start": identity.get("adapter_start", "continue")} if has_parents else {}
        lines["adapter"] = ", ".join(f"{k} {v}" for k, v in {**adapter, **start}.items())
    if counts := record["provenance"].get("training", {}).get("parameters"):
        share = counts["trained"] / counts["all"]
        lines["parameters"] = (
            f"{counts['all']:,}, of which {counts['trained']:,} ({share:.1%}) are trained"
        )
    return lines
