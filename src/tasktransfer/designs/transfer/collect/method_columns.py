"""Columns of the frame ``methods``."""

from __future__ import annotations

from tasktransfer.results.frames import FLAG, NUMBER, TEXT, WHOLE, Columns

METHODS: Columns = (
    ("dataset", TEXT, "dataset"),
    ("target", TEXT, "task that is predicted"),
    ("method", TEXT, "method, by its name in `core.methods`"),
    ("model", TEXT, "model, by its name in the study; null: the method reads no model"),
    (
        "variant",
        TEXT,
        "transfer: algorithm and source, as in `pretrain_finetune:CRE`; prompted: number of shots; "
        "null for other methods",
    ),
    ("n_seeds", WHOLE, "seeds; 1 if nothing is sampled"),
    ("score", NUMBER, "score on the test split, mean over seeds, 0-100"),
    ("low", NUMBER, "lower end of its 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end"),
    ("is_best", FLAG, "whether its score is the highest of the target"),
    (
        "best_q",
        NUMBER,
        "q of its difference from the best method, adjusted for all pairs of the target's "
        "methods; null: not tested, because one has a single seed or other test instances",
    ),
    (
        "recommended",
        FLAG,
        "the simplest method that is not significantly worse than the best (q > 0.05)",
    ),
    ("delta", NUMBER, "score minus that of the recommended method, in pairs, points"),
    ("delta_low", NUMBER, "lower end of the delta's 95 % interval over dialogues and seeds"),
    ("delta_high", NUMBER, "upper end"),
    ("q", NUMBER, "p of a delta of 0, adjusted for all pairs of the target's methods"),
    ("train_size", WHOLE, "training instances of the target; 0 for a prompted model"),
    (
        "seconds",
        NUMBER,
        "wall time to train with one seed, with dev evaluation and the training on the source; for "
        "a reference its whole job, divided among its tasks by instances; 0 for a prompted model",
    ),
    (
        "milliseconds",
        NUMBER,
        "wall time per test instance of the test phase or of a prompted evaluation; null: the "
        "records do not have it",
    ),
    ("parameters", WHOLE, "parameters of the model with its heads; null: unknown"),
    ("trained_parameters", WHOLE, "parameters that are trained; null: unknown"),
)
"""Columns of the frame for targets with references or prompted models."""
