"""Columns of tables about methods without transfer: prompted models, references, single labels.

Each column has a name, a type and a meaning, as in ``columns``.
"""

from __future__ import annotations

from tasktransfer.results.frames import FLAG, NUMBER, TEXT, TEXTS, WHOLE, WHOLES, Columns

SCORED, WRITTEN = "log-likelihood", "written"
"""Ways of answering of a prompted model: log-likelihoods of the choices, or generated text."""
MEAN = ""
"""Value of ``target`` in the row of a dataset's mean."""

PROMPTED: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("shots", WHOLE, "few-shot examples in each prompt"),
    ("target", TEXT, "evaluated task; empty in the row with the mean over the dataset's tasks"),
    ("score", NUMBER, "score on the test split, mean over prompt wordings and seeds, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("wordings", WHOLE, "number of prompt wordings"),
    (
        "spread",
        NUMBER,
        "best minus worst wording, points; averaged over tasks in the row of a mean",
    ),
    ("n_seeds", WHOLE, "seeds for sampling shots; 1 without shots"),
    ("n_targets", WHOLE, "number of tasks"),
    ("n_expected", WHOLE, "planned tasks"),
    ("instances", WHOLE, "test instances per wording and seed"),
    ("dialogues", WHOLE, "dialogues of these instances"),
    (
        "answers",
        TEXT,
        f"{SCORED}: choices were scored; {WRITTEN}: answers were generated, because the task has "
        "spans or the endpoint returns no log-likelihoods; a mean may have both",
    ),
    (
        "unreadable",
        NUMBER,
        "answers that match no choice or cannot be parsed, %; they count as wrong",
    ),
    ("tokens", WHOLE, "prompt and generated tokens over all wordings and seeds"),
    (
        "seen",
        TEXT,
        "whether the model saw the test dialogues in its training, according to the config",
    ),
    ("n_seeds_planned", WHOLE, "planned seeds for sampling shots; 1 without shots"),
)
"""Columns of the additional table of ``statistics`` for prompted models."""

REFERENCES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model of the baselines, by its name in the study"),
    ("target", TEXT, "task that is predicted"),
    (
        "reference",
        TEXT,
        "simple predictor, by its name in the config",
    ),
    ("reference_score", NUMBER, "score of the reference on the test split, 0-100"),
    ("is_best", FLAG, "whether its score is the highest of the target's references"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed"),
    ("score", NUMBER, "score of the baselines, mean over seeds, 0-100"),
    ("delta", NUMBER, "score minus reference_score on the same instances, points"),
    ("low", NUMBER, "lower end of the delta's 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of a delta of 0"),
    ("q", NUMBER, "p adjusted for all rows of the dataset; null with one seed"),
    (
        "state",
        TEXT,
        "learned: above all references; not better: at most the best of them; collapsed: at least "
        "half of the baselines give one answer to 99 % of the test split",
    ),
    ("seeds", WHOLES, "seeds of the baselines"),
    ("states", TEXTS, "state of the baseline with each seed"),
)
"""Columns of the additional table of ``statistics`` for studies with references."""

_LABELLED: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study; no model: the method reads none"),
    ("target", TEXT, "task with one label per input"),
    ("method", TEXT, "baseline, or a reference by its name in the config"),
)
LABELS: Columns = (
    *_LABELLED,
    ("label", TEXT, "label"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
    ("support", WHOLE, "test instances with the label"),
    ("predicted", NUMBER, "test instances with this predicted label, mean over seeds"),
    *(
        column
        for measure, reason in (
            ("precision", "no seed predicts the label"),
            ("recall", "no instance has the label"),
            ("f1", "unavailable"),
        )
        for column in (
            (
                measure,
                NUMBER,
                f"{measure} on the test split, mean over seeds, 0-100; NaN if {reason}",
            ),
            (f"{measure}_low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
            (f"{measure}_high", NUMBER, "upper end; NaN if unavailable"),
        )
    ),
)
CONFUSIONS: Columns = (
    *_LABELLED,
    ("gold", TEXT, "gold label"),
    ("predicted", TEXT, "predicted label; empty if the answer is not a label"),
    ("count", WHOLE, "test instances with both, summed over seeds"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
)
"""Columns of the frames about single labels. Pairs of labels that never occur have no row."""
ERRORS: Columns = (
    *_LABELLED,
    ("instance", TEXT, "test instance: file and line of the user's data"),
    ("gold", TEXT, "gold label"),
    ("predicted", TEXT, "most frequent label over seeds; empty if the answer is not a label"),
    ("wrong", WHOLE, "seeds with a wrong prediction"),
    ("n_seeds", WHOLE, "baselines with predictions, one per seed; 1: a reference"),
)
"""Columns of the frame ``errors``: all methods on each instance that any of them gets wrong."""

LEARNING_CURVE: Columns = (
    *_LABELLED,
    ("fraction", NUMBER, "fraction of the training dialogues; 2: forecast for twice as many"),
    ("dialogues", WHOLE, "training dialogues"),
    ("instances", WHOLE, "training instances, mean over samples"),
    ("n_seeds", WHOLE, "samples of dialogues, each within the next larger one; 0: forecast"),
    ("score", NUMBER, "score on the test split, mean over samples, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over samples and test dialogues"),
    ("high", NUMBER, "upper end"),
    ("gain", NUMBER, "score minus the score of the previous fraction (2: of 1), points"),
    ("gain_low", NUMBER, "lower end of its 95 % interval, paired by sample and test dialogue"),
    ("gain_high", NUMBER, "upper end; for 2, the interval covers several rules (`learning-curve`)"),
)
"""Columns of the table that `learning-curve` computes from the dialogues."""

REFERENCE: Columns = (
    ("dataset", TEXT, "dataset"),
    ("target", TEXT, "task that is scored"),
    ("reference", TEXT, "most_frequent, by_frequency or tfidf_logistic"),
    (
        "score",
        NUMBER,
        "score on the task's test split, 0-100; for by_frequency the mean of 20 samples",
    ),
    ("deviation", NUMBER, "standard deviation of the score over samples; 0: no sampling"),
    ("answer", TEXT, "the constant answer of most_frequent; empty for other references"),
    ("train_size", WHOLE, "number of training instances"),
    ("test_size", WHOLE, "test instances"),
    ("data_revision", TEXT, "content digest of the data"),
    ("few_sample", FLAG, "few-sample split"),
    ("synthetic", FLAG, "tiny world, not real dialogues"),
)
"""Columns of the table that `data reference` computes from the dialogues."""
