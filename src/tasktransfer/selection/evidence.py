"""Evidence on sources: finished transfers to other targets, with the values of selectors.

A frame of evidence has one row per transfer from one source with one seed:

- ``dataset``, ``weights`` (of the base model), ``algorithm``, ``source``, ``target``, ``seed``;
- ``learned``: whether the target's baseline beats simple references (True without references);
- ``score`` and ``delta`` on test, ``dev_delta`` on dev;
- one column per selector with its value, NaN if missing.

Whoever recommends sources for a target removes its rows first (``leave_out_target``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.resources import files
from pathlib import Path

import pandas as pd

from tasktransfer.datasets import resolve_task
from tasktransfer.results.store import read_statistic_frame
from tasktransfer.selection.choose import select_dev_deltas
from tasktransfer.selection.judging import RANDOM, SOURCE_MEAN
from tasktransfer.selection.matrix import Matrix, build_cube, compute_regret, join_matrices
from tasktransfer.selection.regret import LEADING
from tasktransfer.selection.values import Tables, find_unlearned
from tasktransfer.stats.draws import Floats

SHIPPED = Path(str(files("tasktransfer"))) / "selection" / "minilm-matrix.parquet"
"""Evidence of the shipped matrix, all FETA tasks with MiniLM (docs/selection.md)."""
FACTS = (
    *("dataset", "weights", "algorithm", "source", "target", "seed"),
    *("learned", "score", "delta", "dev_delta"),
)
"""Columns of a frame of evidence that are not selectors."""
STEM = 3
"""Number of first letters that related labels share, such as joy and joyful."""
WITHOUT_MEANING = frozenset({"neutral", "none", "other", "unknown"})
"""Labels that tasks of any content have."""
FEWEST_SHARED, LEAST_FRACTION = 2, 1 / 3
"""Least number of shared labels of similar tasks, and least fraction of the shorter list."""


def read_shipped_evidence() -> pd.DataFrame:
    """Read the evidence (results of transfers) from the shipped study."""
    return read_statistic_frame(SHIPPED, "Install the package again")


def build_evidence(
    tables: Tables, values: pd.DataFrame, references: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Build the evidence (results of transfers) from a study's tables.

    Args:
        tables: the frames ``deltas`` and ``transfer_runs``.
        values: columns of ``columns.VALUES``; may be empty.
        references: the table ``references``; None if the study has none.
    """
    single = tables["deltas"][tables["deltas"]["n_sources"] == 1]
    weights = tables["transfer_runs"].drop_duplicates("digest").set_index("digest")["weights"]
    found = single.assign(
        weights=single["digest"].map(weights),
        learned=~find_unlearned(single, references),
        dev_delta=select_dev_deltas(single, tables["transfer_runs"])["delta"],
    )
    keys = ["dataset", "model", "source", "target", "seed"]
    computed = values[~values["selector"].isin([RANDOM, SOURCE_MEAN])]
    is_general = computed["algorithm"] == ""
    parts = ((computed[is_general], keys), (computed[~is_general], [*keys, "algorithm"]))
    for part, index in parts:
        if len(part):
            wide = part.set_index([*index, "selector"])["value"].unstack("selector")
            wide = wide[list(dict.fromkeys(part["selector"]))]
            found = found.merge(wide.reset_index(), on=index, how="left")
    names = [name for name in dict.fromkeys(computed["selector"]) if name in found]
    return found[[*FACTS, *names]].reset_index(drop=True)


def leave_out_target(evidence: pd.DataFrame, dataset: str, target: str) -> pd.DataFrame:
    """Return the evidence without transfers to one target."""
    return evidence[(evidence["dataset"] != dataset) | (evidence["target"] != target)]


def list_targets(evidence: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the targets in the evidence with their datasets."""
    rows = evidence[["dataset", "target"]].drop_duplicates()
    return list(rows.itertuples(index=False, name=None))


def select_targets(evidence: pd.DataFrame, targets: Collection[tuple[str, str]]) -> pd.DataFrame:
    """Return the evidence on given targets."""
    names = pd.MultiIndex.from_frame(evidence[["dataset", "target"]])
    return evidence[names.isin(list(targets))]


def list_selectors(evidence: pd.DataFrame) -> list[str]:
    """Return the selectors that have values in the evidence."""
    return [str(name) for name in evidence if name not in FACTS]


def collect_dev_gains(evidence: pd.DataFrame, home: str, name: str) -> Floats:
    """Return the dev gains from a source, one per target and seed."""
    homes = [
        resolve_task(dataset, source) == (home, name)
        for dataset, source in zip(evidence["dataset"], evidence["source"], strict=True)
    ]
    return evidence.loc[homes, "dev_delta"].dropna().to_numpy(float)


def add_source_mean(evidence: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``source_mean``, the source's mean dev gain on other targets."""
    groups = evidence.groupby(["dataset", "algorithm", "source", "seed"])["dev_delta"]
    own = evidence["dev_delta"]
    count = groups.transform("count") - own.notna()
    total = groups.transform("sum") - own.fillna(0.0)
    return evidence.assign(**{SOURCE_MEAN: (total / count).where(count > 0)})


def compute_selector_regret(evidence: pd.DataFrame) -> pd.DataFrame:
    """Compute each selector's regret with one algorithm, over all datasets.

    Returns:
        Columns of ``columns.REGRET`` for the measure ``regret.LEADING``, one row per selector.
    """
    matrices = [_build_matrix(rows) for _, rows in evidence.groupby("dataset", sort=False)]
    matrix = join_matrices(matrices) if len(matrices) > 1 else matrices[0]
    regret = compute_regret([matrix], (1,))
    return regret[regret["measure"] == LEADING].set_index("selector")


def pair_values_with_gains(evidence: pd.DataFrame, selector: str) -> tuple[Floats, Floats]:
    """Return a selector's values and mean test gains as matrices (targets, sources)."""
    means = evidence.groupby(["dataset", "target", "source"])[[selector, "delta"]].mean()
    wide = means.unstack("source")
    return wide[selector].to_numpy(float), wide["delta"].to_numpy(float)


def count_shared_labels(labels: Collection[str], others: Collection[str]) -> int:
    """Count the labels of a task that have a related label in another task.

    Labels are related if they begin with the same ``STEM`` letters. The result is 0 if the tasks
    share too few of them to be similar.
    """
    own, their = ({*_list_stems(some)} for some in (labels, others))
    shared = len(own & their)
    needed = max(FEWEST_SHARED, LEAST_FRACTION * min(len(own), len(their)))
    return shared if shared >= needed else 0


def _list_stems(labels: Collection[str]) -> Iterator[str]:
    for label in labels:
        words = re.findall(r"[^\W\d_]+", label.casefold())
        joined = "".join(words)
        if len(joined) >= STEM and joined not in WITHOUT_MEANING:
            yield joined[:STEM]


def _build_matrix(rows: pd.DataFrame) -> Matrix:
    """Return the gains of transfers within one dataset as a matrix."""
    targets, sources = (list(dict.fromkeys(rows[name])) for name in ("target", "source"))
    axes = (targets, sources, sorted(rows["seed"].unique().tolist()))
    key = (str(rows["dataset"].iloc[0]), "", str(rows["algorithm"].iloc[0]))
    values = {name: build_cube(rows, name, axes) for name in list_selectors(rows)}
    return Matrix(key, build_cube(rows, "score", axes), values)
