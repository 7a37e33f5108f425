"""What a study amounts to, counted: for ``tasktransfer plan``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tasktransfer.algorithms import ALGORITHMS
from tasktransfer.stage import STAGE_KINDS
from tasktransfer.study import Study


def overview(study: Study) -> dict[str, Any]:
    """Counts of runs and distinct trainings, and how many of their records are there already.

    ``done`` and ``left`` are None where inputs are absent and not remembered, since then the
    digests, and with them the places of the records, are not known.
    """
    plan = study.plan
    several = [run for run in plan.runs if len(run.sources) > 1]
    done = _records_there(study)
    return {
        "study": study.config.study,
        "config": study.config_file,
        "results": study.config.results,
        "synthetic": study.config.data.synthetic,
        "absent": list(study.absent),
        "runs": {
            "total": len(plan.runs),
            "single_source": _per_algorithm(r.algorithm for r in plan.runs if len(r.sources) < 2),
            "multi_source": _per_algorithm(run.algorithm for run in several),
            "multi_source_pending": study.selection_pending,
        },
        "trainings": {
            "total": len(plan.stages),
            "single_source": len(
                {s.digest for run in plan.runs if len(run.sources) < 2 for s in run.stages}
            ),
            "by_kind": {
                kind: count
                for kind in STAGE_KINDS
                if (count := sum(stage.kind == kind for stage in plan.stages))
            },
            "by_dataset_and_model": [
                {
                    "dataset": dataset.name,
                    "model": model.name,
                    "tasks": len(dataset.tasks),
                    "pairs": len(dataset.pairs),
                    "runs": sum(
                        (run.dataset, run.model) == (dataset.name, model.name) for run in plan.runs
                    ),
                    "trainings": sum(
                        (stage.dataset, stage.model.name) == (dataset.name, model.name)
                        for stage in plan.stages
                    ),
                }
                for dataset in study.config.datasets
                for model in study.config.models
            ],
            "done": done,
            "left": None if done is None else len(plan.stages) - done,
        },
    }


def _per_algorithm(names: Any) -> dict[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in ALGORITHMS if counts[name]}


def _records_there(study: Study) -> int | None:
    if study.unknown:
        return None
    return sum(Path(record).exists() for record in study.records())


def as_text(seen: dict[str, Any]) -> str:
    """An overview for people."""
    runs, trainings = seen["runs"], seen["trainings"]
    mark = " (synthetic data: the tiny world)" if seen["synthetic"] else ""
    lines = [f"study {seen['study']}{mark}: {seen['config']} -> {seen['results']}/", ""]
    lines += [f"runs: {runs['total']:,}"]
    lines += _counts(runs["single_source"], "")
    lines += _counts(runs["multi_source"], ", several sources")
    if runs["multi_source_pending"]:
        lines.append("  and several sources: picked when the single-source runs are done (auto)")
    total, single = trainings["total"], trainings["single_source"]
    share = f", {single:,} of them for single-source runs" if single < total else ""
    lines += ["", f"distinct trainings: {total:,}{share}"]
    lines += _counts(trainings["by_kind"], "")
    lines += ["", *_table(trainings["by_dataset_and_model"]), ""]
    lines += _progress(seen)
    return "\n".join(lines) + "\n"


def _counts(counts: dict[str, int], suffix: str) -> list[str]:
    return [f"  {count:>7,}  {name}{suffix}" for name, count in counts.items()]


def _table(rows: list[dict[str, Any]]) -> list[str]:
    cells = [
        list(rows[0]),
        *([f"{v:,}" if isinstance(v, int) else v for v in r.values()] for r in rows),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


def _progress(seen: dict[str, Any]) -> list[str]:
    absent = [f"not found: {text}" for text in seen["absent"]]
    done, left = seen["trainings"]["done"], seen["trainings"]["left"]
    if done is None:
        return [*absent, "what exists already cannot be told without it"]
    return [*absent, f"done: {done:,}, left: {left:,}"]
