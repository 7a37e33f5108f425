"""Columns of the study's tables: name, type, meaning."""

from __future__ import annotations

import pyarrow as pa

from tasktransfer.results.store import Columns

_RUN: Columns = (
    ("setting", pa.string(), "retrieval, generation or classifier"),
    ("method", pa.string(), "evaluated method"),
    ("model", pa.string(), "name of the model in the config"),
    ("seed", pa.int64(), "random seed"),
)
_CELL: Columns = (
    ("setting", pa.string(), "retrieval, generation or classifier"),
    ("method", pa.string(), "evaluated method"),
    ("measure", pa.string(), "measure, in its own unit (percent, or a perplexity)"),
    ("pool", pa.string(), "datasets that the candidates come from; empty if there is no pool"),
)
MEASURED: Columns = (
    *_RUN,
    ("measure", pa.string(), "measure, in its own unit (percent, or a perplexity)"),
    ("pool", pa.string(), "datasets that the candidates come from; empty if there is no pool"),
    ("value", pa.float64(), "the measure on the test split"),
    ("instances", pa.int64(), "number of test instances"),
    ("record", pa.string(), "path of the evaluation's record, relative to the results folder"),
    ("constant", pa.bool_(), "true if at least 99 % of the answers are identical"),
)
ROWS: Columns = (
    *_RUN,
    ("measure", pa.string(), "measure that is computed from the tally"),
    ("pool", pa.string(), "datasets that the candidates come from; empty if there is no pool"),
    ("dialogue", pa.string(), "dialogue ID; dialogues are resampled as clusters"),
    ("instance", pa.string(), "instance ID"),
    ("emotion", pa.string(), "emotion of the dialogue"),
    ("chosen_from", pa.string(), "dataset of the retrieved reply; empty if none was retrieved"),
    ("tally", pa.list_(pa.float64()), "the instance's contribution to the measure's sums"),
)
COSTS: Columns = (
    *_RUN,
    (
        "parameters",
        pa.int64(),
        "number of parameters, including fixed positions for retrieval only; 0 if unknown",
    ),
    ("hours", pa.float64(), "wall time of the method's last training, hours"),
    ("all_hours", pa.float64(), "wall time of all trainings of the method, hours"),
    ("hardware", pa.string(), "GPU, or CPU with its number of threads"),
    ("examples", pa.int64(), "number of training instances of the last training"),
)
LABELS: Columns = (
    ("label", pa.string(), "emotion"),
    ("dialogues", pa.int64(), "number of dialogues with this emotion, all splits"),
    ("percent", pa.float64(), "percentage of all dialogues"),
)
SHARED: Columns = (
    ("what", pa.string(), "a situation in several splits, or test utterances found in training"),
    ("text", pa.string(), "the situation in lower case; empty for utterances"),
    ("splits", pa.string(), "splits that share the texts"),
    ("count", pa.int64(), "number of shared texts"),
    ("of", pa.int64(), "total number of dialogues, or of distinct test utterances"),
)
SUMMARY: Columns = (
    *_CELL,
    ("seeds", pa.int64(), "number of seeds; 1 for a model that is evaluated as released"),
    ("value", pa.float64(), "mean over seeds (geometric mean for perplexities)"),
    ("low", pa.float64(), "lower end of the 95 % interval over dialogues and, if several, seeds"),
    ("high", pa.float64(), "upper end of the interval"),
    ("dialogues", pa.int64(), "number of dialogues, which are resampled as clusters"),
)
DIFFERENCES: Columns = (
    *_CELL,
    ("seeds", pa.int64(), "number of seeds that both methods have"),
    (
        "difference",
        pa.float64(),
        "method - Base, mean over seeds; log perplexities (nats) for perplexity",
    ),
    ("low", pa.float64(), "lower end of the 95 % interval over dialogues and seeds"),
    ("high", pa.float64(), "upper end of the interval"),
    ("p", pa.float64(), "two-sided p-value of the null hypothesis of no difference"),
    (
        "q",
        pa.float64(),
        "p after false-discovery control over all methods; null for controls and one seed",
    ),
    ("comparable", pa.bool_(), "false if the method is given the gold label"),
)
BY_EMOTION: Columns = (
    ("method", pa.string(), "evaluated method"),
    ("emotion", pa.string(), "emotion of the dialogue"),
    ("p_at_1", pa.float64(), "P@1 of its instances, mean over seeds, percent"),
    ("instances", pa.int64(), "number of instances per seed"),
)
POOLS_CHOSEN: Columns = (
    ("method", pa.string(), "evaluated method"),
    ("pool", pa.string(), "pool of candidates"),
    ("chosen_from", pa.string(), "dataset of the retrieved replies"),
    ("percent", pa.float64(), "percentage of retrieved replies from it, mean over seeds"),
)
TABLES = {
    "measured": MEASURED,
    "rows": ROWS,
    "costs": COSTS,
    "labels": LABELS,
    "shared": SHARED,
}
STATISTICS = {
    "summary": SUMMARY,
    "differences": DIFFERENCES,
    "by_emotion": BY_EMOTION,
    "pools_chosen": POOLS_CHOSEN,
}
