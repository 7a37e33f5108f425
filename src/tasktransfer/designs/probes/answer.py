"""The study's answer in sentences: what training changed, and whether BLEU tells."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.plan import BEST, UNTRAINED
from tasktransfer.present.sentences import (
    above,
    below,
    counted_of,
    excludes_zero,
    with_interval,
)
from tasktransfer.present.view import View
from tasktransfer.results.probe_rows import PRIOR
from tasktransfer.tables.numbers import absent

Cell = tuple[str, str, str, str]
"""Corpus, model, probe and snapshot."""


def answer(view: View) -> list[str]:
    """Sentences made of ``intervals`` and ``claims``; the control probe is left out."""
    intervals = view["intervals"]
    intervals = intervals[intervals["probe"] != CONTROL]
    trained = _trained(intervals)
    own = intervals[intervals["constant"] > 0]
    constant = frozenset(
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in own.itertuples()
    )
    by_training = _by_training(trained, constant)
    return [*by_training, *_above_prior(trained), *_by_bleu(view["claims"])]


def _trained(intervals: pd.DataFrame) -> pd.DataFrame:
    """Cells of one trained snapshot: the best epoch's where it was probed, else the last's."""
    for snapshot in (BEST, "last"):
        rows = intervals[intervals["snapshot"] == snapshot]
        if len(rows):
            return rows
    return intervals.iloc[:0]


def _by_training(trained: pd.DataFrame, constant: frozenset[Cell]) -> Iterator[str]:
    every = trained[(trained["compared_with"] == UNTRAINED) & trained["p"].notna()]
    rows = every[every["q"].notna()]
    if rows.empty and len(every):
        higher = counted_of(int((every["value"] > 0).sum()), len(every), "pairs of model and probe")
        yield (
            f"By one run of each encoder, the trained one has more probe F1 than the untrained one "
            f"in {higher}{_resting(every, constant)}. One run says nothing of other trainings, so "
            "none is tested: train two seeds or more (seeds: 3)."
        )
        return
    if rows.empty:
        yield "Whether training teaches an encoder what probes ask cannot be told."
        return
    more, less = int(above(rows).sum()), int(below(rows).sum())
    what = "pairs of model and probe"
    found = rows[above(rows) | below(rows)]
    if not more and not less:
        yield (
            f"In none of {len(rows)} {what} is the trained encoder told apart from the untrained "
            "one (q ≤ 0.05)."
        )
        return
    yield (
        f"Training significantly raised probe F1 in {counted_of(more, len(rows), what)} and "
        f"lowered it in {less or 'none'} (q ≤ 0.05); the others are not told from the untrained "
        f"encoder{_resting(found, constant)}."
    )


def _resting(rows: pd.DataFrame, constant: frozenset[Cell]) -> str:
    """Return in how many pairs the probe of either encoder gives one answer only."""
    pairs = [
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in rows.itertuples()
    ]
    count = sum(bool({(*p[:3], p[3]), (*p[:3], UNTRAINED)} & constant) for p in pairs)
    return f"; in {count} of these {len(rows)} a probe gives one answer only" if count else ""


def _above_prior(trained: pd.DataFrame) -> Iterator[str]:
    rows = trained[(trained["compared_with"] == PRIOR) & trained["q"].notna()]
    if len(rows):
        sure = counted_of(int(above(rows).sum()), len(rows), "pairs")
        yield f"A trained encoder significantly beats the best constant answer in {sure}."


def _by_bleu(claims: pd.DataFrame) -> Iterator[str]:
    rows = claims[(claims["probe"] == "all") & (claims["over"] == "trained")]
    # One interval a corpus, each over models: no family to correct for.
    for row in rows.to_dict("records"):
        if absent(row["rho"]):
            yield f"On {row['corpus']}, too few epochs were probed to relate BLEU-2 to probes."
            continue
        rho = with_interval(row["rho"], row["low"], row["high"], ".2f")
        if excludes_zero(row["low"], row["high"]):
            way = "higher" if row["rho"] > 0 else "lower"
            yield (
                f"On {row['corpus']}, epochs with more BLEU-2 have {way} probe F1 (Spearman {rho}, "
                "95 % interval over models)."
            )
        else:
            yield (
                f"On {row['corpus']}, BLEU-2 is not significantly related to what the encoder "
                f"knows (Spearman {rho} over {row['points']} points)."
            )
