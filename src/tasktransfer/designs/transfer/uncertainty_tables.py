"""Printed tables of statistics, references and controls, for the report's section on uncertainty.

The Snakefile imports this module, so it must not import pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.core.references import COMPUTED_LABELS, REFERENCES, STATES
from tasktransfer.designs.transfer.algorithms import CONTROLS, VERDICTS
from tasktransfer.designs.transfer.columns import COMPONENTS
from tasktransfer.designs.transfer.frames import has_references
from tasktransfer.designs.transfer.runs import get_algorithm_label, is_control
from tasktransfer.present.columns import (
    Column,
    make_interval_column,
    make_number_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.declared import FlatTable, Table
from tasktransfer.present.numbers import DIFFERENCES, SECOND_DIFFERENCES
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.tables import printed_rows
else:
    printed_rows = LazyPackage("tasktransfer.designs.transfer.tables").printed_rows

_PAIRS = "at least three source-target pairs with values that are not all equal"
"""Requirement of a rank correlation (``stats.correlation``)."""
_GROUP = (
    make_text_column("dataset", "Dataset"),
    make_text_column("model", "Model"),
    make_text_column("algorithm", "Algorithm", get_algorithm_label),
)
_CELL = (*_GROUP, make_text_column("source", "Source"), make_text_column("target", "Target"))


def _declare_table(
    name: str,
    title: str,
    caption: str,
    make: Callable[..., Any],
    columns: tuple[Column, ...],
    keys: tuple[str, ...],
    **more: Any,
) -> Table:
    return Table(
        name,
        title,
        make,
        FlatTable(columns),
        keys=keys,
        caption=caption,
        section="sure",
        certain=False,
        runs=partial(printed_rows.is_source_run, name),
        among=partial(printed_rows.drop_unused_baselines, name),
        **more,
    )


def _has_controls(study: Study) -> bool:
    return any(map(is_control, study.plan.runs))


def _lacks_references(study: Study) -> bool:
    return not has_references(study)


def _format_control_name(name: str) -> str:
    return name.replace("_", " ")


TABLES = (
    _declare_table(
        "summary",
        "Comparison of the algorithms",
        "Statistics over all single-source cells of a dataset. A cell is a combination of "
        "source, target, model and algorithm, with the runs of all seeds. Δ is the score minus "
        "the baseline's score with the same model, target and seed, in points. IQM is the "
        "interquartile mean of the deltas. The column “Above 0” is the fraction of deltas above "
        "0. The column “Rank” is the mean rank among the algorithms of the model, where 1 is "
        "best. The column “Pairing” is the correlation over seeds between a run and the baseline "
        "with the same seed. Intervals (95 %) are over seeds, without resampling of test "
        "dialogues, unless the column header says otherwise. The p-value accounts for the "
        "variation between seeds and between dialogues, and q is p adjusted for all rows of the "
        "table. A dash marks a number that cannot be computed, for example from one seed.",
        partial(printed_rows.select_frame, "summary"),
        (
            *_GROUP,
            make_number_column("n_cells", "Cells", ",d"),
            make_number_column("n_seeds", "Seeds", "d"),
            make_number_column("mean", "Mean Δ", "+.2f"),
            make_interval_column(
                "joint_low", "joint_high", "interval, seeds and dialogues", "+.2f", DIFFERENCES
            ),
            make_p_value_column("joint_q", "q"),
            make_interval_column("mean_low", "mean_high", "seeds alone", "+.2f", DIFFERENCES),
            make_number_column("iqm", "IQM of Δ", "+.2f"),
            make_interval_column("iqm_low", "iqm_high", "interval", "+.2f", DIFFERENCES),
            make_number_column("positive", "Above 0", ".2f"),
            make_interval_column("positive_low", "positive_high", "interval", ".2f"),
            make_number_column("rank", "Rank", ".2f"),
            make_interval_column("rank_low", "rank_high", "interval", ".2f"),
            make_number_column("pairing", "Pairing", "+.2f"),
        ),
        ("dataset", "model", "algorithm"),
        nothing="has no pair of tasks",
    ),
    _declare_table(
        "variance",
        "Variance components of delta",
        "Fractions of the deltas' variance that are due to the source, the target, their "
        "combination (interaction) and the seed (noise). A dash marks a component that this study "
        "cannot estimate.",
        printed_rows.list_variance_components,
        (
            *_GROUP,
            *(make_number_column(name, name.replace(" x ", " × "), ".0%") for name in COMPONENTS),
        ),
        ("dataset", "model", "algorithm"),
        needs="deltas of several sources and targets, or of several seeds, that are not all equal",
        nothing="has no pair of tasks",
    ),
    _declare_table(
        "agreement_overall",
        "Agreement of models and of algorithms",
        "Spearman's rank correlation of two transfer matrices, averaged over all comparisons: 1 "
        "means that the same pairs of tasks transfer well, and 0 means that the matrices are "
        "unrelated. For “Disjoint seeds”, the two matrices are computed from different halves of "
        "the seeds, so they share no noise. The column “Attainable” is the correlation to expect "
        "from different halves if both matrices had the same trends. The column “Agreeing” counts "
        "the comparisons whose correlation is above 0 with p ≤ 0.05.",
        printed_rows.list_overall_agreement,
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("between", "Between"),
            make_number_column("correlation", "Mean correlation", ".2f"),
            make_interval_column("lowest", "highest", "lowest to highest", ".2f"),
            make_number_column("disjoint", "Disjoint seeds", ".2f"),
            make_number_column("reliability", "Attainable", ".2f"),
            make_number_column("agreeing", "Agreeing", "d"),
            make_number_column("comparisons", "Comparisons", "d"),
        ),
        ("dataset", "between"),
        nothing="does not have two models or algorithms with comparable results",
    ),
    _declare_table(
        "agreement",
        "Agreement by pair of models or algorithms",
        "Spearman's rank correlation of two transfer matrices, with a 95 % interval (bootstrap "
        "over tasks). The p-value is for the null hypothesis of no agreement, and comes from "
        "permutations of the task labels.",
        partial(printed_rows.select_frame, "agreement"),
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("between", "Between"),
            make_text_column("a", "One", get_algorithm_label),
            make_text_column("b", "Other", get_algorithm_label),
            make_text_column("held", "Both with", get_algorithm_label),
            make_number_column("n_pairs", "Pairs", "d"),
            make_number_column("correlation", "Correlation", ".2f"),
            make_interval_column("low", "high", "interval", ".2f"),
            make_p_value_column("p", "p"),
            make_number_column("disjoint", "Disjoint seeds", ".2f"),
            make_number_column("reliability", "Attainable", ".2f"),
        ),
        ("dataset", "between", "a", "b", "held"),
        folded=True,
        needs=_PAIRS,
        nothing="does not have two models or algorithms with comparable results",
    ),
    _declare_table(
        "asymmetry",
        "Asymmetric pairs of tasks",
        "Pairs of tasks with the largest differences between their two directions, in points. q "
        "is p adjusted for all pairs of the dataset.",
        printed_rows.list_asymmetric_pairs,
        (
            *_GROUP,
            make_text_column("task_a", "A"),
            make_text_column("task_b", "B"),
            make_number_column("a_to_b", "Δ A → B", "+.2f"),
            make_number_column("b_to_a", "Δ B → A", "+.2f"),
            make_number_column("difference", "Difference", "+.2f"),
            make_interval_column("low", "high", "interval", "+.2f", SECOND_DIFFERENCES),
            make_p_value_column("p", "p"),
            make_p_value_column("q", "q"),
        ),
        ("dataset", "model", "algorithm", "task_a", "task_b"),
        notes=partial(printed_rows.describe_omitted_rows, "asymmetry"),
        nothing="has no pair of tasks in both directions",
    ),
    _declare_table(
        "overlap_effect",
        "Does shared data explain transfer?",
        "Spearman's rank correlation between the amount of shared data and the delta, over pairs "
        "of tasks, with a 95 % interval (bootstrap over tasks). The p-value is for the null "
        "hypothesis of no relation, and comes from permutations of the task labels.",
        partial(printed_rows.select_frame, "overlap_effect"),
        (
            *_GROUP,
            make_text_column("basis", "Shared"),
            make_number_column("n_pairs", "Pairs", "d"),
            make_number_column("correlation", "Correlation", ".2f"),
            make_interval_column("low", "high", "interval", ".2f"),
            make_p_value_column("p", "p"),
        ),
        ("dataset", "model", "algorithm", "basis"),
        needs=_PAIRS,
        nothing="has no counts of shared data",
    ),
    _declare_table(
        "overlap",
        "Data shared by tasks",
        "The part of each target's data that the source also contains.",
        printed_rows.list_shared_data,
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("source", "Source"),
            make_text_column("target", "Target"),
            make_text_column("basis", "Shared"),
            make_number_column("shared", "Shared", ",d"),
            make_number_column("of", "Of", ",d"),
            make_number_column("share", "Share", ".0%"),
        ),
        ("dataset", "source", "target", "basis"),
        folded=True,
        notes=partial(printed_rows.describe_omitted_rows, "overlap"),
        nothing="has no counts of shared data",
    ),
    _declare_table(
        "references",
        "Baselines and simple references",
        "Scores on the same test instances, 0-100. References do not train a language model and "
        "are not tuned. Δ is the baseline's mean score over seeds minus the reference's score, "
        "in points, with its 95 % interval over dialogues and seeds. The q values are adjusted "
        "over all rows of a dataset. The table “Methods” adjusts q over the pairs of methods of "
        "one task, so a pair that is in both tables can have two values of q. A baseline has not "
        "learned if its mean score is not above the best reference's score, or if it has "
        "collapsed. A baseline has collapsed if at least half of its runs give the same answer for "
        "99 % of the test split.",
        printed_rows.list_references,
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("model", "Model"),
            make_text_column("target", "Task"),
            make_text_column("reference", "Reference", REFERENCES.__getitem__),
            make_number_column("reference_score", "Reference's score", ".1f"),
            make_text_column("mark", "Best reference"),
            make_number_column("score", "Baseline's score", ".1f"),
            make_number_column("n_seeds", "Seeds", "d"),
            make_number_column("delta", "Δ", "+.1f"),
            make_interval_column("low", "high", "interval", "+.1f", DIFFERENCES),
            make_number_column("q", "q", ".3f"),
            make_text_column("state", "Baseline", STATES.__getitem__),
        ),
        ("dataset", "model", "target", "reference"),
        planned=has_references,
        nothing="has no references",
    ),
    _declare_table(
        "reference",
        "Reference scores",
        "Scores (0-100) of simple predictors: the most frequent training answer, answers sampled "
        "with their training frequencies (mean of 20 samples), and TF-IDF with logistic regression "
        "(not tuned). The column “Baseline” shows the mean score of each model's baselines.",
        printed_rows.list_reference_scores,
        (
            make_text_column("dataset", "Dataset"),
            make_text_column("target", "Task"),
            make_text_column("model", "Model"),
            make_number_column("baseline", "Baseline", ".1f"),
            *(make_number_column(name, label, ".1f") for name, label in COMPUTED_LABELS.items()),
        ),
        ("dataset", "target", "model"),
        planned=_lacks_references,
        nothing="has no reference scores without intervals",
    ),
    _declare_table(
        "top1",
        "Gain of the best source, estimated without selection bias",
        "Mean gains over targets, in points. The top-1 gain of a target is, as in the paper, the "
        "largest mean Δ of its sources, but at least 0. Top-1 is therefore above 0 on average "
        "even if no source has any effect. The column “Chosen on dev” is the Δ of the source "
        "with the best dev scores, with a 95 % interval over seeds, but not test dialogues. For "
        "“Held out”, the source is selected with all seeds but one on one half of the test "
        "dialogues, and its Δ is measured with the held-out seed on the other half. The held-out "
        "Δ is averaged over seeds and halves, and its 95 % interval is over seeds and dialogues.",
        partial(printed_rows.select_frame, "top1"),
        (
            *_GROUP,
            make_number_column("n_targets", "Targets", "d"),
            make_number_column("n_seeds", "Seeds", "d"),
            make_number_column("top1", "Top-1", "+.2f"),
            make_number_column("top1_dev", "Chosen on dev", "+.2f"),
            make_interval_column("top1_dev_low", "top1_dev_high", "interval", "+.2f", DIFFERENCES),
            make_number_column("top1_heldout", "Held out", "+.2f"),
            make_interval_column(
                "top1_heldout_low", "top1_heldout_high", "interval", "+.2f", DIFFERENCES
            ),
        ),
        ("dataset", "model", "algorithm"),
        nothing="has no target with several sources",
    ),
    _declare_table(
        "control_summary",
        "Average differences from each control",
        "Score of the transfer minus score of the control, in points and averaged over pairs of "
        "tasks, with a 95 % interval over seeds and dialogues. The q values are p values adjusted "
        "for multiple comparisons over all rows. The control “longer baseline” is trained on the "
        "target alone for twice the "
        "baseline's updates, which is about the total training length of multitask → fine-tune.",
        printed_rows.list_control_means,
        (
            *_GROUP,
            make_text_column("control", "Control", _format_control_name),
            make_number_column("n_pairs", "Pairs", "d"),
            make_number_column("n_seeds", "Seeds", "d"),
            make_number_column("mean", "Δ", "+.2f"),
            make_interval_column("low", "high", "interval", "+.2f", DIFFERENCES),
            make_number_column("q", "q", ".3f"),
        ),
        ("dataset", "model", "algorithm", "control"),
        planned=_has_controls,
        nothing="has no controls",
    ),
    _declare_table(
        "control_verdicts",
        "Does the source explain the gain?",
        "Number of single-source cells with each verdict. A cell beats all controls if its score "
        "is above the baseline and above each control, each with q ≤ 0.05. A cell is explained "
        "by a control if its score is above the baseline with q ≤ 0.05, and a control gives at "
        "least half of the gain. A control gives at least half of the gain if the 95 % interval "
        "of the cell's difference from the control ends at or below half of the cell's Δ. The "
        "verdict is “hurts” if the score is below the baseline with q ≤ 0.05. A cell is not "
        "judged if it has only one seed, or if a significance test is not possible. The verdict on "
        "all other "
        "cells is “Cannot tell”, including cells for which a control is missing.",
        printed_rows.count_verdicts,
        (
            *_GROUP,
            *(make_number_column(name, name.capitalize(), ".0f") for name in VERDICTS),
        ),
        ("dataset", "model", "algorithm"),
        planned=_has_controls,
        nothing="has no controls",
    ),
    _declare_table(
        "controls",
        "Cells and their controls",
        "Score of the transfer minus score of each control (Δ), in points. For each control, q is "
        "the p-value adjusted for all single-source cells of the dataset.",
        printed_rows.list_controlled_cells,
        (
            *_CELL,
            make_text_column("verdict", "Verdict"),
            *(
                column
                for name in CONTROLS
                for column in (
                    make_number_column(name, f"Δ over {name.replace('_', ' ')}", "+.2f"),
                    make_number_column(f"{name}_q", "q", ".3f"),
                )
            ),
        ),
        ("dataset", "model", "algorithm", "source", "target"),
        folded=True,
        notes=partial(printed_rows.describe_omitted_rows, "controls"),
        planned=_has_controls,
        nothing="has no controls",
    ),
    _declare_table(
        "collapsed",
        "Collapsed runs",
        "Runs that give the same answer for at least 99 % of the test instances. Every number on "
        "this page includes these runs.",
        printed_rows.list_collapsed_runs,
        (
            *_GROUP,
            make_text_column("source", "Source"),
            make_text_column("target", "Target"),
            make_number_column("n_collapsed", "Collapsed", "d"),
            make_number_column("n_runs", "Runs", "d"),
            make_text_column("seeds", "Seeds"),
            make_text_column("answer", "Answer", "“{}”".format),
        ),
        ("dataset", "model", "algorithm", "source", "target"),
        nothing="has no collapsed run",
    ),
)
"""Tables in the order of the page."""
