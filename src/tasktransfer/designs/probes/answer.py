"""The study's answer in sentences: the effect of training on probes, and its relation to BLEU."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.plan import BEST, UNTRAINED
from tasktransfer.present.numbers import is_missing
from tasktransfer.present.sentences import (
    excludes_zero,
    format_fraction,
    format_with_interval,
    is_above,
    is_below,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.probe_rows import PRIOR

Cell = tuple[str, str, str, str]
"""Corpus, model, probe and snapshot."""


def answer(frames: Frames) -> list[str]:
    """Return the sentences for ``intervals`` and ``claims``, without the control probe."""
    intervals = frames["intervals"]
    intervals = intervals[intervals["probe"] != CONTROL]
    trained = select_trained(intervals)
    own = intervals[intervals["constant"] > 0]
    constant = frozenset(
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in own.itertuples()
    )
    by_training = _describe_training(trained, constant)
    return [*by_training, *_describe_above_prior(trained), *_describe_bleu(frames["claims"])]


def select_trained(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return cells of one trained snapshot: the best epoch if it was probed, otherwise the last."""
    for snapshot in (BEST, "last"):
        rows = intervals[intervals["snapshot"] == snapshot]
        if len(rows):
            return rows
    return intervals.iloc[:0]


def _describe_training(trained: pd.DataFrame, constant: frozenset[Cell]) -> Iterator[str]:
    every = trained[(trained["compared_with"] == UNTRAINED) & trained["p"].notna()]
    rows = every[every["q"].notna()]
    if rows.empty and len(every):
        higher = format_fraction(
            int((every["value"] > 0).sum()), len(every), "pairs of model and probe"
        )
        yield (
            f"With one run per encoder, probe F1 is higher after training in {higher}"
            f"{_count_constant(every, constant)}. No difference is tested, because one run does "
            "not cover the variation between training runs. Train at least two seeds (for example "
            "seeds: 3)."
        )
        return
    if rows.empty:
        yield (
            "The effect of training on probe F1 is unknown: no trained encoder was compared with "
            "its untrained version."
        )
        return
    more, less = int(is_above(rows).sum()), int(is_below(rows).sum())
    what = "pairs of model and probe"
    found = rows[is_above(rows) | is_below(rows)]
    if not more and not less:
        yield (
            f"Probe F1 does not differ significantly between trained and untrained encoder in any "
            f"of {len(rows)} {what} (q ≤ 0.05)."
        )
        return
    yield (
        f"Training significantly raised probe F1 in {format_fraction(more, len(rows), what)} and "
        f"lowered it in {less or 'none'} (q ≤ 0.05){_count_constant(found, constant)}. The other "
        "pairs show no significant difference."
    )


def _count_constant(rows: pd.DataFrame, constant: frozenset[Cell]) -> str:
    """Count the pairs in which the probe of either encoder gives a constant answer."""
    pairs = [
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in rows.itertuples()
    ]
    count = sum(bool({(*p[:3], p[3]), (*p[:3], UNTRAINED)} & constant) for p in pairs)
    return f"; in {count} of these {len(rows)} a probe gives a constant answer" if count else ""


def _describe_above_prior(trained: pd.DataFrame) -> Iterator[str]:
    rows = trained[(trained["compared_with"] == PRIOR) & trained["q"].notna()]
    if len(rows):
        sure = format_fraction(int(is_above(rows).sum()), len(rows), "pairs")
        yield (
            "Probe F1 of the trained encoder is significantly higher than that of the best "
            f"constant answer in {sure}."
        )


def _describe_bleu(claims: pd.DataFrame) -> Iterator[str]:
    rows = claims[(claims["probe"] == "all") & (claims["over"] == "trained")]
    # One interval per corpus, over models, so there is no family of tests to correct for.
    for row in rows.to_dict("records"):
        if is_missing(row["rho"]):
            yield f"On {row['corpus']}, too few epochs were probed to correlate BLEU-2 with F1."
            continue
        rho = format_with_interval(row["rho"], row["low"], row["high"], ".2f")
        if excludes_zero(row["low"], row["high"]):
            way = "higher" if row["rho"] > 0 else "lower"
            yield (
                f"On {row['corpus']}, epochs with higher BLEU-2 have {way} probe F1 (Spearman "
                f"{rho}, 95 % interval over models)."
            )
        else:
            yield (
                f"On {row['corpus']}, BLEU-2 and probe F1 are not significantly correlated "
                f"(Spearman {rho} over {row['points']} points)."
            )
