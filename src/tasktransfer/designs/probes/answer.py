"""The study's answer: training and probes, the word-count control, and the relation to BLEU."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tasktransfer.designs.probes.facts import CONTROL
from tasktransfer.designs.probes.intervals import ALL
from tasktransfer.designs.probes.plan import AS_IT_IS, BEST, UNTRAINED
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    excludes_zero,
    format_fraction,
    format_named_p,
    format_value_with_interval,
    is_missing,
    is_significantly_negative,
    is_significantly_positive,
    join_names,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.schema import PRIOR

Cell = tuple[str, str, str, str]
"""Corpus, model, probe and snapshot."""


def write_answer(frames: Frames) -> list[str]:
    """Return the sentences for ``intervals``, ``above_words`` and ``claims``.

    The control probe is left out.
    """
    intervals = frames["intervals"]
    intervals = intervals[intervals["probe"] != CONTROL]
    trained = select_trained_rows(intervals)
    own = intervals[intervals["constant"] > 0]
    constant = frozenset(
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in own.itertuples()
    )
    above_words = frames["above_words"]
    released = above_words[above_words["snapshot"] == AS_IT_IS]
    sentences = [
        *_describe_above_words(select_trained_rows(above_words), "trained encoders"),
        *_describe_above_words(released, "released encoders"),
        *(_describe_layers(frames["layers"]) if "layers" in frames else ()),
    ]
    if len(trained) or not sentences:
        sentences += _describe_training(trained, constant)
    return [*sentences, *_describe_above_prior(trained), *_describe_bleu(frames["claims"])]


def select_trained_rows(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one trained snapshot: the best epoch if probed, otherwise the last."""
    for snapshot in (BEST, "last"):
        rows = intervals[intervals["snapshot"] == snapshot]
        if len(rows):
            return rows
    return intervals.iloc[:0]


def _describe_training(trained: pd.DataFrame, constant: frozenset[Cell]) -> Iterator[str]:
    """Yield a sentence on the differences between trained and untrained encoders."""
    every = trained[(trained["compared_with"] == UNTRAINED) & trained["p"].notna()]
    rows = every[every["q"].notna()]
    if rows.empty and len(every):
        higher = format_fraction(int((every["value"] > 0).sum()), len(every), PAIRS)
        yield (
            "With one run per encoder, probe F1 is higher after training in "
            f"{higher}{_describe_constant_pairs(every, constant, PAIRS)}. Differences are not "
            "tested, because one run does not show the variation between training runs. Train "
            "each encoder with at least two seeds (for example seeds: 3)."
        )
        return
    if rows.empty:
        yield (
            "The effect of training on probe F1 is unknown, because no trained encoder was "
            "compared with its untrained version."
        )
        return
    more, less = (
        int(is_significantly_positive(rows).sum()),
        int(is_significantly_negative(rows).sum()),
    )
    what = PAIRS
    found = rows[is_significantly_positive(rows) | is_significantly_negative(rows)]
    if not more and not less:
        yield (
            f"Probe F1 does not differ significantly between trained and untrained encoder in any "
            f"of {len(rows)} {what} (q ≤ 0.05)."
        )
        return
    yield (
        f"Training significantly raised probe F1 in {format_fraction(more, len(rows), what)} and "
        f"lowered it in {less or 'none'} (q ≤ "
        f"0.05){_describe_constant_pairs(found, constant, DIFFERENT)}. All other pairs of model "
        "and probe show no significant difference."
    )


def _describe_constant_pairs(rows: pd.DataFrame, constant: frozenset[Cell], what: str) -> str:
    """Return a sentence on the pairs for which a probe's answers are constant, or "" if none."""
    pairs = [
        (str(r.corpus), str(r.model), str(r.probe), str(r.snapshot)) for r in rows.itertuples()
    ]
    count = sum(bool({(*p[:3], p[3]), (*p[:3], UNTRAINED)} & constant) for p in pairs)
    return f". In {count} of {len(rows)} {what}, a probe gives a constant answer" if count else ""


