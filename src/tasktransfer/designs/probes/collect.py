"""Frames from the study's records: probe scores, training rounds, projections, and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tasktransfer.config import ALL
from tasktransfer.config.places import expand_path
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.designs.probes.config import ProbesConfig, get_config
from tasktransfer.designs.probes.facts import BY_TASK, Probe, format_reply_task_name
from tasktransfer.designs.probes.frames import LABELS
from tasktransfer.designs.probes.plan import BEST, WORDS, get_stage
from tasktransfer.designs.probes.substitutes import list_recorded_substitutes
from tasktransfer.designs.probes.word_vectors import read_vectors, score_agreement
from tasktransfer.errors import DataError, RecordError
from tasktransfer.results.collect import Collected
from tasktransfer.results.common_frames import build_metadata
from tasktransfer.results.frame_files import read_earlier_rows
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import PROJECTION, Record
from tasktransfer.results.store import Metadata
from tasktransfer.tasks.card import SPLITS


def make_probed(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``probed``, one per probe and snapshot."""
    collected = frames.collected
    return list_probed_rows(get_config(frames.study), _list_runs(collected), collected.records)


def make_rounds(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the frame ``rounds``, one per training and epoch."""
    collected = frames.collected
    by_vectors = _compare_by_vectors(collected, _list_runs(collected))
    for stage in frames.study.plan.stages:
        if collected.has_record(stage):
            similarities = by_vectors.get(stage.digest, {})
            yield from _make_round_rows(stage, collected.record(stage), similarities)


def _list_runs(collected: Collected) -> list[Run]:
    """Return the runs whose probes are fitted."""
    return [run for run in collected.study.plan.runs if collected.has_record(get_probe_fit(run))]


def get_probe_fit(run: Run) -> Fit:
    """Return a run's outcome, which is always a fit of probes in this design."""
    assert isinstance(run.outcome, Fit)
    return run.outcome


def build_study_metadata(collected: Collected) -> Metadata:
    """Return the metadata of the study: order of names, synthetic corpora, and substitutes."""
    config = get_config(collected.study)
    generated = frozenset(name for name, synthetic in collected.synthetic.items() if synthetic)
    return build_metadata(
        collected,
        order={
            "model": [model.name for model in config.models],
            "probe": [p.name for corpus in config.corpora for p in config.select_probes(corpus)],
        },
        substitutes=list_recorded_substitutes(config, [collected.substitutes], generated),
    )


def list_probed_rows(
    config: ProbesConfig, runs: Sequence[Run], records: Mapping[str, Record]
) -> Iterator[tuple[Any, ...]]:
    """Yield one row per run whose probes are fitted.

    If all epochs are probed, the best epoch has a second row, as the snapshot ``best``.
    """
    every = config.probes.snapshots == ALL
    for run in runs:
        record = records[get_probe_fit(run).digest]
        task = f"{run.about['corpus']}_{run.about['probe']}"
        result, stage = record["results"][task], get_stage(run)
        measures = result["measures"]
        training = records.get(stage.digest) if stage else None
        epoch = _get_epoch(run, training) if stage else None
        row = (
            *(run.seed, run.about["probe"]),
            *(measures[key] for key in ("micro_f1", "prior_f1", "shuffled_f1", "selectivity")),
            *(measures["minority_f1"], measures.get("mlp_f1")),
            *(int(measures["classes"]), int(measures["train_rows"])),
            *(result["instances"], get_probe_fit(run).path),
        )
        yield (run.about["corpus"], run.model, run.method, epoch, *row)
        if every and epoch is not None and epoch == _get_best_epoch(stage, training):
            yield (run.about["corpus"], run.model, BEST, epoch, *row)


def _get_epoch(run: Run, record: Record | None) -> int | None:
    """Return the epoch that a run probes, or None if the best epoch is not known yet."""
    on = get_probe_fit(run).on
    assert on is not None and on.stage is not None
    at = on.at
    if at != "best":
        return int(at)
    return _get_best_epoch(on.stage, record)


def _get_best_epoch(stage: Stage | None, record: Record | None) -> int | None:
    """Return the selected epoch of a training, or None if no training is finished."""
    return get_selected_round(record, stage.select_on).number if stage and record else None


def _compare_by_vectors(collected: Collected, runs: Sequence[Run]) -> dict[str, dict[int, float]]:
    """Map stage and epoch to the similarity of replies and references in word vectors."""
    file = get_config(collected.study).probes.word_vectors
    if file is None:
        return {}
    vectors = read_vectors(Path(expand_path(file)))
    similarities: dict[str, dict[int, float]] = {}
    for run in runs:
        stage = get_stage(run)
        number = None if stage is None else _get_epoch(run, collected.records.get(stage.digest))
        if stage is None or number is None or number in similarities.get(stage.digest, {}):
            continue
        for node in run.evaluations:
            if collected.has_record(node):
                rows = collected.rows(node)
                pairs = zip(rows["prediction"].to_pylist(), rows["gold"].to_pylist(), strict=True)
                replies = [(reply, reference) for (reply,), (reference,) in pairs]
                similarities.setdefault(stage.digest, {})[number] = score_agreement(
                    replies, vectors
                )
    return similarities


def _make_round_rows(
    stage: Stage, record: Record, by_vectors: dict[int, float]
) -> Iterator[tuple[Any, ...]]:
    task = format_reply_task_name(stage.dataset)
    chosen = get_selected_round(record, stage.select_on).number
    for entry in record["training"]["rounds"]:
        dev, best = entry["dev"][task], entry["round"] == chosen
        yield (
            *(stage.dataset, stage.model.name, stage.seed, entry["round"], best),
            *(dev.get("bleu2"), dev.get("bleu2_exchanged"), dev.get("rouge_l"), dev.get("meteor")),
            by_vectors.get(entry["round"]),
            record["results"][task]["measures"]["bleu2"] if best else None,
        )


def make_projections(frames: Frames) -> Iterator[tuple[Any, ...]]:
    """Yield the points of each model's first seed, for the first and the last probed epoch."""
    scores = frames["probed"]
    encoders = scores[scores["snapshot"] != WORDS]
    first = encoders[encoders["seed"] == encoders["seed"].min()].drop_duplicates("record")
    for (corpus, model), places in first.groupby(["corpus", "model"], sort=False):
        ordered = places.sort_values("epoch", kind="stable")
        for row in ordered.iloc[sorted({0, len(ordered) - 1})].to_dict("records"):
            file = Path(frames.study.config.results, str(row["record"]), PROJECTION)
            if not file.is_file():
                continue
            share, points = _read_projection(file)
            for point in points:
                yield (corpus, model, row["snapshot"], share, *point)


def _read_projection(file: Path) -> tuple[float, Any]:
    """Return the percentage of variance on two components, and the coordinates of each instance."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            points = kept["projection"].astype(float)
            if points.ndim != 2 or points.shape[1] != 2:
                raise ValueError(
                    f"the projection has shape {points.shape}, but it must have two columns"
                )
            return 100 * float(kept["variance"].sum()), points
    except (OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
        raise RecordError(
            f"{file}: The projection cannot be read ({error}). Delete the file to compute it again."
        ) from error


def make_labels(frames: Frames) -> list[tuple[Any, ...]]:
    """Return the rows of the frame ``labels``, or its earlier rows if the data are missing."""
    study, collected = frames.study, frames.collected
    there = [data for data in study.plan.derived if collected.has_record(data)]
    try:
        return [
            _make_label_row(BY_TASK[task], split, [instance.target for instance in instances])
            for data in there
            for task in study.list_tasks(data)
            for split in SPLITS
            for instances in [read_instances(study.get_cache_folder(data), task, split)]
        ]
    except DataError:
        return read_earlier_rows(study, "labels", LABELS)


def _make_label_row(probe: Probe, split: str, targets: list[tuple[str, ...]]) -> tuple[Any, ...]:
    counts = Counter(label for target in targets for label in target)
    label, turns = counts.most_common(1)[0] if counts else ("", 0)
    return (
        *(probe.corpus, probe.name, probe.has_label_sets, split, len(targets), len(counts)),
        *(label, 100 * turns / len(targets), 100 * sum(not t for t in targets) / len(targets)),
    )
