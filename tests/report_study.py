"""The study whose report the tests open in a browser: constructed results of two datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from report_results import Asked, RunName, make_results
from tasktransfer.designs.transfer.frames import CURVES, PROMPTED
from tasktransfer.results.common_frames import ROUNDS
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

A, B, C, D = "emotion_recognition", "dialogue_nli", "topic_classification", "dialogue_acts"
E, F = "question_answering", "relation_extraction"
NASTY = "</script><img src=x onerror='window.injected = 1'>"
MODELS = ("bert", NASTY)
ALGORITHMS = ("pretrain_finetune", "multitask")
ARGUMENTS = "--config study.yaml"
CURVE = [(2.0, 10.0), (0.5, 30.0), (np.nan, 20.0)]
"""Loss and dev score by round of each run of one cell, and of its baselines."""


def find_lost_run(run: RunName) -> tuple[str, str] | None:
    """Return the state and the reason of a run without a result, and None for other runs."""
    dataset, model, algorithm, sources, target, seed = run
    if (dataset, model, algorithm, target) != ("DailyDialog", "bert", "multitask", B):
        return None
    if sources == (A,):
        return "failed", f"failed: loss is not a number {NASTY}"
    return ("running", "running") if sources == (C,) and seed == 1 else None


ASKED = Asked(
    tasks={"DailyDialog": (A, B, C, D), "Friends": (E, F)},
    models=MODELS,
    algorithms=ALGORITHMS,
    several=[("DailyDialog", (A, B), C)],
    lost=find_lost_run,
    synthetic=True,
    shorts={A: "ER", B: "DNLI", C: "TC"},
)


def make_report_results() -> Frames:
    """Return the study's frames, with prompted models, learning curves and rounds."""
    # Prompted runs, for two of three tasks.
    scores = [("smol", 0, A, 11.0), ("smol", 4, A, 22.0), ("smol", 4, B, 33.0)]
    prompted = [
        ("DailyDialog", model, shots, target, score, *[np.nan] * 2, 2, 1.0, 1, 1, 1, 9, 9,
         "written", 0.0, 5, "unknown", 1)
        for model, shots, target, score in scores
    ]  # fmt: skip
    made = make_results(ASKED)
    curves = [
        (*("DailyDialog", "bert", algorithm, source, C, seed), round_, *values)
        for algorithm, source in (("pretrain_finetune", A), ("baseline", ""))
        for seed in (0, 1)
        for round_, values in enumerate(CURVE, 1)
    ]
    return made.replace(
        {
            "prompted": build_frame(prompted, PROMPTED),
            "training_curves": build_frame(curves, CURVES),
            "training_rounds": build_frame(list_rounds(), ROUNDS),
        }
    )


def list_rounds() -> Iterator[tuple[Any, ...]]:
    """Yield the rounds of fifteen trainings of two seeds; round 1 is selected."""
    for number in range(15):
        label, seed = f"T{number}", number % 2
        path = f"stages/baseline/DailyDialog/bert/{label}/seed{seed}-ab"
        for round_, (loss, score) in enumerate([(None, 10.0), (0.7, 30.0), (0.4, 20.0)]):
            yield label, "bert", seed, path, round_, loss, score, round_ == 1
