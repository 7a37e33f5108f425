"""Declaration of a panel study's tables and figures, with Tables I to VIII of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.panel import source_runs
from tasktransfer.designs.panel.frames import ABOUT, FRAMES
from tasktransfer.designs.panel.names import DOMAIN_METHODS, MERGED
from tasktransfer.designs.panel.shown_columns import (
    UNSURE_DIFFERENCE,
    UNSURE_NOTE,
    format_method_name,
    format_with_sd,
    has_comparisons,
    has_few_shot,
    has_selection,
    has_trainings,
    make_measure_column,
    make_methods_condition,
    make_rated_sets_condition,
    mark_uncertain,
)
from tasktransfer.designs.panel.shown_frames import LEAKS_TABLE, PAIRS_TABLE, PROMPTED_TABLE
from tasktransfer.present.columns import (
    Column,
    Head,
    make_estimate_column,
    make_interval_column,
    make_number_column,
    make_p_value_column,
    make_published_column,
    make_text_column,
)
from tasktransfer.present.declared import Analysis, Figure, FlatTable, PivotTable, Table
from tasktransfer.present.numbers import SCORES, SECOND_DIFFERENCES
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
    "Does a panel of experts, one per domain, agree better with human ratings than one model of "
    "all domains, one full model per domain, or the cosine similarity of a pretrained encoder?"
)

SET, METHOD = make_text_column("set", "Rated set"), make_text_column("method", "Method")
CORRELATION = make_estimate_column("value", "", ".1f")


def declare_correlation_table(numeral: str, inside: bool) -> Table:
    """Return the declaration of Table III (``inside``: in-domain sets) or Table IV (other sets)."""
    return Table(
        "table3" if inside else "table4",
        f"Table {numeral}",
        printed.compute_table3 if inside else printed.compute_table4,
        PivotTable(
            (SET,),
            "method",
            mark_uncertain(CORRELATION),
            make_published_column(".2f"),
            order="rater",
            heads=format_method_name,
        ),
        keys=("set", "method"),
        notes=printed.describe_table3 if inside else printed.describe_table4,
        nothing=f"has no rated set {'in' if inside else 'outside'} the trained domains",
        planned=make_rated_sets_condition(inside),
        runs=source_runs.is_correlation_source,
    )


TABLES = (
    declare_correlation_table("III", True),
    declare_correlation_table("IV", False),
    Table(
        "differences",
        "Differences",
        printed.list_differences,
        PivotTable(
            (make_text_column("method", "Method"), make_text_column("against", "Minus")),
            "set",
            mark_uncertain(
                make_estimate_column("difference", "", "+.1f", bounds=SECOND_DIFFERENCES)
            ),
        ),
        keys=("method", "against", "set"),
        notes=lambda frames, frame: [
            UNSURE_DIFFERENCE,
            "Ratings are averaged over seeds, and contexts are resampled as clusters. The columns "
            "seeds_low and seeds_high of the Parquet file contain intervals over contexts and "
            "seeds.",
        ],
        planned=has_comparisons,
        runs=source_runs.is_difference_source,
    ),
    Table(
        "table5",
        "Table V",
        printed_transfer.compute_table5,
        PivotTable(
            (SET, make_text_column("by", "Sampled by"), make_text_column("scored", "Scored on")),
            "start",
            Column(Head("", "number"), format_with_sd),
            make_published_column(".2f"),
            order="start",
            heads=lambda name: name.replace("+", "\n"),
        ),
        keys=("set", "by", "scored", "start"),
        notes=printed_transfer.describe_table5,
        nothing="does not set few_shot",
        planned=has_few_shot,
        runs=source_runs.is_transfer_source,
    ),
    Table(
        "table7",
        "Table VII",
        printed_transfer.compute_table7,
        PivotTable(
            (METHOD, make_number_column("candidates", "Candidates", ".0f")),
            "persona",
            make_estimate_column("hits_at_1", "", ".1f", bounds=SCORES),
            make_published_column(".1f"),
        ),
        keys=("method", "candidates", "persona"),
        notes=printed_transfer.describe_table7,
        nothing="does not set selection",
        planned=has_selection,
    ),
    Table(
        "table8",
        "Table VIII",
        printed.compute_table8,
        PivotTable((SET,), "method", CORRELATION, make_published_column(".2f"), order="merged"),
        keys=("set", "method"),
        notes=printed.describe_table8,
        nothing="has no method with merged experts",
        planned=make_methods_condition(*MERGED),
        runs=source_runs.is_correlation_source,
    ),
    Table(
        "experts_by_set",
        "Experts by rated set",
        printed.list_expert_correlations,
        PivotTable(
            (METHOD, make_text_column("expert", "Expert")), "set", mark_uncertain(CORRELATION)
        ),
        keys=("method", "expert", "set"),
        notes=lambda frames, frame: [
            UNSURE_NOTE,
            "q controls the false-discovery rate over the rated sets of each expert.",
        ],
        nothing="has no method with experts (panel or collection)",
        planned=make_methods_condition(*DOMAIN_METHODS),
        runs=source_runs.is_expert_source,
    ),
    Table(
        "ceilings",
        "Ceilings of the correlations",
        printed.list_ceilings,
        FlatTable(
            (
                SET,
                make_number_column("items", "Items", ",d"),
                make_number_column("contexts", "Contexts", ",d"),
                make_number_column("annotators", "Annotators", ".1f"),
                make_number_column("split_half", "Split-half agreement", ".1f"),
                make_number_column("reliability", "Reliability", ".1f"),
                make_number_column("ceiling", "Ceiling", ".1f"),
                make_number_column("cosine_last", "cosine-last", ".1f"),
                make_number_column("cosine_whole", "cosine-whole", ".1f"),
                make_number_column("cosine_max", "cosine-max", ".1f"),
                make_number_column("overlap", "word-overlap", ".1f"),
                make_number_column("length", "length", ".1f"),
            )
        ),
        keys=("set",),
        notes=lambda frames, frame: [
            "The ceiling is the square root of the reliability of the annotators' mean rating. A "
            "correlation can exceed the ceiling only by chance. The ceiling is missing if only the "
            "mean rating is released.",
        ],
        section="sure",
        runs=lambda row, run: run.method.startswith("cosine"),
    ),
    Table(
        "tests",
        "Tests of differences",
        printed.list_tests,
        FlatTable(
            (
                METHOD,
                make_text_column("against", "Minus"),
                SET,
                make_text_column("seed", "Seed"),
                make_number_column("r_method", "Method", ".1f"),
                make_number_column("r_against", "Other", ".1f"),
                make_estimate_column("difference", "Difference", "+.1f", bounds=SECOND_DIFFERENCES),
                make_p_value_column("p", "p"),
                make_p_value_column("q", "q"),
                make_interval_column(
                    *("seeds_low", "seeds_high", "Over contexts and seeds", "+.1f"),
                    bounds=SECOND_DIFFERENCES,
                ),
                make_number_column("t", "Williams' t", ".2f"),
                make_p_value_column("t_p", "Williams' p"),
                make_p_value_column("t_q", "Williams' q"),
            ),
            blocks="pair",
        ),
        keys=("method", "against", "set", "seed"),
        notes=lambda frames, frame: [
            "In rows whose seed is “mean”, ratings are averaged over the seeds that both methods "
            "have.",
            "Williams' test assumes that responses to one context are independent, so it reports "
            "too many significant differences.",
        ],
        section="sure",
        folded=True,
        planned=has_comparisons,
        runs=source_runs.is_difference_source,
    ),
    Table(
        "resources",
        "Training runs by kind",
        printed_data.summarise_trainings,
        FlatTable(
            (
                make_text_column("kind", "Training"),
                make_number_column("trainings", "Runs", ",d"),
                make_number_column("hours", "Hours per run", ".3g"),
                make_number_column("all_hours", "Hours in total", ".3g"),
                make_number_column("parameters", "Parameters", ",.0f"),
                make_number_column("trained", "Trained parameters", ",.0f"),
                make_number_column("rounds", "Rounds", ".1f"),
                make_number_column("dev_score", "Dev score", ".1f"),
                make_number_column("test_accuracy", "Accuracy", ".1f"),
                make_number_column("test_constant", "Majority class", ".1f"),
                make_number_column("test_balanced", "Balanced accuracy", ".1f"),
            )
        ),
        keys=("kind",),
        section="cost",
        planned=has_trainings,
        runs=source_runs.is_training_source,
    ),
    PROMPTED_TABLE,
    Table(
        "published_resources",
        "Model sizes and times reported in the paper",
        printed_data.read_published_resources,
        FlatTable(
            (
                make_text_column("model", "Model"),
                make_text_column("trainable_parameters", "Trainable parameters"),
                make_number_column("hours_per_epoch", "Hours per epoch", ".1f"),
                make_number_column("seconds_per_10000", "Seconds for 10,000 ratings", ",.0f"),
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
        printed_data.compute_table1,
        PivotTable(
            (make_text_column("corpus", "Corpus"), make_text_column("statistic", "Number of")),
            "split",
            make_number_column("value", "", ",.0f"),
            make_published_column(",.0f"),
        ),
        keys=("corpus", "statistic", "split"),
        notes=printed_data.describe_table1,
        section="made",
        planned=has_trainings,
        runs=source_runs.is_never_source,
    ),
    Table(
        "table2",
        "Table II",
        printed_data.compute_table2,
        PivotTable(
            (SET, make_text_column("criterion", "Criterion")),
            "measure",
            make_measure_column("value"),
            Column(Head("Published", "number"), printed_data.format_published_measure),
            heads=lambda name: name.replace("_", " "),
        ),
        keys=("set", "measure"),
        notes=printed_data.describe_table2,
        section="made",
        runs=source_runs.is_never_source,
    ),
    PAIRS_TABLE,
    LEAKS_TABLE,
    Table(
        "table6",
        "Table VI",
        printed_transfer.compute_table6,
        PivotTable(
            (make_text_column("dataset", "Rated set"),),
            "start",
            make_number_column("spearman", "", ".2f"),
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
        nothing="does not set few_shot",
        planned=has_few_shot,
    ),
    Figure(
        "experts",
        "Correlation of each expert, by rated set",
        figures.plot_experts,
        ("experts",),
        nothing="has no method with experts (panel or collection)",
        planned=make_methods_condition(*DOMAIN_METHODS),
    ),
)


def build_analysis(study: Study) -> Analysis:
    """Return the frames, tables and figures of a panel study."""
    return Analysis(
        question=QUESTION,
        answer=answer.write_answer,
        frames=FRAMES,
        about=ABOUT,
        metadata=collect.build_study_metadata,
        complete=printed.complete_metadata,
        tables=TABLES,
        figures=FIGURES,
        captions="panel",
    )
