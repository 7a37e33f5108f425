"""``tasktransfer recommend``: ranks the sources of a target, with expected gains and next steps.

Selectors are computed cheapest first, within the given hours. Expected gains are predicted from
their values with a finished matrix of the same model. The ranking uses the best selector that the
matrix's intervals distinguish from random. If there is none, the output says so and names the
cheapest probe.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.core.ancestors import add_ancestors
from tasktransfer.core.nodes import Fit, Node, Stage
from tasktransfer.core.references import LEARNED
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_manifest
from tasktransfer.datasets import as_seen_from, get_task, resolve_task
from tasktransfer.designs.transfer import outputs
from tasktransfer.designs.transfer.collect.results import read_tables
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.report.learned import describe_unlearned
from tasktransfer.errors import ConfigError, RecordError
from tasktransfer.operate.forecast.estimate import Estimates
from tasktransfer.present.text import format_table
from tasktransfer.results.finished import is_whole
from tasktransfer.results.records import read_record
from tasktransfer.results.store import read_statistic_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.choose import dev_deltas
from tasktransfer.selection.expected_gain import Expected, fit_expected_gain
from tasktransfer.selection.inputs import Asked
from tasktransfer.selection.methods import SELECTORS
from tasktransfer.selection.nodes import PROBE, is_selector
from tasktransfer.selection.regret import LEADING, LEVEL
from tasktransfer.selection.values import find_unlearned

CHEAPEST_FIRST = (
    *("source_mean", "kind", "size", "tfidf", "roe", "embedding", "gradient"),
    *("hscore", "leep", "logme", "nleep", "esm_logme", "taskemb", "warmup_drop"),
)
"""Selectors by what they need: nothing, texts, the base model, or baselines."""
WITHOUT_PROOF = ("source_mean", "logme", "hscore", "leep", "nleep", "embedding", "roe", "tfidf")
"""Selectors for ranking if none is distinguishable from random; the first with values is used."""
(REFERENCES,) = outputs.REFERENCES
SECONDS_OF_FIT = 30.0
"""Approximate time of a selector's job, without trainings."""


@dataclass(frozen=True)
class Question:
    """A target with its candidate sources, for the study's first model and seed.

    Sources from other datasets are named ``Dataset/task``.
    """

    dataset: str
    target: str
    sources: tuple[str, ...]

    def holds(self, run: Run) -> bool:
        return bool(run.about["dataset"] == self.dataset)

    @property
    def homes(self) -> dict[str, tuple[str, str]]:
        """Return, by source, its dataset and its name there."""
        return {source: resolve_task(self.dataset, source) for source in self.sources}


def parse_question(study: Study, target: str, sources: Sequence[str]) -> Question:
    """Parse the command line. ``target`` is DATASET/TASK, or a task that only one dataset has.

    Raises:
        ConfigError: the study has no such target or source.
    """
    config = transfer_config(study)
    dataset, _, task = target.rpartition("/")
    found = [
        (one.name, [s for s, t in one.pairs if t == task])
        for one in config.datasets
        if dataset in ("", one.name) and task in one.targets
    ]
    if len(found) != 1:
        targets = [f"{one.name}/{name}" for one in config.datasets for name in one.targets]
        raise ConfigError(
            f"--target: {target!r} is {'in several datasets' if found else 'not a target'}; the "
            f"study has {', '.join(targets)}"
        )
    ((name, known),) = found
    sources = [as_seen_from(name, resolve_task(name, source)) for source in sources]
    unknown = [source for source in sources if source not in known]
    if unknown:
        raise ConfigError(
            f"--sources: {unknown[0]!r} is not a source; the sources are {', '.join(known)}"
        )
    return Question(name, task, tuple(sources) or tuple(known))


def select_affordable(
    study: Study, question: Question, hours: float
) -> tuple[list[str], list[Node]]:
    """Return the selectors that fit into the hours, cheapest first, and the nodes to compute."""
    estimates, spent = Estimates(study), 0.0
    fits = {
        run.variant: run.outcome
        for run in study.plan.runs
        if is_selector(run) and isinstance(run.outcome, Fit) and question.holds(run)
        if run.model == study.config.models[0].name and run.seed == study.config.seeds[0]
    }
    names: list[str] = []
    needed: dict[str, Node] = {}
    for name in (*CHEAPEST_FIRST, *(name for name in fits if name not in CHEAPEST_FIRST)):
        if not SELECTORS[name].is_fit:
            names.append(name)
            continue
        if name not in fits:
            continue
        missing = [n for n in add_ancestors((fits[name],)) if not is_whole(study, n)]
        missing = [node for node in missing if node.digest not in needed]
        seconds = sum(
            estimates.of(node).seconds if isinstance(node, Stage) else SECONDS_OF_FIT
            for node in missing
        )
        if spent + seconds <= 3600 * hours:
            spent += seconds
            names.append(name)
            needed |= {node.digest: node for node in missing}
    return names, list(needed.values())