def _describe_above_prior(trained: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the differences from the best constant answer."""
    rows = trained[(trained["compared_with"] == PRIOR) & trained["q"].notna()]
    if len(rows):
        higher = format_fraction(int(is_significantly_positive(rows).sum()), len(rows), "pairs")
        yield (
            "Probe F1 of the trained encoder is significantly higher than the F1 of the best "
            f"constant answer in {higher}."
        )


def _describe_above_words(rows: pd.DataFrame, who: str) -> Iterator[str]:
    """Yield a sentence on the strongest control: the encoders' F1 minus the F1 of word counts."""
    if rows.empty:
        return
    pairs = rows[(rows["probe"] != ALL) & (rows["probe"] != CONTROL)]
    tested = pairs[pairs["q"].notna()]
    means = rows[(rows["probe"] == ALL) & (rows["model"] == ALL)]
    rows_of_means = means.to_dict("records")
    values = (
        format_value_with_interval(row["value"], row["low"], row["high"], "+.1f", DIFFERENCES)
        for row in rows_of_means
    )
    differences = (
        f"{value} points on {row['corpus']}{_format_q(row['q'])}"
        for value, row in zip(values, rows_of_means, strict=True)
    )
    control = (
        f"Averaged over probes, F1 on the {who} differs from F1 on counts of the same words, the "
        f"strongest control, by {' and '.join(differences)}."
    )
    if len(tested):
        higher = format_fraction(int(is_significantly_positive(tested).sum()), len(tested), PAIRS)
        yield (
            f"{control} F1 is significantly higher on the encoder than on word counts in {higher}, "
            f"and significantly lower in {int(is_significantly_negative(tested).sum()) or 'none'} "
            f"(q ≤ {MOST_Q})."
        )
    else:
        higher = format_fraction(int((pairs["value"] > 0).sum()), len(pairs), PAIRS)
        yield (
            f"{control} F1 is higher on the encoder than on word counts in {higher}. With one run "
            "per encoder, differences are not tested."
        )


def _describe_layers(layers: pd.DataFrame) -> Iterator[str]:
    """Yield one sentence per model on its first, middle and last layer.

    These layers are independent of the scores.
    """
    for (corpus, model), rows in layers.groupby(["corpus", "model"], sort=False):
        means = rows[rows["probe"] == ALL].sort_values("layer").reset_index(drop=True)
        places = dict.fromkeys((0, len(means) // 2, len(means) - 1))
        values = [
            f"{format_value_with_interval(row['f1'], row['low'], row['high'], '.1f')} at layer "
            f"{row['layer']}"
            for row in means.iloc[list(places)].to_dict("records")
        ]
        text = f"For {model} on {corpus}, mean F1 over probes is {join_names(values)}."
        pairs = rows[~rows["probe"].isin([ALL, CONTROL])]
        tested = pairs[pairs["q"].notna()]
        if tested.empty:
            yield text
            continue
        above = int(is_significantly_positive(tested, "above_words").sum())
        below = int(is_significantly_negative(tested, "above_words").sum())
        yield (
            f"{text} Mean F1 on counts of the words that the model reads (the strongest control) "
            f"is {means['words'][0]:.1f}. F1 is significantly higher on the layer than on word "
            f"counts in {format_fraction(above, len(tested), 'pairs of layer and probe')}, and "
            f"significantly lower in {below or 'none'} (q ≤ {MOST_Q})."
        )


def _format_q(q: float) -> str:
    return "" if is_missing(q) else f" ({format_named_p('q', q)})"


PAIRS = "pairs of model and probe"
DIFFERENT = "pairs with a significant difference"

CORRELATIONS = {
    "within": "Over the epochs of a model on {}, dev BLEU-2 and mean probe F1",
    "between": "Across models on {}, mean BLEU-2 and mean F1",
}
"""Points of a correlation → its numbers in words, with a placeholder for the corpus."""


def _describe_bleu(claims: pd.DataFrame) -> Iterator[str]:
    """Yield one sentence per corpus on the correlations of BLEU and F1 within and between models.

    Each corpus and question has one interval, so no family of tests needs a correction.
    """
    means = claims[claims["probe"] == ALL]
    for corpus, rows in means.groupby("corpus", sort=False):
        known = rows.dropna(subset=["rho"]).set_index("over")
        parts = [
            _describe_correlation(what.format(corpus), known.loc[[over]].iloc[0])
            for over, what in CORRELATIONS.items()
            if over in known.index
        ]
        if parts:
            yield f"{'. '.join(parts)}."
        else:
            yield f"On {corpus}, too few epochs were probed to correlate BLEU-2 with F1."


def _describe_correlation(what: str, row: pd.Series) -> str:
    rho = format_value_with_interval(row["rho"], row["low"], row["high"], ".2f")
    if is_missing(row["low"]):
        return f"{what} have a Spearman correlation of {rho}, for which no interval can be computed"
    if not excludes_zero(row["low"], row["high"]):
        return f"{what} are not significantly correlated (Spearman {rho})"
    way = "positively" if row["rho"] > 0 else "negatively"
    return f"{what} are significantly {way} correlated (Spearman {rho})"
