"""Results of a study with three targets whose baselines have, or have not, learned their tasks."""

from __future__ import annotations

import pandas as pd

from report_results import Asked, make_results
from tasktransfer.results.frames import Frames

A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"
RESULTS = make_results(Asked({"DailyDialog": (A, B, C)}, models=("bert",)))


def compare(*states: tuple[str, float, str]) -> pd.DataFrame:
    """Return a comparison of baselines with a reference of 40: target, score and state."""
    frame = pd.DataFrame(states, columns=["target", "score", "state"])
    return frame.assign(
        dataset="D", model="m", reference="most_frequent", reference_score=40.0, is_best=True, q=0.2
    )


def with_states(a: str, b: str, c: str) -> Frames:
    """Return the results with these states of the baselines, each with a score of 30."""
    states = compare(*((task, 30.0, state) for task, state in ((A, a), (B, b), (C, c))))
    ends = {"delta": -10.0, "low": -15.0, "high": -5.0}
    return RESULTS.replace(
        {"references": states.assign(dataset="DailyDialog", model="bert", **ends)}
    )


UNLEARNED = with_states("not better", "not better", "learned")
