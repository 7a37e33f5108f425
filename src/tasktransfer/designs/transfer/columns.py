"""Columns of every table: name, type and meaning, which are also in the Parquet files' footers.

Scores are 0-100; a delta is a difference of two scores; an improvement is a percentage of the
baseline's score.
"""

from __future__ import annotations

from tasktransfer.results.frames import FLAG, NUMBER, TEXT, TEXTS, WHOLE, WHOLES, Column, Columns

_RUN: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "baseline, or the transfer algorithm"),
    ("sources", TEXTS, "source tasks, sorted; empty for a baseline"),
    ("source", TEXT, "source tasks joined by +; empty for a baseline"),
    ("n_sources", WHOLE, "number of source tasks"),
    ("target", TEXT, "target task"),
    ("seed", WHOLE, "random seed"),
)
_DIGEST: Column = ("digest", TEXT, "digest of the evaluated stage")

RUNS: Columns = (
    *_RUN,
    ("family", TEXT, "encoder, decoder or encoder_decoder"),
    ("score", NUMBER, "score on the target's test split, 0-100"),
    ("dev_score", NUMBER, "selection score of the best epoch, 0-100"),
    ("best_epoch", WHOLE, "epoch with the best selection score, from 1"),
    ("epochs", WHOLE, "epochs trained"),
    ("train_size", WHOLE, "training instances of the target"),
    ("dev_size", WHOLE, "dev instances of the target"),
    ("test_size", WHOLE, "test instances of the target"),
    _DIGEST,
    (
        "parent",
        TEXT,
        "digest of the stage that training started from; null for a pretrained model",
    ),
    ("path", TEXT, "the run's record, relative to the results folder"),
    ("has_predictions", FLAG, "whether a predictions file was written next to the record"),
    ("seconds", NUMBER, "wall time of the last stage, all phases, seconds"),
    ("tokens", WHOLE, "tokens processed in training by the last stage"),
    ("samples_per_second", NUMBER, "training instances per second"),
    ("peak_memory_mb", NUMBER, "peak resident memory, MiB"),
    ("peak_gpu_memory_mb", NUMBER, "peak GPU memory, MiB; null without a GPU"),
    ("commit", TEXT, "git commit of the code; null if unknown"),
    ("recipe", WHOLE, "version of the training computation"),
    ("data_revision", TEXT, "content digest of the data"),
    ("synthetic", FLAG, "whether the dialogues are synthetic (tiny world)"),
    ("few_sample", FLAG, "whether the few-sample split was used"),
    ("weights", TEXT, "the model's initial weights (`<hub name>@<revision>`, or a digest)"),
    ("fidelity", TEXT, "scoring rules: default, or tlidb (as in the paper's toolkit)"),
    (
        "predictions",
        TEXT,
        "predictions file, relative to the results folder; null if there is none",
    ),
    ("predictions_rows", WHOLE, "number of rows in the predictions file"),
    ("predictions_sha256", TEXT, "SHA-256 of the predictions file"),
    (
        "test_set",
        TEXT,
        "digest of the target's test set: ids and gold answers; null if there is none",
    ),
)
DELTAS: Columns = (
    *_RUN,
    ("score", NUMBER, "score of the transfer run, 0-100"),
    ("baseline_score", NUMBER, "score of the baseline of the same model, target and seed"),
    ("delta", NUMBER, "score - baseline_score; NaN if the baseline is missing"),
    ("improvement", NUMBER, "100 * delta / baseline_score, %; NaN if the baseline is missing or 0"),
    _DIGEST,
    ("baseline_digest", TEXT, "digest of the baseline's stage; null if it is missing"),
)
SIZES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("task", TEXT, "task"),
    ("train", WHOLE, "training instances"),
    ("dev", WHOLE, "dev instances"),
    ("test", WHOLE, "test instances"),
)
MISSING: Columns = (
    *_RUN,
    ("path", TEXT, "expected path of its record, relative to the results folder"),
    ("reason", TEXT, "reason why the run has no score, in one line"),
    ("state", TEXT, "waiting, running, failed, interrupted, damaged or baseline missing"),
    ("stage", TEXT, "folder of its first unfinished stage; null if unknown"),
    ("error", TEXT, "last line of the error, or the damage; null if there is none"),
)

