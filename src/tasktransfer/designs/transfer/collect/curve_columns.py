"""Columns of the frame of learning curves."""

from __future__ import annotations

from tasktransfer.results.frames import NUMBER, TEXT, WHOLE, Columns

CURVES: Columns = (
    ("dataset", TEXT, "dataset"),
    ("model", TEXT, "model, by its name in the study"),
    ("algorithm", TEXT, "baseline, or the transfer algorithm"),
    ("source", TEXT, "source tasks joined by +; empty for a baseline"),
    ("target", TEXT, "target task"),
    ("seed", WHOLE, "random seed"),
    ("round", WHOLE, "round of the last stage, from 1; 0: the untrained model"),
    ("loss", NUMBER, "mean training loss of the target in the round; NaN: not trained on it"),
    ("dev_score", NUMBER, "score on the dev set that selects the best round, 0-100"),
)
