"""Frames of the transfer study's records: runs, deltas, sizes, missing runs and mixing weights.

Also notes on truncated inputs, which are in the token ids and not in records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasktransfer.core.nodes import Stage
from tasktransfer.core.runs import Run
from tasktransfer.datasets.declared.lengths import MAX_TRUNCATED_FRACTION
from tasktransfer.designs.transfer import columns
from tasktransfer.designs.transfer.algorithms import BANDITS
from tasktransfer.designs.transfer.config import get_transfer_config
from tasktransfer.designs.transfer.dataset_section import build_short_names as build_names
from tasktransfer.designs.transfer.runs import BASELINE, get_run_name, is_control, is_transfer
from tasktransfer.files import json_text
from tasktransfer.present.numbers import join_names
from tasktransfer.results.collect import NO_RECORD, Collected
from tasktransfer.results.common_frames import build_metadata
from tasktransfer.results.frames import Frames, list_column_names
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.state import RECORD
from tasktransfer.results.store import Metadata, build_frame
from tasktransfer.results.study import Study
from tasktransfer.results.tallies import get_recorded_scoring

Values = tuple[Any, ...]

NO_BASELINE = "its baseline is missing"
BASELINE_MISSING = "baseline missing"
"""Reason and state of a finished run without a baseline for comparison."""

SOURCES_CHOSEN_BY = "sources_chosen_by"
"""Key in the tables' facts that says how targets and sources of multi-source runs were chosen: by
the scores on ``dev`` or ``test``, by a selector (sources only), or in the ``config``. Absent
without multi-source runs."""
MORE_BASELINE_SEEDS = "more_baseline_seeds"
"""Key in the tables' facts for additional baseline seeds, beyond those of the runs."""
MOST_TRUNCATED = 8
"""Maximum number of tasks with truncated inputs that a note lists."""


def make_transfer_runs(frames: Frames) -> Iterator[Values]:
    """Yield one row per finished baseline and transfer run, in the order of the plan."""
    collected = frames.collected
    return (build_run_row(collected, run) for run in collected.runs if is_transfer(run))


def make_control_runs(frames: Frames) -> Iterator[Values]:
    """Yield one row per finished run of a control, in the order of the plan."""
    collected = frames.collected
    return (build_run_row(collected, run) for run in collected.runs if is_control(run))


