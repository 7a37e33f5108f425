"""The columns of the study's tables, once each: name, type, meaning."""

from __future__ import annotations

import pyarrow as pa

from tasktransfer.tables.store import Columns

_RUN: Columns = (
    ("setting", pa.string(), "retrieval, generation or classifier"),
    ("method", pa.string(), "what is judged"),
    ("model", pa.string(), "model, as the study names it"),
    ("seed", pa.int64(), "random seed"),
)
_CELL: Columns = (
    ("setting", pa.string(), "retrieval, generation or classifier"),
    ("method", pa.string(), "what is judged"),
    ("measure", pa.string(), "measure, in its own unit (percent, or a perplexity)"),
    ("pool", pa.string(), "where candidates are from; empty: no pool"),
)
MEASURED: Columns = (
    *_RUN,
    ("measure", pa.string(), "measure, in its own unit (percent, or a perplexity)"),
    ("pool", pa.string(), "where candidates are from; empty: no pool"),
    ("value", pa.float64(), "the measure on the test split"),
    ("instances", pa.int64(), "test instances"),
    ("record", pa.string(), "the evaluation's record, relative to the results folder"),
    ("constant", pa.bool_(), "whether 99 % of the answers or more are one and the same"),
)
ROWS: Columns = (
    *_RUN,
    ("measure", pa.string(), "measure that is made of the tally"),
    ("pool", pa.string(), "where candidates are from; empty: no pool"),
    ("dialogue", pa.string(), "dialogue, which is resampled whole"),
    ("instance", pa.string(), "instance"),
    ("emotion", pa.string(), "emotion of the dialogue"),
    ("chosen_from", pa.string(), "dataset of the retrieved reply; empty: none was retrieved"),
    ("tally", pa.list_(pa.float64()), "what the instance adds to the measure's sums"),
)
COSTS: Columns = (
    *_RUN,
    ("parameters", pa.int64(), "parameters, positions of retrieval counted; 0: not counted"),
    ("hours", pa.float64(), "wall time of the method's last training, hours"),
    ("all_hours", pa.float64(), "the same with all trainings before it, hours"),
    ("hardware", pa.string(), "GPU, or CPU with threads"),
    ("examples", pa.int64(), "training instances of the last training"),
)
LABELS: Columns = (
    ("label", pa.string(), "emotion"),
    ("dialogues", pa.int64(), "dialogues with it, all splits"),
    ("percent", pa.float64(), "share of all dialogues, percent"),
)
SHARED: Columns = (
    ("what", pa.string(), "situation in several splits, or utterances of test that training has"),
    ("text", pa.string(), "the situation, without its case"),
    ("splits", pa.string(), "where it is"),
    ("count", pa.int64(), "how many"),
    ("of", pa.int64(), "of how many"),
)
SUMMARY: Columns = (
    *_CELL,
    ("seeds", pa.int64(), "seeds; 1 of a model that is judged as it was released"),
    ("value", pa.float64(), "mean over seeds, of perplexities the geometric one"),
    ("low", pa.float64(), "lower end of the 95 % interval over dialogues and, if several, seeds"),
    ("high", pa.float64(), "upper end"),
    ("dialogues", pa.int64(), "dialogues that are resampled whole"),
)
DIFFERENCES: Columns = (
    *_CELL,
    ("seeds", pa.int64(), "seeds that both have"),
    ("difference", pa.float64(), "method - Base, mean over seeds; of perplexities in nats"),
    ("low", pa.float64(), "lower end of the 95 % interval over dialogues and seeds"),
    ("high", pa.float64(), "upper end"),
    ("p", pa.float64(), "two-sided p of no difference"),
    (
        "q",
        pa.float64(),
        "p after control of false discoveries over all methods; null: a control, or one seed",
    ),
    ("comparable", pa.bool_(), "false: the method is told what the others must find out"),
)
BY_EMOTION: Columns = (
    ("method", pa.string(), "what is judged"),
    ("emotion", pa.string(), "emotion of the dialogue"),
    ("p_at_1", pa.float64(), "P@1 of its instances, mean over seeds, percent"),
    ("instances", pa.int64(), "instances of each seed"),
)
POOLS_CHOSEN: Columns = (
    ("method", pa.string(), "what is judged"),
    ("pool", pa.string(), "the pool that is offered"),
    ("chosen_from", pa.string(), "dataset of the retrieved replies"),
    ("percent", pa.float64(), "share of them, mean over seeds, percent"),
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
