"""Tables and figures of a panel study: Tables I to VIII of the paper, further tables, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.panel import behind
from tasktransfer.designs.panel.frames import ABOUT, FRAMES
from tasktransfer.designs.panel.names import FANS, MERGED
from tasktransfer.designs.panel.shown_columns import (
    UNSURE_DIFFERENCE,
    UNSURE_NOTE,
    add_paper_name,
    add_spread,
    has,
    has_comparisons,
    has_few_shot,
    has_rated_sets,
    has_selection,
    has_trainings,
    make_measure_column,
    mark_uncertain,
)
from tasktransfer.designs.panel.shown_frames import LEAKS_TABLE, PAIRS_TABLE, PROMPTED_TABLE
from tasktransfer.present.columns import (
    Column,
    Head,
    estimate,
    interval,
    number,
    probability,
    text,
)
from tasktransfer.present.declared import Analysis, Crossed, Figure, Listed, Table
from tasktransfer.present.numbers import SCORES, SECOND_DIFFERENCES
from tasktransfer.present.published_columns import make_published_column
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.panel import (
        answer,
        collect,
        figures,
        printed,
        printed_data,
        printed_transfer,
    )
else:
    package = LazyPackage(__package__)
    answer, collect, figures = package.answer, package.collect, package.figures
    printed, printed_data = package.printed, package.printed_data
    printed_transfer = package.printed_transfer

QUESTION = (
    "Does a panel of experts, one per domain, rate responses more like people than one model of "
    "all domains, one full model per domain, or the cosine similarity of a pretrained encoder?"
)

SET, METHOD = text("set", "Rated set"), text("method", "Method")
CORRELATION = estimate("value", "", ".1f")


def correlations(number_of: str, inside: bool) -> Table:
    """Return Table III (``inside``: sets in the trained domains) or Table IV (other sets)."""
    return Table(
        "table3" if inside else "table4",
        f"Table {number_of}",
        printed.table3 if inside else printed.table4,
        Crossed(
            (SET,),
            "method",
            mark_uncertain(CORRELATION),
            make_published_column(".2f"),
            order="rater",
            heads=add_paper_name,
        ),
        keys=("set", "method"),
        notes=printed.notes_of_table3 if inside else printed.notes_of_table4,
        nothing=f"has no rated set {'in' if inside else 'outside'} the trained domains",
        planned=has_rated_sets(inside),
        runs=behind.is_behind_correlation,
    )


TABLES = (
    correlations("III", True),
    correlations("IV", False),
    Table(
        "differences",
        "Differences",
        printed.differences,
        Crossed(
            (text("method", "Method"), text("against", "Minus")),
            "set",
            mark_uncertain(estimate("difference", "", "+.1f", bounds=SECOND_DIFFERENCES)),
        ),
        keys=("method", "against", "set"),
        notes=lambda frames, frame: [
            UNSURE_DIFFERENCE,
            "Ratings are averaged over seeds, and contexts are resampled as clusters. Columns "
            "seeds_low and seeds_high of the Parquet file hold intervals over contexts and seeds.",
        ],
        planned=has_comparisons,
        runs=behind.is_behind_difference,
    ),
    Table(
        "table5",
        "Table V",
        printed_transfer.table5,
        Crossed(
            (SET, text("by", "Sampled by"), text("scored", "Scored on")),
            "start",
            Column(Head("", "number"), add_spread),
            make_published_column(".2f"),
            order="start",
            heads=lambda name: name.replace("+", "\n"),
        ),
        keys=("set", "by", "scored", "start"),
        notes=printed_transfer.notes_of_table5,
        nothing="has no few-shot transfer (few_shot)",
        planned=has_few_shot,
        runs=behind.is_behind_transfer,
    ),
    Table(
        "table7",
        "Table VII",
        printed_transfer.table7,
        Crossed(
            (METHOD, number("candidates", "Candidates", ".0f")),
            "persona",
            estimate("hits_at_1", "", ".1f", bounds=SCORES),
            make_published_column(".1f"),
        ),
        keys=("method", "candidates", "persona"),
        notes=printed_transfer.notes_of_table7,
        nothing="has no response selection (selection)",
        planned=has_selection,
    ),
    Table(
        "table8",
        "Table VIII",
        printed.table8,
        Crossed((SET,), "method", CORRELATION, make_published_column(".2f"), order="merged"),
        keys=("set", "method"),
        notes=printed.notes_of_table8,
        nothing="has no method with merged experts",
        planned=has(*MERGED),
        runs=behind.is_behind_correlation,
    ),
    Table(
        "experts_by_set",
        "Experts by rated set",
        printed.experts,
        Crossed((METHOD, text("expert", "Expert")), "set", mark_uncertain(CORRELATION)),
        keys=("method", "expert", "set"),
        notes=lambda frames, frame: [
            UNSURE_NOTE,
            "q controls false discoveries over the rated sets of each expert.",
        ],
        nothing="has no experts (panel or collection)",
        planned=has(*FANS),
        runs=behind.is_behind_expert,
    ),
    Table(
        "ceilings",
        "Ceilings of the correlations",
        printed.ceilings,
        Listed(
            (
                SET,
                number("items", "Items", ",d"),
                number("contexts", "Contexts", ",d"),
                number("annotators", "Annotators", ".1f"),
                number("split_half", "Split-half agreement", ".1f"),
                number("reliability", "Reliability", ".1f"),
                number("ceiling", "Ceiling", ".1f"),
                number("cosine_last", "cosine-last", ".1f"),
                number("cosine_whole", "cosine-whole", ".1f"),
                number("cosine_max", "cosine-max", ".1f"),
                number("overlap", "word-overlap", ".1f"),
                number("length", "length", ".1f"),
            )
        ),
        keys=("set",),
        notes=lambda frames, frame: [
            "Ceiling: the square root of the reliability of the annotators' mean. A correlation "
            "exceeds it only by chance. It is missing if only the mean rating is released.",
        ],
        section="sure",
        runs=lambda row, run: run.method.startswith("cosine"),
    ),
    Table(
        "tests",
        "Tests of differences",
        printed.tests,
        Listed(
            (
                METHOD,
                text("against", "Minus"),
                SET,
                text("seed", "Seed"),
                number("r_method", "Method", ".1f"),
                number("r_against", "Other", ".1f"),
                estimate("difference", "Difference", "+.1f", bounds=SECOND_DIFFERENCES),
                probability("p", "p"),
                probability("q", "q"),
                interval(
                    *("seeds_low", "seeds_high", "Over contexts and seeds", "+.1f"),
                    bounds=SECOND_DIFFERENCES,
                ),
                number("t", "Williams' t", ".2f"),
                probability("t_p", "Williams' p"),
                probability("t_q", "Williams' q"),
            ),
            blocks="pair",
        ),
        keys=("method", "against", "set", "seed"),
        notes=lambda frames, frame: [
            "Seed mean: ratings averaged over the seeds that both methods have.",
            "Williams' test assumes that responses to one context are independent, so it finds too "
            "many differences.",
        ],
        section="sure",
        folded=True,
        planned=has_comparisons,
        runs=behind.is_behind_difference,
    ),
    Table(
        "resources",
        "Training runs by kind",
        printed_data.resources,
        Listed(
            (
                text("kind", "Training"),
                number("trainings", "Runs", ",d"),
                number("hours", "Hours per run", ".3g"),
                number("all_hours", "Hours in total", ".3g"),
                number("parameters", "Parameters", ",.0f"),
                number("trained", "Trained parameters", ",.0f"),
                number("rounds", "Rounds", ".1f"),
                number("dev_score", "Dev score", ".1f"),
                number("test_accuracy", "Accuracy", ".1f"),
                number("test_constant", "Majority class", ".1f"),
                number("test_balanced", "Balanced accuracy", ".1f"),
            )
        ),
        keys=("kind",),
        section="cost",
        planned=has_trainings,
        runs=behind.is_training_used,
    ),
    PROMPTED_TABLE,
    Table(
        "published_resources",
        "Sizes and times of the paper",
        printed_data.published_resources,
        Listed(
            (
                text("model", "Model"),
                text("trainable_parameters", "Trainable parameters"),
                number("hours_per_epoch", "Hours per epoch", ".1f"),
                number("seconds_per_10000", "Seconds for 10,000 ratings", ",.0f"),
            )
        ),
        keys=("model",),
        section="cost",
        folded=True,
        cited=True,
    ),
    Table(
        "table1",
        "Table I",
        printed_data.table1,
        Crossed(
            (text("corpus", "Corpus"), text("statistic", "Number of")),
            "split",
            number("value", "", ",.0f"),
            make_published_column(",.0f"),
        ),
        keys=("corpus", "statistic", "split"),
        notes=printed_data.notes_of_table1,
        section="made",
        planned=has_trainings,
        runs=behind.is_never_behind,
    ),
    Table(
        "table2",
        "Table II",
        printed_data.table2,
        Crossed(
            (SET, text("criterion", "Criterion")),
            "measure",
            make_measure_column("value"),
            Column(Head("Published", "number"), printed_data.format_published_measure),
            heads=lambda name: name.replace("_", " "),
        ),
        keys=("set", "measure"),
        notes=printed_data.notes_of_table2,
        section="made",
        runs=behind.is_never_behind,
    ),
    PAIRS_TABLE,
    LEAKS_TABLE,
    Table(
        "table6",
        "Table VI",
        printed_transfer.table6,
        Crossed(
            (text("dataset", "Rated set"),),
            "start",
            number("spearman", "", ".2f"),
            order="cited start",
            heads=lambda name: name.replace("+", "\n"),
        ),
        keys=("dataset", "start"),
        section="results",
        folded=True,
        cited=True,
    ),
)

FIGURES = (
    Figure(
        "correlations",
        "Correlation with human ratings, by rated set",
        figures.plot_correlations,
        ("correlations", "ceilings"),
        section="answer",
    ),
    Figure(
        "few_shot",
        "Correlation after few-shot training on ratings",
        figures.plot_few_shot,
        ("few",),
        nothing="has no few-shot transfer (few_shot)",
        planned=has_few_shot,
    ),
    Figure(
        "experts",
        "Correlation of each expert, by rated set",
        figures.plot_experts,
        ("experts",),
        nothing="has no experts (panel or collection)",
        planned=has(*FANS),
    ),
)


def build_analysis(study: Study) -> Analysis:
    """Return the tables and figures for any study of this design."""
    return Analysis(
        question=QUESTION,
        answer=answer.answer,
        frames=FRAMES,
        about=ABOUT,
        metadata=collect.build_study_metadata,
        complete=printed.complete,
        tables=TABLES,
        figures=FIGURES,
        captions="panel",
    )
