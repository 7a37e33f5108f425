"""fastText's classifier of texts (Joulin et al. 2017), by its own library.

Its file is the one kind of model here that is no safetensors. It is written and read by us alone,
with its digest beside it: what is not the file that was written is not opened.
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tasktransfer.errors import DataError
from tasktransfer.metrics.bleu import words
from tasktransfer.tasks.card import Instance, Task

Features = npt.NDArray[np.float64]

MODEL, SETTINGS = "classifier.bin", "classifier.json"
DEFAULTS = {"lr": 0.5, "epoch": 10, "dim": 32, "wordNgrams": 1}
"""fastText's names: learning rate, passes, width, longest n-gram of words."""
TURN = "<SOC>"
MARK = "__label__"


@dataclass(frozen=True, slots=True)
class FastText:
    """A fitted model and the labels of its card, in the card's order."""

    model: Any
    labels: tuple[str, ...]
    numbered: bool = True
    """Whether the model knows labels by their number, as those that are fitted here do."""

    def probabilities(self, instances: Sequence[Instance], features: Features | None) -> Features:
        """(instances, labels) probabilities, the labels in the card's order."""
        names = range(len(self.labels)) if self.numbered else self.labels
        column = {f"{MARK}{name}": number for number, name in enumerate(names)}
        probabilities = np.zeros((len(instances), len(self.labels)))
        lines = [_line(instance.context) for instance in instances]
        for row, line in enumerate(lines):
            # Asked of the library's core: its wrapper makes arrays in a way that numpy 2 refuses.
            for probability, label in self.model.f.predict(f"{line}\n", -1, 0.0, "strict"):
                probabilities[row, column[label]] = probability
        return probabilities

    def save(self, folder: Path) -> None:
        """Write it into a folder that is there."""
        self.model.save_model(str(folder / MODEL))
        said = {"labels": self.labels, "numbered": self.numbered, "sha256": _sha256(folder / MODEL)}
        (folder / SETTINGS).write_text(json.dumps(said), encoding="utf-8")


def fit(
    card: Task,
    instances: Sequence[Instance],
    features: Features | None,
    settings: Mapping[str, Any],
    seed: int,
) -> FastText:
    """Learn a card's labels from contexts.

    Settings: those of ``DEFAULTS``; ``file``: a model of fastText that was trained elsewhere, whose
    labels are the card's (with fastText's mark before them), instead of learning one.

    Raises:
        DataError: the instances have one label, or the given model has other labels.
    """
    import fasttext  # noqa: PLC0415

    if settings.get("file"):
        return _given(card, Path(settings["file"]))
    if len({instance.target for instance in instances}) < 2:
        raise DataError(f"{card.name}: all training instances have one label; give several")
    rows = [f"{MARK}{card.labels.index(i.target[0])} {_line(i.context)}" for i in instances]
    random.Random(seed).shuffle(rows)  # it learns in the order of the file
    chosen = {name: settings.get(name, value) for name, value in DEFAULTS.items()}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write("\n".join(rows) + "\n")
        file.flush()
        # One thread: several would make the result depend on which is faster.
        model = fasttext.train_supervised(file.name, thread=1, seed=seed, verbose=0, **chosen)
    return FastText(model, card.labels)


def _given(card: Task, file: Path) -> FastText:
    """A model of others."""
    model = _opened(file)
    own = {label.removeprefix(MARK) for label in model.labels}
    if own != set(card.labels):
        odd = sorted(own ^ set(card.labels))[0]
        raise DataError(
            f"{file}: a fastText model of {len(own)} labels, {card.name} has {len(card.labels)}; "
            f"the first difference is {odd!r}: give a model of the card's labels, or remove "
            "the file from the config to fit one"
        )
    return FastText(model, card.labels, numbered=False)


def load(folder: Path) -> FastText:
    """What ``FastText.save`` wrote.

    Raises:
        DataError: it is not the file that was written.
    """
    said = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    file = folder / MODEL
    if _sha256(file) != said["sha256"]:
        raise DataError(f"{file}: not the file that was written; delete {folder} and fit again")
    return FastText(_opened(file), tuple(said["labels"]), said["numbered"])


def _opened(file: Path) -> Any:
    import fasttext  # noqa: PLC0415

    try:
        return fasttext.load_model(str(file))
    except ValueError as error:
        raise DataError(f"{file}: no model of fastText ({error}); give another file") from error


def _sha256(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}; fit again") from error


def _line(text: str) -> str:
    """Lower-case words, turns parted as fastText's own end of sentence (the paper's code)."""
    return " </s> ".join(" ".join(words(turn)) for turn in text.split(TURN))