def collect_values(
    study: Study, question: Question, names: Sequence[str], matrix: Mapping[str, pd.DataFrame]
) -> dict[str, dict[str, float]]:
    """Return values by selector and source, for selectors that have any."""
    found: dict[str, dict[str, float]] = {}
    tasks = (*question.sources, question.target)
    kinds = {task: str(get_task(question.dataset, task).kind) for task in tasks}
    sizes, gains = _read_sizes(study, question), _transfers(question, matrix)
    runs = [run for run in study.plan.runs if is_selector(run) and question.holds(run)]
    fits = {run.variant: run.outcome for run in reversed(runs) if isinstance(run.outcome, Fit)}
    for name in names:
        selector = SELECTORS[name]
        if selector.is_fit:
            values = _read_values(study, question, fits.get(name))
        elif ("transfers" in selector.reads and not gains) or (name == "size" and not sizes):
            continue
        else:
            assert selector.values is not None
            asked = Asked(question.target, question.sources, kinds, sizes, transfers=gains)
            values = {s: v for s, v in selector.values(asked).items() if v is not None}
        if values:
            found[name] = values
    return found


def _read_values(study: Study, question: Question, fit: Fit | None) -> dict[str, float]:
    if fit is None or not is_whole(study, fit):
        return {}
    record = read_record(Path(study.record(fit)))
    values = record.get("report", {}).get(question.target, {})
    return {source: values[source] for source in question.sources if source in values}


def _read_sizes(study: Study, question: Question) -> dict[str, int]:
    counted = {}
    for home in {home for home, _ in question.homes.values()}:
        cache = Path(study.instances(home))
        if not (cache / "manifest.json").exists():
            return {}
        counted[home] = read_manifest(cache).tasks
    return {
        source: counted[home][name]["train"].samples
        for source, (home, name) in question.homes.items()
        if name in counted[home]
    }


def _transfers(
    question: Question, matrix: Mapping[str, pd.DataFrame]
) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return each source's dev gains on other targets in a finished matrix; empty without any."""
    if "dev" not in matrix:
        return {}
    rows = matrix["dev"]
    rows = rows[(rows["dataset"] != question.dataset) | (rows["target"] != question.target)]
    homes = [resolve_task(d, s) for d, s in zip(rows["dataset"], rows["source"], strict=True)]
    gains = {
        source: rows.loc[[one == home for one in homes], "delta"].dropna().to_numpy()
        for source, home in question.homes.items()
    }
    return gains if any(len(of) for of in gains.values()) else {}


def read_matrix(study: Study, folder: Path | None) -> dict[str, pd.DataFrame]:
    """Read a finished matrix: tables of the study itself, or of another with the same model.

    Transfers to targets whose baselines do not beat a simple reference are left out.

    Raises:
        RecordError: the tables are for another model.
    """
    place = folder or Path(study.tables)
    if not (place / "deltas.parquet").exists():
        if folder is not None:
            raise RecordError(f"{folder}: has no deltas.parquet: give a folder of collected tables")
        return {}
    tables, _ = read_tables(place)
    ours = study.revisions.models[study.config.models[0].name].weights
    theirs = set(tables.runs["weights"])
    if ours not in theirs and not study.unknown:
        raise RecordError(
            f"{place}: has results of other weights ({', '.join(sorted(theirs))}), not of {ours}; "
            "give a matrix of the same model"
        )
    frames = {
        name: read_statistic_frame(place / f"{name}.parquet")
        for name in ("selectors", "regret", REFERENCES)
        if (place / f"{name}.parquet").exists()
    }
    single = tables.deltas[tables.deltas["n_sources"] == 1]
    single = single[~find_unlearned(single, frames.get(REFERENCES))]
    return {"deltas": single, "dev": dev_deltas(single, tables.runs), **frames}


def estimate_gain(
    name: str, question: Question, matrix: Mapping[str, pd.DataFrame]
) -> Expected | None:
    """Fit the expected gain for a selector's value, from a finished matrix with its values.

    Results of the target itself are left out.
    """
    if "selectors" not in matrix:
        return None
    values, deltas = matrix["selectors"], matrix["deltas"]
    keys = ["dataset", "target", "source"]
    value = values[values["selector"] == name].groupby(keys)["value"].mean()
    others = (deltas["dataset"] != question.dataset) | (deltas["target"] != question.target)
    gain = deltas[others].groupby(keys)["delta"].mean()
    both = pd.concat([value.rename("value"), gain.rename("gain")], axis=1, join="inner")
    if both.empty:
        return None
    table = both.unstack("source")
    return fit_expected_gain(table["value"].to_numpy(float), table["gain"].to_numpy(float))


