"""Declaration of an empathetic study's tables and figures, with those of the paper.

The Snakefile imports this module, so pandas and matplotlib are imported only when a table or a
figure is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.runs import Run
from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.frames import ABOUT, FRAMES, has_controls_of_ensembles
from tasktransfer.designs.empathetic.methods import BASE, parse_prepend
from tasktransfer.designs.empathetic.shown_human import HUMAN_TABLES, SCALES, make_rating_column
from tasktransfer.designs.empathetic.shown_prompted import PROMPTED_TABLE
from tasktransfer.present.columns import (
    Column,
    Head,
    Row,
    make_difference_column,
    make_estimate_column,
    make_number_column,
    make_published_column,
    make_text_column,
)
from tasktransfer.present.declared import Analysis, Figure, FlatTable, PivotTable, Table
from tasktransfer.present.numbers import DIFFERENCES, format_named_p, is_missing
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.empathetic import answer, collect, examples, figures, notes, printed
else:
    package = LazyPackage(__package__)
    answer, collect, examples = package.answer, package.collect, package.examples
    figures, notes, printed = package.figures, package.notes, package.printed

QUESTION = (
    "Do a model's replies improve when the model is fine-tuned on empathetic dialogues, and when "
    "it is also given the emotion or topic, or trained to predict the emotion?"
)
PAPER = "Rashkin et al., first version"
METHOD, SETTING = make_text_column("name", "Method"), make_text_column("setting", "Setting")
CANDIDATES = make_text_column("candidates", "Candidates")
DIFFERENCE = make_estimate_column("difference", "Minus Base", "+.2f", bounds=DIFFERENCES)


def _has_retrieval(study: Study) -> bool:
    return get_config(study).retrieval is not None


def _has_training_stages(study: Study) -> bool:
    return bool(study.plan.stages)


def _has_comparison(study: Study) -> bool:
    """Return whether a setting has Base and another method."""
    methods = [section.methods for section in get_config(study).settings.values()]
    config = get_config(study)
    others = bool(config.controls or config.brought or config.prompted)
    return any(BASE in names and (len(names) > 1 or others) for names in methods)


def _has_classifier(study: Study) -> bool:
    methods = get_config(study).methods
    return "ensemble-tuned" in methods or any(map(parse_prepend, methods))


def _has_mixed_pools(study: Study) -> bool:
    return _has_retrieval(study) and any("+" in pool for pool in get_config(study).evaluation.pools)


def _format_with_q(row: Row) -> str:
    """Return a difference with its interval and q as text."""
    shown = DIFFERENCE.show(row)
    return shown if is_missing(row["q"]) else f"{shown}, {format_named_p('q', row['q'])}"


def _is_source_run(row: Row, run: Run) -> bool:
    return run.about["setting"] == row["setting"] and run.method in (row["method"], BASE)


def _make_hours_column(key: str, label: str) -> Column:
    shown = make_number_column(key, label, ".3g")
    return Column(shown.head, lambda row: "< 0.001" if row[key] < 0.001 else shown.show(row))


TABLES = (
    Table(
        "table2",
        "Table 2",
        printed.compute_table2,
        PivotTable(
            (METHOD, CANDIDATES),
            "score",
            make_estimate_column("value", "Score", ".2f"),
            make_published_column(".2f"),
            blocks="group",
        ),
        keys=("name", "method", "setting", "candidates", "score"),
        paper=f"Table 2 of {PAPER}",
        notes=notes.describe_table2,
        nothing="has no scored replies",
    ),
    Table(
        "table9",
        "Table 9",
        printed.compute_table9,
        PivotTable(
            (make_text_column("text", "Text"),),
            "method",
            make_estimate_column("accuracy", "Accuracy", ".2f"),
            make_published_column(".2f"),
        ),
        keys=("text", "method"),
        paper=f"Table 9 of {PAPER}; our trained classifier is compared with its DeepMoji, last "
        "layers",
        notes=printed.describe_table9,
        nothing="has no method that uses a classifier",
        planned=_has_classifier,
    ),
    Table(
        "by_emotion",
        "P@1 by emotion",
        printed.list_scores_by_emotion,
        PivotTable(
            (make_text_column("emotion", "Emotion"),),
            "name",
            make_number_column("p_at_1", "P@1", ".2f"),
        ),
        keys=("emotion", "name", "method", "setting"),
        notes=printed.describe_emotions,
        nothing="has no retrieval setting",
        planned=_has_retrieval,
        folded=True,
    ),
    Table(
        "pools_chosen",
        "Sources of retrieved replies",
        printed.compute_pool_shares,
        PivotTable(
            (METHOD, make_text_column("pool", "Candidates")),
            "chosen_from",
            make_number_column("percent", "Percent", ".2f"),
            blocks="group",
        ),
        keys=("name", "method", "setting", "pool", "chosen_from"),
        notes=notes.list_method_notes,
        nothing="has no candidate pool with several datasets",
        planned=_has_mixed_pools,
    ),
    PROMPTED_TABLE,
    *HUMAN_TABLES,
    Table(
        "table3",
        "Table 3 of the paper",
        printed.read_published_table3,
        FlatTable(
            (
                make_text_column("group", "Group"),
                SETTING,
                make_text_column("model", "Model"),
                make_text_column("candidates", "Candidates"),
                *map(make_rating_column, SCALES),
            ),
            blocks="group",
        ),
        keys=("group", "setting", "model"),
        folded=True,
        cited=True,
    ),
    Table(
        "table5",
        "Table 5 of the paper",
        printed.compare_table5,
        FlatTable(
            (
                make_text_column("a_vs_b", "A vs. B"),
                make_number_column("ratio", "Ratio as printed", ".2f"),
                make_number_column("from_figure5", "From Figure 5", ".2f"),
            )
        ),
        keys=("a_vs_b",),
        folded=True,
        cited=True,
    ),
    Table(
        "differences",
        "Differences from Base",
        printed.list_differences,
        PivotTable(
            (METHOD, CANDIDATES),
            "score",
            Column(Head("Minus Base", "number"), _format_with_q),
            blocks="group",
        ),
        keys=("name", "method", "setting", "candidates", "score"),
        notes=notes.list_interval_notes,
        nothing="compares no method with Base",
        section="sure",
        planned=_has_comparison,
        certain=False,
        runs=_is_source_run,
    ),
    Table(
        "control_differences",
        "Ensembles minus their controls",
        printed.list_control_differences,
        PivotTable(
            (METHOD, make_text_column("against", "Minus"), CANDIDATES),
            "score",
            Column(Head("Difference", "number"), _format_with_q),
            blocks="group",
        ),
        keys=("name", "method", "against", "setting", "candidates", "score"),
        notes=lambda frames, frame: [
            "ensemble-untrained has the same second encoder without its training on emotions, and "
            "base-longer is Base trained a second time for the same number of epochs. Only a "
            "difference from both controls is an effect of the emotions.",
        ],
        section="sure",
        planned=has_controls_of_ensembles,
        certain=False,
        runs=lambda row, run: (
            run.about["setting"] == row["setting"] and run.method in (row["method"], row["against"])
        ),
    ),
    Table(
        "orders",
        "P@1 and reply order",
        printed.compute_scores_by_order,
        FlatTable(
            (
                METHOD,
                make_number_column("p_at_1", "Consecutive", ".2f"),
                make_number_column("p_at_1_shuffled", "Random, mean", ".2f"),
                make_number_column("p_at_1_shuffled_sd", "Random, SD", ".2f"),
                make_number_column("p_at_1_permuted", "Replies permuted", ".2f"),
            ),
            blocks="group",
        ),
        keys=("name", "method", "setting"),
        notes=notes.describe_orders,
        nothing="has no retrieval setting",
        section="sure",
        planned=_has_retrieval,
    ),
    Table(
        "table4",
        "Table 4",
        printed.compute_table4,
        FlatTable(
            (
                SETTING,
                METHOD,
                make_text_column("hardware", "Hardware"),
                make_number_column("parameters", "Parameters", ",d"),
                make_published_column(",.0f", "Published", "_parameters"),
                _make_hours_column("hours", "Hours"),
                make_published_column(".3g", "Published", "_hours"),
                _make_hours_column("all_hours", "Hours incl. earlier stages"),
                make_number_column("examples", "Training instances", ",d"),
            ),
            blocks="setting",
        ),
        keys=("setting", "name", "method"),
        paper=f"Table 4 of {PAPER}",
        notes=printed.describe_table4,
        nothing="trains nothing",
        section="cost",
        planned=_has_training_stages,
    ),
    Table(
        "table7",
        "Table 7",
        printed.compute_table7,
        FlatTable(
            (
                make_text_column("label", "Emotion"),
                make_number_column("dialogues", "Dialogues", ",d"),
                make_number_column("percent", "Percent", ".2f"),
                make_published_column(".2f"),
                make_difference_column("+.2f"),
            )
        ),
        keys=("label",),
        paper=f"Table 7 of {PAPER}",
        nothing="has no dialogues on this machine",
        section="made",
        folded=True,
        certain=False,
        runs=lambda row, run: False,
    ),
)

FIGURES = (
    Figure(
        "p_at_1_and_bleu",
        "Scores of each method",
        figures.plot_scores,
        ("summary",),
        nothing="has no scored replies",
    ),
    Figure(
        "human_comparisons",
        "Human preferences, as published",
        figures.plot_human_comparisons,
        (),
    ),
    Figure(
        "differences_to_base",
        "Differences from Base with 95 % intervals",
        figures.plot_differences,
        ("differences",),
        nothing="compares no method with Base",
        section="answer",
        planned=_has_comparison,
        certain=False,
    ),
)


def build_analysis(study: Study) -> Analysis:
    """Return the frames, tables and figures of an empathetic study."""
    return Analysis(
        question=QUESTION,
        answer=answer.write_answer,
        frames=FRAMES,
        about=ABOUT,
        metadata=collect.build_study_metadata,
        complete=printed.complete_frames,
        tables=TABLES,
        figures=FIGURES,
        captions="empathetic",
        blocks=examples.build_blocks,
    )
