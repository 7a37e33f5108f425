"""Printed tables of a user's own human judgements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasktransfer.designs.empathetic.frames import has_choices, has_judgements, has_ratings
from tasktransfer.present.columns import (
    Column,
    Head,
    make_estimate_column,
    make_number_column,
    make_text_column,
)
from tasktransfer.present.declared import FlatTable, Table
from tasktransfer.present.numbers import is_missing
from tasktransfer.results.frames import Frames

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("empathy", "relevance", "fluency")


def make_rating_column(key: str) -> Column:
    """Return a column that shows a mean, its standard error and its interval over contexts.

    The paper's own ratings (Table 3) have no interval.
    """

    def show(row: Mapping[str, Any]) -> str:
        low, high = row.get(f"{key}_low", math.nan), row.get(f"{key}_high", math.nan)
        ends = "" if is_missing(low) else f" [{low:.2f}, {high:.2f}]"
        return f"{row[key]:.2f} ± {row[f'{key}_sem']:.2f}{ends}"

    return Column(Head(key.capitalize(), "number"), show)


def _list_agreement_notes(frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    return [
        "Krippendorff's alpha is 1 for perfect agreement and 0 for agreement by chance. Alpha is "
        "ordinal for ratings and nominal for choices. Intervals come from a bootstrap over "
        "contexts, and do not cover the choice of raters."
    ]


HUMAN_TABLES = (
    Table(
        "human_ratings",
        "Human ratings",
        lambda frames: frames["human_ratings"],
        FlatTable(
            (
                make_text_column("model", "Model"),
                make_number_column("ratings", "Ratings", ",d"),
                *map(make_rating_column, SCALES),
            )
        ),
        keys=("model",),
        notes=lambda frames, frame: [
            "Means with standard errors (±), as in Table 3 of the paper, which treat ratings as "
            "independent. The 95 % intervals in brackets are computed by resampling contexts, "
            "each with all its ratings. The intervals do not cover the choice of raters."
        ],
        planned=has_ratings,
        runs=lambda row, run: False,
    ),
    Table(
        "human_choices",
        "Human choices between two replies",
        lambda frames: frames["human_choices"],
        FlatTable(
            (
                make_text_column("model", "Model"),
                make_text_column("other", "Other model"),
                make_number_column("chosen", "Model chosen", ",d"),
                make_number_column("other_chosen", "Other chosen", ",d"),
                make_number_column("equal", "Equal", ",d"),
                make_number_column("neither", "Neither", ",d"),
            )
        ),
        keys=("model", "other"),
        planned=has_choices,
        runs=lambda row, run: False,
    ),
    Table(
        "human_agreement",
        "Agreement of the human raters",
        lambda frames: frames["human_agreement"],
        FlatTable(
            (
                make_text_column("question", "Question"),
                make_estimate_column("alpha", "Krippendorff's alpha", ".2f"),
                make_number_column("items", "Items", ",d"),
                make_number_column("contexts", "Contexts", ",d"),
                make_number_column("raters", "Raters", ",d"),
            )
        ),
        keys=("question",),
        notes=_list_agreement_notes,
        section="sure",
        planned=has_judgements,
        runs=lambda row, run: False,
    ),
)
