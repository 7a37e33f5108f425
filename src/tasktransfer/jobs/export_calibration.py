"""Predictions of an exported model on a split, and how well its probabilities are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.stats.calibration import (
    Flags,
    compute_calibration_error,
    compute_confidence,
    compute_coverage,
    compute_crossfitted_error,
    compute_reliability,
    crossfit_confidence,
)
from tasktransfer.tasks.card import Instance

THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Split:
    """Instances of a split with the logits of a written model."""

    instances: Sequence[Instance]
    logits: Floats
    golds: npt.NDArray[np.int64]
    answers: list[tuple[str, ...]]

    @property
    def is_right(self) -> Flags:
        """Mask of correct predictions, (instances,)."""
        right: Flags = self.logits.argmax(axis=1) == self.golds
        return right

    @property
    def clusters(self) -> list[str]:
        """Dialogue of each instance."""
        return [instance.dialogue_id for instance in self.instances]


def describe_calibration(
    dev: Split, test: Split, temperature: float, threshold: float | None
) -> dict[str, Any]:
    """Return calibration errors before and after temperature scaling, reliability and coverage.

    On dev, each dialogue has a temperature from other dialogues (``crossfit_confidence``).
    """
    scaled = {
        "dev": (dev, crossfit_confidence(dev.logits, dev.golds, dev.clusters)),
        "test": (test, compute_confidence(test.logits, temperature)),
    }
    errors = {
        "dev": {
            "before": compute_calibration_error(dev.logits, dev.golds, 1.0),
            "after": compute_crossfitted_error(dev.logits, dev.golds, dev.clusters),
        },
        "test": {
            "before": compute_calibration_error(test.logits, test.golds, 1.0),
            "after": compute_calibration_error(test.logits, test.golds, temperature),
        },
    }
    thresholds = sorted({*THRESHOLDS, *([] if threshold is None else [threshold])})
    rounded = {
        split: {key: round(value, 2) for key, value in of.items()} for split, of in errors.items()
    }
    return {
        "expected_calibration_error": rounded,
        "reliability": {
            split: {
                "before": compute_reliability(compute_confidence(of.logits, 1.0), of.is_right),
                "after": compute_reliability(confidence, of.is_right),
            }
            for split, (of, confidence) in scaled.items()
        },
        "coverage": {
            split: compute_coverage(confidence, of.is_right, thresholds)
            for split, (of, confidence) in scaled.items()
        },
    }