def list_better_than_random(matrix: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the selectors that a matrix's regret table shows better than random, best first."""
    if "regret" not in matrix:
        return []
    rows = matrix["regret"]
    rows = rows[(rows["measure"] == LEADING) & (rows["to_random_q"] <= LEVEL)]
    rows = rows[rows["to_random"] < 0]
    means = rows.groupby("selector")["value"].mean().sort_values()
    return [str(name) for name in means.index]


def recommend_sources(
    study: Study, question: Question, names: Sequence[str], matrix: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Return ranked sources with values, expected gains and next steps, as plain data."""
    found = collect_values(study, question, names, matrix)
    sure = [name for name in list_better_than_random(matrix) if name in found]
    ranked_by = next((n for n in (*sure, *WITHOUT_PROOF, *found) if n in found), None)
    sources: list[dict[str, Any]] = []
    expected = estimate_gain(ranked_by, question, matrix) if ranked_by else None
    if ranked_by is not None:
        values = np.array([found[ranked_by].get(s, math.nan) for s in question.sources])
        gains, low, high = expected.of(values) if expected else [np.full(len(values), np.nan)] * 3
        order = sorted(
            range(len(values)),
            key=lambda n: (math.isnan(values[n]), -values[n], question.sources[n]),
        )
        sources = [
            {
                "source": question.sources[n],
                "value": _convert_nan(values[n]),
                "expected_gain": _convert_nan(gains[n]),
                "low": _convert_nan(low[n]),
                "high": _convert_nan(high[n]),
                "others": {k: v.get(question.sources[n]) for k, v in found.items()},
            }
            for n in order
        ]
    return {
        "target": f"{question.dataset}/{question.target}",
        "unlearned": _describe_state(question, matrix),
        "ranked_by": ranked_by,
        "surely_better_than_random": sure,
        "learnt_from": None if expected is None else _summarise_forecast(expected),
        "sources": sources,
        "next": _recommend_next_steps(study, question, sources, sure),
    }


def _describe_state(question: Question, matrix: Mapping[str, pd.DataFrame]) -> str | None:
    """Return a sentence if the target's own baseline does not beat a simple reference."""
    if REFERENCES not in matrix:
        return None
    best = matrix[REFERENCES]
    best = best[best["is_best"] & (best["dataset"] == question.dataset)]
    best = best[(best["target"] == question.target) & (best["state"] != LEARNED)]
    return next(describe_unlearned(best), None)


def _summarise_forecast(expected: Expected) -> dict[str, Any]:
    return {
        "targets": expected.targets,
        "error": expected.error,
        "error_of_the_mean_gain": expected.constant_error,
        "covered": expected.covered,
    }


def _recommend_next_steps(
    study: Study, question: Question, sources: Sequence[Mapping[str, Any]], sure: Sequence[str]
) -> list[str]:
    first = [one["source"] for one in sources[:3]] or list(question.sources[:3])
    named = ", ".join("/".join(question.homes[one]) for one in first)
    lines = [
        f"train the first {len(first)} in full: set sources: [{named}] and targets: "
        f"[{question.dataset}/{question.target}] and run snakemake"
    ]
    if not sure:
        lines.insert(
            0,
            "no selector is significantly better than random in a finished matrix; the cheapest "
            f"probe trains one epoch of each transfer: set selectors: [{PROBE}] with targets: "
            f"[{question.dataset}/{question.target}] and run snakemake",
        )
    return lines


def as_text(told: Mapping[str, Any]) -> str:
    """Format the recommendation as text."""
    lines = [f"target {told['target']}"]
    if told["unlearned"]:
        lines.append(f"warning: {told['unlearned']}")
    if told["ranked_by"] is None:
        lines.append("no selector has a value yet: give more --hours, or collect the study")
    else:
        sure = told["ranked_by"] in told["surely_better_than_random"]
        better = "significantly better than random"
        how = better if sure else f"not {better} in any available matrix"
        lines += [f"ranked by {told['ranked_by']}, {how}", ""]
        lines += format_table([_format_row(one) for one in told["sources"]], left=("source",))
    learnt_from = told["learnt_from"]
    if learnt_from is not None:
        lines += [
            "",
            f"expected gains: learnt from {learnt_from['targets']} targets; leaving out each "
            f"target in turn, the mean prediction error is {learnt_from['error']:.2f} points "
            f"({learnt_from['error_of_the_mean_gain']:.2f} when predicting the mean gain), and "
            f"{100 * learnt_from['covered']:.0f} % of gains are inside their intervals",
        ]
    elif told["sources"]:
        lines += ["", "no expected gain: there is no finished matrix with this selector's values"]
    return "\n".join([*lines, "", *(f"next: {line}" for line in told["next"]), ""])


def _format_row(one: Mapping[str, Any]) -> dict[str, Any]:
    interval = "–" if one["low"] is None else f"{one['low']:+.1f} to {one['high']:+.1f}"
    gain = "–" if one["expected_gain"] is None else f"{one['expected_gain']:+.1f}"
    value = "–" if one["value"] is None else f"{one['value']:.4g}"
    return {
        "source": one["source"],
        "value": value,
        "expected gain": gain,
        "95 % interval": interval,
    }


def _convert_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