_GROUP: Columns = _RUN[:3]
_CELL: Columns = (*_RUN[:7],)

CELL_STATISTICS: Columns = (
    *_CELL,
    ("n_seeds", WHOLE, "seeds with both the transfer run and its baseline"),
    ("seeds", WHOLES, "these seeds in ascending order"),
    (
        "n_baselines",
        WHOLE,
        "baselines in the comparison: with these seeds and the extra `baseline_seeds`",
    ),
    ("score", NUMBER, "mean over seeds of the transfer runs' scores, 0-100"),
    ("baseline_score", NUMBER, "mean score of those baselines, 0-100"),
    ("delta", NUMBER, "score - baseline score, points"),
    ("improvement", NUMBER, "100 * delta / baseline_score, %; NaN if the baseline is 0"),
    ("instances", WHOLE, "test instances; 0: no predictions, seeds only"),
    ("dialogues", WHOLE, "dialogues of these instances; 0: unknown, or no predictions"),
    ("resampled_by", TEXT, "resampled unit: dialogue or instance; empty if neither"),
    (
        "standard_error",
        NUMBER,
        "standard error of delta over seeds and dialogues; with 1 seed over dialogues alone",
    ),
    (
        "test_error",
        NUMBER,
        "part of the standard error from the test dialogues; NaN if unavailable",
    ),
    ("test_degrees", NUMBER, "degrees of freedom of `test_error`; NaN without predictions"),
    ("degrees", NUMBER, "degrees of freedom of the interval's t distribution"),
    ("low", NUMBER, "lower end of the 95 % interval of delta; NaN if unavailable"),
    ("high", NUMBER, "upper end of the 95 % interval of delta"),
    ("p", NUMBER, "two-sided p of delta = 0, paired by seed and dialogue; NaN if not tested"),
    ("no_interval", TEXT, "why there is no interval; null if there is one"),
    ("q", NUMBER, "p adjusted for the dataset's heatmap (Benjamini-Hochberg); NaN with one seed"),
    ("significant", FLAG, "q <= 0.05 with several seeds"),
    ("inputs", TEXT, "digest of all inputs of this row"),
)
"""Columns of a cell's scores and statistics, in comparison with baselines or controls."""
CELLS: Columns = (
    *CELL_STATISTICS,
    (
        "baseline_state",
        TEXT,
        "state of the target's baselines in `references`; null if the target has no references",
    ),
)
SUMMARY: Columns = (
    *_GROUP,
    ("n_cells", WHOLE, "number of single-source cells"),
    ("n_seeds", WHOLE, "number of seeds"),
    ("mean", NUMBER, "mean over cells of the mean delta over seeds, points (as in Table 2)"),
    ("mean_low", NUMBER, "lower end of its 95 % interval over seeds alone; NaN with one seed"),
    ("mean_high", NUMBER, "upper end"),
    (
        "joint_low",
        NUMBER,
        "lower end of the mean's 95 % interval over seeds and dialogues; NaN if unavailable",
    ),
    ("joint_high", NUMBER, "upper end"),
    ("iqm", NUMBER, "interquartile mean of the deltas of all cells and seeds, points"),
    ("iqm_low", NUMBER, "lower end of its 95 % interval; NaN with one seed"),
    ("iqm_high", NUMBER, "upper end"),
    ("positive", NUMBER, "fraction of deltas above 0; a delta of 0 counts half"),
    ("positive_low", NUMBER, "lower end of its 95 % interval; NaN with one seed"),
    ("positive_high", NUMBER, "upper end"),
    ("rank", NUMBER, "mean rank of its cells among the model's algorithms, 1 is best"),
    ("rank_low", NUMBER, "lower end of its 95 % interval; NaN with one seed"),
    ("rank_high", NUMBER, "upper end"),
    ("rank_cells", WHOLE, "ranked cells: those that all algorithms of the model have"),
    (
        "pairing",
        NUMBER,
        "correlation over seeds between run and baseline of the same seed; NaN with one seed",
    ),
    ("joint_p", NUMBER, "two-sided p of mean delta = 0, over seeds and dialogues"),
    ("joint_q", NUMBER, "joint_p adjusted for all rows (false-discovery control)"),
)
COMPONENTS = ("source", "target", "source x target", "seed")
"""Components of the variance of the deltas."""

