"""Tables of the study's records: one row per probe and snapshot, training round, or label set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa

from tasktransfer.config import ALL
from tasktransfer.config.places import expand_path
from tasktransfer.core.nodes import Fit, Stage
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.designs.probes.config import ProbesConfig, get_config
from tasktransfer.designs.probes.facts import BY_TASK, Probe, name_reply_task
from tasktransfer.designs.probes.plan import BEST, WORDS, get_stage
from tasktransfer.designs.probes.stand_ins import recorded_stand_ins
from tasktransfer.designs.probes.word_vectors import read_vectors, score_agreement
from tasktransfer.errors import DataError, RecordError
from tasktransfer.results.collect import Collected, gather
from tasktransfer.results.common_frames import build_metadata, read_earlier_rows, write_collected
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.probe_rows import PROJECTION
from tasktransfer.results.records import get_selected_round
from tasktransfer.results.schema import Record
from tasktransfer.results.store import Columns, build_frame, read_frame
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import SPLITS

TEXT, NUMBER, WHOLE = pa.string(), pa.float64(), pa.int64()

PROBED: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config; words for counts of words that models read"),
    ("snapshot", TEXT, "untrained, best, last, epoch n, as it is, or words"),
    ("epoch", WHOLE, "probed round; null if nothing was trained"),
    ("seed", WHOLE, "seed of the training"),
    ("probe", TEXT, "probe"),
    ("f1", NUMBER, "micro-F1 on the test split, 0-100"),
    ("prior", NUMBER, "micro-F1 of the best constant answer of the training split"),
    ("shuffled", NUMBER, "micro-F1 of the same probe on labels shuffled by type of dialogue"),
    ("selectivity", NUMBER, "f1 - shuffled, points"),
    ("minority", NUMBER, "micro-F1 without the most frequent training label"),
    ("mlp", NUMBER, "micro-F1 of an MLP; null if none was fitted"),
    ("classes", WHOLE, "number of labels in the training split"),
    ("train_rows", WHOLE, "number of turns that the probe is fitted on"),
    ("test_rows", WHOLE, "number of turns that it is scored on"),
    ("record", TEXT, "folder of the fit, relative to the results folder"),
)
ROUNDS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("seed", WHOLE, "seed of the training"),
    ("epoch", WHOLE, "epoch; 0 before training"),
    ("best", pa.bool_(), "true if the selecting measure chose this epoch"),
    ("bleu2", NUMBER, "mean sentence BLEU-2 on the dev split, 0-100"),
    ("bleu2_exchanged", NUMBER, "dev BLEU-2 with reply and reference exchanged"),
    ("rouge_l", NUMBER, "mean ROUGE-L F1 on the dev split"),
    ("meteor", NUMBER, "mean METEOR (exact matches) on the dev split"),
    ("vectors", NUMBER, "negated mean squared difference of summed word vectors on the dev split"),
    ("test_bleu2", NUMBER, "BLEU-2 on the test split; null except for the best epoch"),
)
LABELS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("probe", TEXT, "probe"),
    ("sets", pa.bool_(), "true if a turn has a set of labels"),
    ("split", TEXT, "train, dev or test"),
    ("turns", WHOLE, "number of turns to which the probe applies"),
    ("classes", WHOLE, "number of distinct labels"),
    ("most_frequent", TEXT, "most frequent label"),
    ("share", NUMBER, "percentage of turns with the most frequent label"),
    ("empty", NUMBER, "percentage of turns without any label"),
)
PROJECTIONS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("snapshot", TEXT, "first or last probed snapshot"),
    ("variance", NUMBER, "percentage of variance on both components"),
    ("first", NUMBER, "a training turn's representation on the first principal component"),
    ("second", NUMBER, "its representation on the second principal component"),
)
TABLES: dict[str, Columns] = {
    "probed": PROBED,
    "rounds": ROUNDS,
    "labels": LABELS,
    "projections": PROJECTIONS,
}

ABOUT = ("corpus", "probe")
"""Keys of ``Run.about`` that identify a run."""


def collect(study: Study, complete: bool) -> None:
    """Write the tables of all available records.

    Raises:
        RecordError: no run is available, or ``complete`` is true and a record is missing.
    """
    collected = gather(study)
    collected.require(complete=complete)
    runs = [run for run in study.plan.runs if collected.has(fit_of(run))]
    by_vectors = _compare_by_vectors(collected, runs)
    stages = [stage for stage in study.plan.stages if collected.has(stage)]
    tables = {
        "probed": list(list_probed_rows(get_config(study), runs, collected.records)),
        "rounds": [
            row
            for stage in stages
            for row in _make_round_rows(
                stage, collected.record(stage), by_vectors.get(stage.digest, {})
            )
        ],
        "labels": _make_label_rows(collected),
    }
    tables["projections"] = list(
        _make_projection_rows(study, build_frame(tables["probed"], PROBED))
    )
    write_collected(collected, tables, TABLES, _make_metadata(collected), ABOUT)


def fit_of(run: Run) -> Fit:
    """Return the outcome of a run, which is a fit of probes in this design."""
    assert isinstance(run.outcome, Fit)
    return run.outcome


def read_table(study: Study, name: str) -> tuple[pd.DataFrame, Metadata]:
    """Read a table that ``collect`` wrote."""
    remedy = f"run `tasktransfer collect {study.arguments()}` again"
    return read_frame(Path(study.tables, f"{name}.parquet"), TABLES[name], remedy)


def _make_metadata(collected: Collected) -> Metadata:
    config = get_config(collected.study)
    generated = frozenset(name for name, synthetic in collected.synthetic.items() if synthetic)
    return build_metadata(
        collected,
        order={
            "model": [model.name for model in config.models],
            "probe": [p.name for corpus in config.corpora for p in config.probes_of(corpus)],
        },
        stand_ins=recorded_stand_ins(config, [collected.stand_ins], generated),
    )


def list_probed_rows(
    config: ProbesConfig, runs: Sequence[Run], records: Mapping[str, Record]
) -> Iterator[tuple[Any, ...]]:
    """Yield one row per run; if all epochs are probed, the best one also as snapshot ``best``."""
    every = config.probes.snapshots == ALL
    for run in runs:
        record = records[fit_of(run).digest]
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
            *(result["instances"], fit_of(run).path),
        )
        yield (run.about["corpus"], run.model, run.method, epoch, *row)
        if every and epoch is not None and epoch == _get_best_epoch(stage, training):
            yield (run.about["corpus"], run.model, BEST, epoch, *row)


def _get_epoch(run: Run, record: Record | None) -> int | None:
    on = fit_of(run).on
    assert on is not None and on.stage is not None
    at = on.at
    if at != "best":
        return int(at)
    return _get_best_epoch(on.stage, record)


def _get_best_epoch(stage: Stage | None, record: Record | None) -> int | None:
    """Return the number of the selected round; None if there is no finished training."""
    return get_selected_round(record, stage.select_on).number if stage and record else None


def _compare_by_vectors(collected: Collected, runs: Sequence[Run]) -> dict[str, dict[int, float]]:
    """Return stage → round → agreement of its replies with the references by word vectors."""
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
            if collected.has(node):
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
    task = name_reply_task(stage.dataset)
    chosen = get_selected_round(record, stage.select_on).number
    for entry in record["training"]["rounds"]:
        dev, best = entry["dev"][task], entry["round"] == chosen
        yield (
            *(stage.dataset, stage.model.name, stage.seed, entry["round"], best),
            *(dev.get("bleu2"), dev.get("bleu2_exchanged"), dev.get("rouge_l"), dev.get("meteor")),
            by_vectors.get(entry["round"]),
            record["results"][task]["measures"]["bleu2"] if best else None,
        )


def _make_projection_rows(study: Study, scores: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield the points of each model's first seed, for the first and the last probed epoch."""
    encoders = scores[scores["snapshot"] != WORDS]
    first = encoders[encoders["seed"] == encoders["seed"].min()].drop_duplicates("record")
    for (corpus, model), places in first.groupby(["corpus", "model"], sort=False):
        ordered = places.sort_values("epoch", kind="stable")
        for row in ordered.iloc[sorted({0, len(ordered) - 1})].to_dict("records"):
            file = Path(study.config.results, str(row["record"]), PROJECTION)
            if not file.is_file():
                continue
            share, points = _read_projection(file)
            for point in points:
                yield (corpus, model, row["snapshot"], share, *point)