def make_training_curves(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``training_curves``, one per run and round."""
    collected = frames.collected
    for run in collected.runs:
        if not is_transfer(run):
            continue
        dataset, model, algorithm, sources, target, seed = get_run_name(run)
        names = (dataset, model, algorithm, "+".join(sources), target, seed)
        stage = get_scored_stage(run)
        course = collected.record(stage)["training"]
        (scores,) = (
            selection["scores"]
            for selection in course["selections"]
            if tuple(selection["select_on"]) == tuple(stage.selection.tasks)
        )
        for entry, score in zip(course["rounds"], scores, strict=True):
            loss = entry["train_loss"].get(target, float("nan"))
            yield (*names, entry["round"], loss, score)


def make_deltas(frames: Frames) -> pd.DataFrame:
    """Return the frame ``deltas``, which joins each transfer run with its baseline."""
    return compute_deltas(frames["transfer_runs"])


def make_sizes(frames: Frames) -> pd.DataFrame:
    """Return the sizes of all tasks that are targets of runs."""
    sizes = frames["transfer_runs"][["dataset", "target", "train_size", "dev_size", "test_size"]]
    rows = sizes.drop_duplicates(["dataset", "target"], keep="last")
    return build_frame(rows.itertuples(index=False, name=None), columns.SIZES)


def make_missing_runs(frames: Frames) -> list[Values]:
    """Return the planned baselines and transfer runs without a score or without a delta."""
    algorithms = frames.metadata.order["algorithm"]
    missing = frames["missing"]
    missing = missing[missing["method"].isin(algorithms)].astype({"seed": "int64"})
    missing = missing.astype(object).where(missing.notna(), None)
    wanted = ["dataset", "model", "method", "sources", "target", "seed"]
    state = ["path", "reason", "state", "node", "error"]
    rows = [
        (*build_source_key(dataset, model, method, split_sources(sources)), *others)
        for dataset, model, method, sources, *others in missing[[*wanted, *state]].itertuples(
            index=False, name=None
        )
    ]
    return [*rows, *_list_unmatched_runs(frames["transfer_runs"], frames["deltas"], missing)]


def _list_unmatched_runs(
    runs: pd.DataFrame, deltas: pd.DataFrame, missing: pd.DataFrame
) -> list[Values]:
    """Return the rows of finished transfer runs whose baseline is missing."""
    on = ["dataset", "model", "target", "seed"]
    lost = missing[missing["method"] == BASELINE]
    baselines = dict(
        zip(
            lost[on].itertuples(index=False, name=None),
            lost[["reason", "node"]].itertuples(index=False, name=None),
            strict=True,
        )
    )
    paths = dict(zip(runs["digest"], runs["path"], strict=True))
    keys = list_column_names(columns.MISSING)[:8]
    alone = deltas[deltas["baseline_score"].isna()]
    rows: list[Values] = []
    for *key, digest in alone[[*keys, "digest"]].itertuples(index=False, name=None):
        dataset, model, *_, target, seed = key
        reason, folder = baselines.get((dataset, model, target, seed), (NO_RECORD, None))
        error = None if reason == NO_RECORD else f"the baseline: {reason}"
        rows.append((*key, paths[digest], NO_BASELINE, BASELINE_MISSING, folder, error))
    return rows


def compute_deltas(runs: pd.DataFrame) -> pd.DataFrame:
    """Join each transfer run with the baseline of its dataset, model, target and seed.

    Args:
        runs: columns of ``columns.RUNS``.

    Returns:
        Columns of ``columns.DELTAS``, in the order of ``runs``.
    """
    on = ["dataset", "model", "target", "seed"]
    baselines = runs.loc[runs["algorithm"] == BASELINE, [*on, "score", "digest"]].rename(
        columns={"score": "baseline_score", "digest": "baseline_digest"}
    )
    transfers = runs[runs["algorithm"] != BASELINE]
    deltas = transfers.merge(baselines, on=on, how="left", validate="many_to_one")
    deltas["delta"] = deltas["score"] - deltas["baseline_score"]
    above_zero = deltas["baseline_score"].where(deltas["baseline_score"] > 0, np.nan)
    deltas["improvement"] = 100 * deltas["delta"] / above_zero
    named: pd.DataFrame = deltas[list_column_names(columns.DELTAS)]
    return named


# --- metadata of every table ----------------------------------------------------------------------


def build_short_names(study: Study) -> dict[str, str]:
    """Return short names by task, for all tasks of the study's datasets."""
    return dict(build_names(get_transfer_config(study).datasets))


def build_study_metadata(collected: Collected) -> Metadata:
    """Return the study's metadata for all tables."""
    config = get_transfer_config(collected.study)
    section = config.multi_source
    facts = {
        SOURCES_CHOSEN_BY: {"off": "", "named": "config", "auto": section.choose_by}[section.mode],
        MORE_BASELINE_SEEDS: " ".join(map(str, config.more_baseline_seeds)),
    }
    return build_metadata(
        collected,
        order=_order_names(collected.planned),
        facts={key: value for key, value in facts.items() if value},
        shorts=build_short_names(collected.study),
    )


def _order_names(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Map each kind of name to its names, in order of first appearance in the plan."""
    listed = [run for run in runs if is_transfer(run) or is_control(run)]
    sources = [source for run in listed for source in run.about["sources"]]
    names = {
        "dataset": (run.about["dataset"] for run in listed),
        "model": (run.model for run in listed),
        "algorithm": (run.method for run in listed if is_transfer(run)),
        "task": [*(run.about["target"] for run in listed), *sources],
    }
    return {kind: list(dict.fromkeys(values)) for kind, values in names.items()}


def parse_more_baseline_seeds(metadata: Metadata) -> tuple[int, ...]:
    """Return the seeds that only baselines have."""
    return tuple(map(int, metadata.facts.get(MORE_BASELINE_SEEDS, "").split()))


# --- rows of runs ---


def build_source_key(dataset: str, model: str, algorithm: str, sources: Iterable[str]) -> Values:
    """Return the values of the first six columns that all tables of runs share."""
    listed = list(sources)
    return dataset, model, algorithm, listed, "+".join(listed), len(listed)


def split_sources(source: str | None) -> list[str]:
    """Split ``source`` at ``+`` into tasks, or return an empty list for a baseline."""
    return source.split("+") if source else []


def build_run_key(run: Run) -> Values:
    """Return the values that identify a run in tables: its source key, target and seed."""
    dataset, model, method, sources, target, seed = get_run_name(run)
    return *build_source_key(dataset, model, method, sources), target, seed


def get_scored_stage(run: Run) -> Stage:
    """Return the stage whose model is scored on the test set."""
    (stage,) = run.result_nodes
    assert isinstance(stage, Stage)
    return stage


def build_run_row(collected: Collected, run: Run) -> Values:
    """Return the row of a run in the frame ``runs``."""
    stage, target = get_scored_stage(run), run.about["target"]
    record = collected.record(stage)
    provenance = record["provenance"]
    cost, size = provenance["training"], record["sizes"][target]
    chosen = get_selected_round(record, stage.selection.tasks)
    return (
        *build_run_key(run),
        stage.model.family,
        record["results"][target]["score"],
        chosen.dev_score,
        chosen.number,
        len(record["training"]["rounds"]),
        size["train"],
        size["dev"],
        size["test"],
        stage.digest,
        stage.parents[0].digest if stage.parents else None,
        f"{stage.path}/{RECORD}",
        record["rows"] is not None,
        _sum_seconds(provenance["seconds"]),
        cost["tokens"],
        cost["samples_per_second"],
        cost["peak_memory_mb"],
        cost["peak_gpu_memory_mb"],
        provenance["commit"],
        provenance["recipe"],
        record["data_revision"],
        record["synthetic"],
        record["few_sample"],
        stage.model.weights,
        get_recorded_scoring(record["node"]["identity"]),
        *_summarise_predictions(stage, record),
        collected.test_sets.get(stage.digest, {}).get(target),
    )


def _summarise_predictions(stage: Stage, record: Record) -> Values:
    """Return the path, number of rows and SHA-256 of a predictions file, or three times None."""
    file = record["rows"]
    if file is None:
        return None, None, None
    return f"{stage.path}/{file['file']}", file["rows"], file["sha256"]


def _sum_seconds(seconds: dict[str, float]) -> float:
    """Return the total seconds of a training, or the sum over its phases if there is no total.

    The trainer of an older record did not measure the total.
    """
    return seconds["total"] if "total" in seconds else sum(seconds.values())


def uses_bandit(run: Run) -> bool:
    """Return whether the run mixes several sources by a bandit algorithm."""
    return run.method in BANDITS and len(run.about["sources"]) > 1


def make_mixing(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``mixing``: the sources' weights in each round of a training."""
    collected = frames.collected
    for run in collected.runs:
        if not uses_bandit(run):
            continue
        record = collected.record(run.stages[-1])
        names = (run.about["dataset"], run.model, run.method, run.about["target"], run.seed)
        for entry in record["training"]["rounds"]:
            for source, weight in entry.get("mixing", {}).items():
                yield (*names, entry["round"], source, weight)


def list_truncation_notes(study: Study) -> list[str]:
    """Return a note for each dataset and model with many truncated inputs.

    Tasks are listed if more than ``MAX_TRUNCATED_FRACTION`` of the inputs of one of their splits
    are truncated. Token ids that are not on this machine, such as those of a packed study, are not
    covered.
    """
    notes = []
    for data, model in dict.fromkeys((each.data, each.model.name) for each in study.plan.stages):
        file = Path(study.get_encoded_folder(data, model), "manifest.json")
        manifest = json_text.read_object(file)
        fractions = _find_largest_fractions(manifest)
        if fractions:
            listed = [f"{100 * share:.0f} % for {task}" for task, share in fractions.items()]
            notes.append(
                f"{data.name} with {model}: Many inputs are longer than max_length "
                f"({manifest['max_length']} tokens) and are truncated: "
                f"{join_names(listed, MOST_TRUNCATED)}. Raise models[].max_length. For a task that "
                "you declare, you can instead set `keeps` (start, end or both) to the part of a "
                "dialogue that determines the label."
            )
    return list(dict.fromkeys(notes))


def _find_largest_fractions(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Map each task with many truncated inputs to the largest fraction in one of its splits."""
    examples, found = manifest.get("examples", {}), dict[str, float]()
    for key, count in manifest.get("truncated", {}).items():
        task, share = key.rpartition("-")[0], min(1.0, count / max(1, examples.get(key, 0)))
        if share > MAX_TRUNCATED_FRACTION:
            found[task] = max(share, found.get(task, 0.0))
    return found
