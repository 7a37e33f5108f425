"""The study's records as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasktransfer.core.nodes import Evaluation, Fit, Stage
from tasktransfer.core.runs import Run
from tasktransfer.designs.empathetic import columns
from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.plan import stand_ins
from tasktransfer.designs.empathetic.sources.cards import ED, EMOTION_CUT, EMOTION_OF_CONTEXT
from tasktransfer.designs.empathetic.sources.dialogues import (
    find,
    read_dialogues,
    shared_situations,
    shared_utterances,
)
from tasktransfer.errors import DataError, RecordError
from tasktransfer.files import replacing
from tasktransfer.metrics import bleu
from tasktransfer.metrics.answers import coded
from tasktransfer.results.finished import is_whole
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import rows_beside
from tasktransfer.results.study import Study
from tasktransfer.tables.metadata import Metadata
from tasktransfer.tables.store import frame_of, read_frame, write_frame

Row = tuple[Any, ...]
MEASURED = {
    (EMOTION_CUT.name, "test"): "accuracy_cut",
    (EMOTION_OF_CONTEXT.name, "test"): "accuracy_contexts",
    (EMOTION_OF_CONTEXT.name, "train"): "accuracy_training_contexts",
}
"""What a classifier's accuracy on a task and split is called; on others plainly accuracy."""
SHOWN = 5


def collect(study: Study, complete: bool) -> None:
    """Write the tables of what is there; all or none if ``complete``.

    Raises:
        RecordError: nothing is there, or ``complete`` and something is missing.
    """
    assert isinstance(study.config, EmpatheticConfig)
    wanted = [(run, each) for run in study.plan.runs for each in run.evaluations]
    there = [(run, each) for run, each in wanted if is_whole(study, each)]
    missing = [each.path for _, each in wanted if not is_whole(study, each)]
    if not there or (complete and missing):
        raise RecordError(
            f"{study.config.results}: {len(missing):,} of {len(wanted):,} evaluations left no "
            f"record ({', '.join(missing[:SHOWN])}); run snakemake again, or collect without "
            "--complete"
        )
    metadata = Metadata(
        study.config.study,
        study.config.digest,
        any(study.synthetic(name) for name in study.config.dataset_names),
        len(there),
        cuts=", ".join(filter(None, (study.config.training.cuts, study.config.evaluation.cuts))),
        order={"method": list(dict.fromkeys(run.method for run in study.plan.runs))},
        facts={f"stand-in: {name}": text for name, text in stand_ins(study.config).items()},
    )
    tables: dict[str, list[Row]] = {
        "scores": [row for run, each in there for row in _scores(study, run, each)],
        "rows": [row for run, each in there for row in _rows(study, run, each)],
        "resources": list(_resources(study)),
    }
    tables |= of_dialogues(Path(study.release_of(ED)), Path(study.tables))
    folder = Path(study.tables)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        described = columns.TABLES[name]
        write_frame(folder / f"{name}.parquet", frame_of(rows, described), described, metadata)
    holes = Path(study.holes)
    holes.unlink(missing_ok=True)
    if missing:
        with replacing(holes) as part:
            part.write_text("".join(f"{path}\n" for path in missing))


def _key(run: Run) -> Row:
    return run.about["setting"], run.method, run.model, run.seed


def _pool(evaluation: Evaluation) -> str:
    return str(evaluation.settings.get("pool", ""))


def _scores(study: Study, run: Run, evaluation: Evaluation) -> Iterator[Row]:
    record = read_record(Path(study.record(evaluation)))
    task = evaluation.task
    result = record["results"][task]
    for measure, value in result["measures"].items():
        named = MEASURED.get((task, evaluation.split), measure)
        place = f"{evaluation.path}/metrics.json"
        yield *_key(run), named, _pool(evaluation), value, result["instances"], place


def _rows(study: Study, run: Run, evaluation: Evaluation) -> Iterator[Row]:
    measure = evaluation.measures[0]
    named = MEASURED.get((evaluation.task, evaluation.split), measure)
    for row in rows_beside(Path(study.record(evaluation))).to_pylist():
        said, gold = row["prediction"], row["gold"]
        if measure == "bleu":
            (tally,) = bleu.tally(coded([(said[0],)]), coded([(gold[0],)])).tolist()
        elif measure == "perplexity":
            tally = [row["predicted_value"], row["gold_value"]]
        else:
            tally = [row["score"] / 100, 1.0]
        emotion = gold[-1] if len(gold) > 1 or measure == "accuracy" else ""
        home = said[1] if measure == "bleu" and len(said) > 1 else ""
        names = row["cluster"], row["instance_id"]
        yield *_key(run), named, _pool(evaluation), *names, emotion, home, tally


def _resources(study: Study) -> Iterator[Row]:
    for run in study.plan.runs:
        stages = [stage for stage in run.stages if is_whole(study, stage)]
        if isinstance(run.outcome, Fit) or not stages or len(stages) < len(run.stages):
            continue
        last = run.scored
        record = read_record(Path(study.record(last)))
        made = record["provenance"]
        host, counts = made["host"], made["training"].get("parameters")
        size = 0
        if counts:  # the paper counts fixed positions in retrieval alone
            size = counts["all" if run.about["setting"] == "retrieval" else "learnable"]
        hardware = host["gpu"] or f"{host['threads']} thread of {host['cpu']}"
        examples = max((sizes["train"] for sizes in record["sizes"].values()), default=0)
        hours = [_hours(study, stage) for stage in stages]
        yield *_key(run), size, _hours(study, last), sum(hours), hardware, examples


def _hours(study: Study, stage: Stage) -> float:
    return float(read_record(Path(study.record(stage)))["provenance"]["seconds"]["total"]) / 3600


def of_dialogues(release: Path, tables: Path) -> dict[str, list[Row]]:
    """What is counted in the dialogues; where they are no longer there, the earlier tables.

    Raises:
        DataError: they are there and damaged.
    """
    try:
        place = Path(find(release))
    except DataError:
        kept = {}
        for name in ("labels", "shared"):
            frame, _ = read_frame(tables / f"{name}.parquet", columns.TABLES[name])
            kept[name] = list(frame.itertuples(index=False, name=None))
        return kept
    dialogues = read_dialogues(place)
    counts = Counter(dialogue.emotion for dialogue in dialogues)
    labels = [(label, n, 100 * n / len(dialogues)) for label, n in counts.most_common()]
    situations = shared_situations(dialogues)
    shared: list[Row] = [
        ("situation", text, " ".join(splits), 1, len(dialogues))
        for text, splits in sorted(situations.items())
    ]
    found, of = shared_utterances(dialogues)
    shared.append(("utterances of four words or more", "", "test train", found, of))
    return {"labels": labels, "shared": shared}
