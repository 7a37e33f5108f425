"""Explanation of runs of any design, found by words, with their records and commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasktransfer.core.nodes import Node
from tasktransfer.core.runs import Run
from tasktransfer.errors import ConfigError
from tasktransfer.operate.explain import collect_facts
from tasktransfer.operate.explain_text import (
    describe_node,
    format_pairs,
    format_prompt,
    format_section,
)
from tasktransfer.results.study import Study

Facts = dict[str, Any]
SHOWN = 12


def words_of(run: Run) -> list[str]:
    """Return the words that name a run: its method, its model, and the values of ``about``."""
    several = (value if isinstance(value, tuple | list) else (value,) for value in _list_about(run))
    return [run.method, run.model, *(str(word) for words in several for word in words)]


def _list_about(run: Run) -> Iterator[Any]:
    yield from (value for value in run.about.values() if value not in (None, ""))


def _list_nodes(run: Run) -> list[Node]:
    """Return the evaluated nodes of a run and the nodes with its results, without duplicates."""
    return [*{node.digest: node for node in (*run.judged, *run.results_in)}.values()]


def explain_runs(study: Study, words: Sequence[str]) -> Facts:
    """Return the runs that have all words, with the facts of their nodes.

    Args:
        study: the study.
        words: names of a method or model, or values of ``Run.about``, in any order.

    Raises:
        ConfigError: no run has all words; the message lists the words of the study's runs.
    """
    runs = [run for run in study.plan.runs if {*words} <= {*words_of(run)}]
    if not runs:
        known = list(dict.fromkeys(word for run in study.plan.runs for word in words_of(run)))
        unknown = [word for word in words if word not in known] or list(words)
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        raise ConfigError(
            f"{' '.join(unknown)}: no run of {study.config_file} has this name; give names of a "
            f"method, a model, a task and so on ({', '.join(known[:SHOWN])}{more}), or a node's "
            "digest or folder"
        )
    return {
        "words": list(words),
        "runs": [facts_of_run(study, run) for run in runs],
    }


def facts_of_run(study: Study, run: Run) -> Facts:
    """Return the facts of a run and of its nodes."""
    return {
        "method": run.method,
        "model": run.model,
        "seed": run.seed,
        "about": dict(run.about),
        "nodes": [collect_facts(study, node) for node in _list_nodes(run)],
    }


def as_text(facts: Facts) -> str:
    """Format the facts as text, with one section per run."""
    lines = [f"{' '.join(facts['words'])}: {len(facts['runs'])} runs", ""]
    for run in facts["runs"]:
        lines += run_lines(run)
    return "\n".join(lines).rstrip() + "\n"


def run_lines(run: Facts) -> list[str]:
    """Format a run's section: its nodes with state, records and commands."""
    named = ", ".join(f"{key} {value}" for key, value in run["about"].items())
    heading = f"{run['method']}, {run['model']}, seed {run['seed']}: {named or 'of all'}"
    lines: list[str] = []
    for node in run["nodes"]:
        lines += [
            f"{node['label']}: {node['state']}",
            *format_pairs(describe_node(node)),
            *format_prompt(node),
        ]
        lines += format_pairs([("again", command) for command in node["commands"]])
    return format_section(heading, lines)