def _read_projection(file: Path) -> tuple[float, Any]:
    """Return the percentage of variance on two components, and one point per instance."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            points = kept["projection"].astype(float)
            if points.ndim != 2 or points.shape[1] != 2:
                raise ValueError(f"shape {points.shape}, expected two columns")
            return 100 * float(kept["variance"].sum()), points
    except (OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
        raise RecordError(f"{file}: cannot be read: {error}; delete it") from error


def _make_label_rows(collected: Collected) -> list[tuple[Any, ...]]:
    """Return the table ``labels``; its earlier rows if the data are no longer available."""
    study = collected.study
    there = [data for data in study.plan.derived if collected.has(data)]
    try:
        return [
            _make_label_row(BY_TASK[task], split, [instance.target for instance in instances])
            for data in there
            for task in study.tasks(data)
            for split in SPLITS
            for instances in [read_instances(study.cache(data), task, split)]
        ]
    except DataError:
        return read_earlier_rows(study, "labels", LABELS)


def _make_label_row(probe: Probe, split: str, targets: list[tuple[str, ...]]) -> tuple[Any, ...]:
    counts = Counter(label for target in targets for label in target)
    label, turns = counts.most_common(1)[0] if counts else ("", 0)
    return (
        *(probe.corpus, probe.name, probe.has_sets, split, len(targets), len(counts)),
        *(label, 100 * turns / len(targets), 100 * sum(not t for t in targets) / len(targets)),
    )
