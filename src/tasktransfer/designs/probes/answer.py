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


def answer(view: View) -> list[str]:
    """Sentences made of ``intervals`` and ``claims``; the control probe is left out."""
    intervals = view["intervals"]
    intervals = intervals[intervals["probe"] != CONTROL]
    trained = _trained(intervals)
    return [*_by_training(trained), *_above_prior(trained), *_by_bleu(view["claims"])]


def _trained(intervals: pd.DataFrame) -> pd.DataFrame:
    """Cells of one trained snapshot: the best epoch's where it was probed, else the last's."""
    for snapshot in (BEST, "last"):
        rows = intervals[intervals["snapshot"] == snapshot]
        if len(rows):
            return rows
    return intervals.iloc[:0]


def _by_training(trained: pd.DataFrame) -> Iterator[str]:
    rows = trained[(trained["compared_with"] == UNTRAINED) & trained["q"].notna()]
    if rows.empty:
        yield "Whether training teaches an encoder what probes ask cannot be told."
        return
    more, less = int(above(rows).sum()), int(below(rows).sum())
    what = "pairs of model and probe"
    if not more and not less:
        yield (
            f"In none of {len(rows)} {what} is the trained encoder told apart from the untrained "
            "one (q ≤ 0.05)."
        )
        return
    yield (
        f"Training surely raised probe F1 in {counted_of(more, len(rows), what)} and lowered it in "
        f"{less or 'none'} (q ≤ 0.05); the others are not told from the untrained encoder."
    )


def _above_prior(trained: pd.DataFrame) -> Iterator[str]:
    rows = trained[(trained["compared_with"] == PRIOR) & trained["q"].notna()]
    if len(rows):
        sure = counted_of(int(above(rows).sum()), len(rows), "pairs")
        yield f"A trained encoder surely beats the best constant answer in {sure}."


def _by_bleu(claims: pd.DataFrame) -> Iterator[str]:
    rows = claims[(claims["probe"] == "all") & (claims["over"] == "trained")]
    for row in rows.to_dict("records"):
        if absent(row["rho"]):
            yield f"On {row['corpus']}, too few epochs were probed to relate BLEU-2 to probes."
            continue
        rho = with_interval(row["rho"], row["low"], row["high"], ".2f")
        if excludes_zero(row["low"], row["high"]):
            way = "higher" if row["rho"] > 0 else "lower"
            yield (
                f"On {row['corpus']}, epochs with more BLEU-2 have {way} probe F1 (Spearman {rho})."
            )
        else:
            yield (
                f"On {row['corpus']}, BLEU-2 does not surely tell what the encoder knows "
                f"(Spearman {rho} over {row['points']} points)."
            )
