"""Selection of targets and sources for multi-source runs (paper, section 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy.typing as npt
import pandas as pd

from tasktransfer.errors import RecordError
from tasktransfer.selection.selector import ChooseBy


class ChosenSources(TypedDict):
    """A target with the sources to train on together, best first, and the split that chose."""

    dataset: str
    target: str
    sources: list[str]
    chosen_by: ChooseBy


def select_targets_and_sources(
    deltas: pd.DataFrame,
    targets_per_dataset: int = 2,
    sources_per_target: int = 3,
    chosen_by: ChooseBy = "test",
    values: pd.DataFrame | None = None,
) -> list[ChosenSources]:
    """Select the targets that benefit most from transfer, and the best sources of each.

    A pair's delta is the mean over models, algorithms and seeds of its single-source runs; a
    target's benefit is the mean of that over its sources. Ties go to the task whose name comes
    first.

    Args:
        deltas: columns of ``columns.DELTAS``, with test or dev scores (``select_dev_deltas``);
            multi-source rows are ignored.
        targets_per_dataset: number of targets to pick in each dataset.
        sources_per_target: number of sources to pick for each target.
        chosen_by: the split of the deltas, or the selector, for the record of the selection.
        values: values of the selector that ranks the sources of a target (columns of
            ``selection.values.VALUES``); None if the deltas rank them. Targets are picked by the
            deltas in both cases. A source without a value is not picked.

    Returns:
        The targets by dataset (in the order of the table), best first.

    Raises:
        RecordError: a cell is missing (an incomplete table must not choose), or there are fewer
            targets or sources than requested.
    """
    single = deltas[deltas["n_sources"] == 1]
    if single.empty:
        raise RecordError(
            "There are no single-source runs from which sources can be selected. Run the "
            "single-source study first."
        )
    chosen: list[ChosenSources] = []
    for dataset, rows in single.groupby("dataset", sort=False):
        _check_completeness(str(dataset), rows)
        pairs = rows.groupby(["target", "source"])["delta"].mean()
        own = None if values is None else values[values["dataset"] == dataset]
        ranking = pairs if own is None else _rank_valued_pairs(own)
        for target in _select_best_targets(str(dataset), pairs, targets_per_dataset):
            of_target = ranking[ranking.index.get_level_values("target") == target]
            sources = pick_best_names(of_target.droplevel("target"), sources_per_target)
            if len(sources) < sources_per_target:
                raise RecordError(
                    f"{dataset}: {target} has {len(sources)} sources"
                    + (
                        ""
                        if own is None
                        else _describe_reason(own[own["target"] == target], chosen_by)
                    )
                    + f", but {sources_per_target} are requested. Reduce sources_per_target or "
                    + ("study more tasks." if own is None else "choose by dev.")
                )
            chosen.append(
                {
                    "dataset": str(dataset),
                    "target": target,
                    "sources": sources,
                    "chosen_by": chosen_by,
                }
            )
    return chosen


def select_dev_deltas(deltas: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return deltas computed from dev scores of the best round instead of test scores.

    This changes ``score``, ``baseline_score`` and ``delta``, which use the score that selects the
    round. The other columns are unchanged.
    """
    dev = runs.drop_duplicates(["digest", "target"]).set_index(["digest", "target"])["dev_score"]

    def dev_scores(digests: pd.Series[str]) -> npt.NDArray[Any]:
        keys = pd.MultiIndex.from_arrays([digests, deltas["target"]])
        return dev.reindex(keys).to_numpy()

    score, baseline = dev_scores(deltas["digest"]), dev_scores(deltas["baseline_digest"])
    return deltas.assign(score=score, baseline_score=baseline, delta=score - baseline)


def select_sources_from_tables(
    tables: Mapping[str, pd.DataFrame],
    targets_per_dataset: int = 2,
    sources_per_target: int = 3,
    choose_by: ChooseBy = "dev",
    values: pd.DataFrame | None = None,
) -> list[ChosenSources]:
    """Select targets and sources (``select_targets_and_sources``) from a study's tables.

    Args:
        tables: the frames ``deltas``, ``transfer_runs`` and ``missing_runs``.

    Raises:
        RecordError: as ``select_targets_and_sources``; also if planned single-source runs are
            missing.
    """
    missing = tables["missing_runs"]
    holes = missing[missing["n_sources"] <= 1]
    if len(holes):
        first = holes.iloc[0]
        raise RecordError(
            f"The results lack {len(holes)} single-source or baseline runs, for example "
            f"{first['dataset']}, model {first['model']}, algorithm {first['algorithm']}, "
            f"{first['source']} -> {first['target']}, seed {first['seed']} ({first['reason']}). "
            "Run the missing runs, because sources must not be selected from an incomplete table."
        )
    deltas = tables["deltas"]
    deltas = deltas if choose_by == "test" else select_dev_deltas(deltas, tables["transfer_runs"])
    return select_targets_and_sources(
        deltas, targets_per_dataset, sources_per_target, choose_by, values
    )


def compute_mean_ranks(values: pd.DataFrame) -> pd.Series[float]:
    """Return mean ranks over models and seeds by (target, source), where the worst source has 1.

    Ranks are used because the values of two models have no common unit. Sources without a value
    come last.
    """
    of_one = values.groupby(["model", "algorithm", "seed", "target"], sort=False)["value"]
    ranks = of_one.rank(na_option="top")
    return ranks.groupby([values["target"], values["source"]]).mean()


def _rank_valued_pairs(values: pd.DataFrame) -> pd.Series[float]:
    """Return the mean ranks of pairs that have a value with any model and seed."""
    counts = values.groupby(["target", "source"])["value"].count()
    ranking = compute_mean_ranks(values)
    return ranking[counts.reindex(ranking.index) > 0]


def _describe_reason(values: pd.DataFrame, selector: str) -> str:
    """Describe which values sources lack and why, as part of a message."""
    reasons = values["reason"].dropna().unique()
    return f" with a value of {selector}" + "".join(f" ({reason})" for reason in reasons[:1])


def _select_best_targets(dataset: str, pairs: pd.Series[float], count: int) -> list[str]:
    benefit = pairs.groupby("target").mean()
    if len(benefit) < count:
        raise RecordError(
            f"{dataset}: The dataset has {len(benefit)} targets, but {count} are requested. Reduce "
            "targets_per_dataset, or study more tasks."
        )
    return pick_best_names(benefit, count)


def pick_best_names(values: pd.Series[float], count: int) -> list[str]:
    """Return the names of the largest values. Ties are in order of names.

    Values are rounded, so that floating-point noise in a mean does not decide ties.
    """
    ranked = sorted(values.items(), key=lambda item: (-round(item[1], 9), str(item[0])))
    return [str(name) for name, _ in ranked[:count]]


def _check_completeness(dataset: str, rows: pd.DataFrame) -> None:
    """Raise RecordError if any pair lacks a delta for a model, algorithm or seed."""
    axes = ["source", "target", "model", "algorithm", "seed"]
    complete = rows[rows["delta"].notna()]
    present = set(complete[axes].itertuples(index=False, name=None))
    grid = pd.MultiIndex.from_product([rows[axis].unique() for axis in axes], names=axes)
    holes = [cell for cell in grid if cell[0] != cell[1] and cell not in present]
    if holes:
        source, target, model, algorithm, seed = holes[0]
        raise RecordError(
            f"{dataset}: The results lack the deltas of {len(holes)} cells, for example model "
            f"{model}, algorithm {algorithm}, {source} -> {target}, seed {seed}. Run "
            "the missing runs, because sources must not be selected from an incomplete table."
        )