VARIANCE: Columns = (
    *_GROUP,
    ("component", TEXT, "cause of the variance: source, target, source x target, or seed"),
    ("variance", NUMBER, "component of delta's variance, squared points; NaN if unknown"),
    ("share", NUMBER, "fraction of the sum of the components, 0-1; NaN if unknown"),
)
ASYMMETRY: Columns = (
    *_GROUP,
    ("task_a", TEXT, "first task of the pair"),
    ("task_b", TEXT, "second task, later in the study's order"),
    ("a_to_b", NUMBER, "delta of task_a as the source of task_b, points"),
    ("b_to_a", NUMBER, "delta of task_b as the source of task_a, points"),
    ("difference", NUMBER, "a_to_b - b_to_a, points"),
    ("n_seeds", WHOLE, "seeds that both directions have"),
    ("low", NUMBER, "lower end of the 95 % interval of difference; NaN if unavailable"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of difference = 0; NaN if not tested"),
    ("q", NUMBER, "p adjusted for the dataset's pairs (Benjamini-Hochberg); NaN if not tested"),
)
AGREEMENT: Columns = (
    ("dataset", TEXT, "dataset"),
    ("between", TEXT, "what is compared: two models or two algorithms"),
    ("held", TEXT, "the algorithm (or model) that both matrices share"),
    ("a", TEXT, "first model (or algorithm)"),
    ("b", TEXT, "second model (or algorithm)"),
    ("n_pairs", WHOLE, "source-target pairs that both have"),
    ("correlation", NUMBER, "Spearman's rank correlation of the two transfer matrices"),
    ("low", NUMBER, "lower end of its 95 % interval (bootstrap over tasks)"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of no agreement (task labels permuted)"),
    (
        "disjoint",
        NUMBER,
        "correlation of `a` on half of the seeds with `b` on the other half",
    ),
    ("reliability", NUMBER, "expected value of `disjoint` if both had the same trends"),
)
OVERLAP: Columns = (
    ("dataset", TEXT, "dataset"),
    ("source", TEXT, "source task"),
    ("target", TEXT, "target task"),
    ("basis", TEXT, "what is counted: `test instances` or `training dialogues`"),
    (
        "shared",
        WHOLE,
        "test instances or training dialogues of the target that the source also contains",
    ),
    ("of", WHOLE, "test instances or training dialogues of the target"),
    ("share", NUMBER, "shared / of, 0-1"),
)
OVERLAP_EFFECT: Columns = (
    *_GROUP,
    ("basis", TEXT, "as in overlap"),
    ("n_pairs", WHOLE, "source-target pairs"),
    ("correlation", NUMBER, "Spearman's rank correlation of share and delta over pairs"),
    ("low", NUMBER, "lower end of its 95 % interval (bootstrap over tasks)"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of no relation (task labels permuted)"),
)

CONTROL_CELLS: Columns = (
    (
        "control",
        TEXT,
        "self_transfer, longer_baseline or shuffled_source; it replaces the baseline",
    ),
    *CELL_STATISTICS,
)
CONTROLS: Columns = (
    *_CELL,
    ("control", TEXT, "self_transfer, longer_baseline or shuffled_source"),
    ("n_seeds", WHOLE, "seeds with both the transfer run and the control's"),
    (
        "control_score",
        NUMBER,
        "mean over seeds of the control's scores, 0-100; NaN if it has not run",
    ),
    ("control_delta", NUMBER, "control_score - baseline score, points"),
    ("delta", NUMBER, "score of the transfer - control_score, points"),
    ("low", NUMBER, "lower end of the 95 % interval of delta; NaN if unavailable"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of delta = 0; NaN if not tested"),
    ("q", NUMBER, "p adjusted for the dataset's cells over this control; NaN if not tested"),
    (
        "verdict",
        TEXT,
        "verdict on the cell: beats all controls, explained by a control, hurts, cannot tell, not "
        "judged",
    ),
)
TOP1: Columns = (
    *_GROUP,
    ("n_targets", WHOLE, "number of targets"),
    ("n_pairs", WHOLE, "candidate pairs: those with all seeds"),
    ("n_seeds", WHOLE, "number of seeds"),
    ("top1", NUMBER, "top-1 as in the paper: per target the best mean delta, at least 0"),
    ("top1_dev", NUMBER, "delta of the source with the best dev score; 0 for the baseline"),
    ("top1_dev_low", NUMBER, "lower end of its 95 % interval; NaN if unavailable"),
    ("top1_dev_high", NUMBER, "upper end"),
    (
        "top1_heldout",
        NUMBER,
        "delta of the source that is best for other seeds and dialogues",
    ),
    ("top1_heldout_low", NUMBER, "lower end of its 95 % interval; NaN if unavailable"),
    ("top1_heldout_high", NUMBER, "upper end"),
)
COLLAPSED: Columns = (
    *_CELL,
    ("n_runs", WHOLE, "runs with predictions, one per seed"),
    (
        "n_collapsed",
        WHOLE,
        "runs with the same answer (or similar ratings) for 99 % of the test set",
    ),
    ("seeds", WHOLES, "seeds of the collapsed runs"),
    ("answer", TEXT, "answer of the first collapsed run; null if no run collapsed"),
    ("share", NUMBER, "largest fraction of one answer in a run of the cell, 0-1"),
    ("inputs", TEXT, "digest of the predictions of this row"),
)

CONTROL_SUMMARY: Columns = (
    *_GROUP,
    ("control", TEXT, "self_transfer, longer_baseline or shuffled_source"),
    ("n_pairs", WHOLE, "source-target pairs with a run of the control"),
    ("n_seeds", WHOLE, "seeds with both the transfer run and the control's"),
    ("mean", NUMBER, "score of the transfer - score of the control, mean over pairs, points"),
    ("low", NUMBER, "lower end of its 95 % interval over seeds and dialogues; NaN with one seed"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of a mean of 0; NaN if not tested"),
    ("q", NUMBER, "p adjusted for all rows (false-discovery control)"),
)
"""Columns of the additional table of ``statistics`` for studies with controls."""

RACE: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "transfer algorithm"),
    ("source", TEXT, "source task"),
    ("target", TEXT, "target task"),
    (
        "left_after",
        WHOLE,
        "round after which the pair left the race; null if it reached the last round",
    ),
    ("chosen_by", WHOLES, "seeds whose dev scores decided whether the pair continues"),
    ("fresh", WHOLES, "seeds that were trained after the last selection; empty if there are none"),
    (
        "delta_chosen",
        NUMBER,
        "mean test delta over the seeds in chosen_by; biased upwards for pairs that continue",
    ),
    (
        "delta_fresh",
        NUMBER,
        "mean test delta over the seeds in fresh, which is unbiased; NaN if there are none",
    ),
)
"""Columns of the frame for studies whose pairs race."""

MIXING: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "transfer algorithm"),
    ("target", TEXT, "target task"),
    ("seed", WHOLE, "seed"),
    ("round", WHOLE, "round of the training, from 1"),
    ("source", TEXT, "one of the sources"),
    ("weight", NUMBER, "mean sampling probability of the source over the round's updates"),
)
"""Columns of the frame for studies in which a bandit mixes sources."""


def describe_cells() -> dict[str, str]:
    """Return the meanings of the columns of the frame ``cells``."""
    return {name: meaning for name, _, meaning in CELLS}
