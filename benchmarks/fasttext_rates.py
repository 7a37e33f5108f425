"""Measure fastText's accuracy on emotions of validation situations by learning rate and epochs.

    python benchmarks/fasttext_rates.py ../shared/dialogue

We used it to choose the defaults of the config section ``emotions``. It takes about three minutes
on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tasktransfer.designs.empathetic.sources.cards import EMOTION
from tasktransfer.designs.empathetic.sources.dialogues import EMPATHETIC_DIALOGUES
from tasktransfer.fits import fast_text, select_most_probable_labels

TRIED = ((0.5, 5), (0.5, 10), (0.25, 10), (0.1, 10), (0.1, 25), (1.0, 5))


def main(release: str) -> None:
    """Print the accuracy of each setting."""
    opened = EMPATHETIC_DIALOGUES.reader.open(Path(release), False)
    train, dev = (list(opened.instances(EMOTION.name, split)) for split in ("train", "dev"))
    for rate, passes in TRIED:
        fitted = fast_text.fit_fasttext(EMOTION, train, None, {"lr": rate, "epoch": passes}, seed=0)
        told = select_most_probable_labels(EMOTION, fitted.predict_probabilities(dev, None))
        right = np.mean([a == one.target for a, one in zip(told, dev, strict=True)])
        print(f"rate {rate:<5} passes {passes:<3} accuracy {right:.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
