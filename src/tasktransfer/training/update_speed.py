"""The duration of a model's training updates on this machine, for forecasts.

``python -m tasktransfer.training.update_speed MODEL`` trains a model for a few updates on the
tiny world, and prints the duration as JSON. ``MODEL`` is a JSON object with the fields of
``TimedModel``.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import TypeAdapter

from tasktransfer.core.nodes import Data, Stage
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import PACKAGE_DATASETS, get_task
from tasktransfer.datasets.tiny_world import MINIMUM_DIALOGUES, generate_releases
from tasktransfer.encoding.encode import encode_dataset
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.layers.ragged import build_ragged
from tasktransfer.models.load import Loading, load_model
from tasktransfer.training.hardware import Hardware
from tasktransfer.training.loop import train
from tasktransfer.training.progress import Progress

DATASET = PACKAGE_DATASETS[0]
TASK = next(card.name for card in DATASET.cards if card.kind == "utterance_classification")
WARM_UP = 1
"""Number of updates before the measurement starts."""


@dataclass(frozen=True, slots=True)
class TimedModel:
    """A model whose updates are timed.

    Attributes:
        model: specification of the model.
        checkpoint: its folder or hub name.
        training: hyperparameters.
        updates: number of updates.
        length: number of tokens per instance. Instances of the tiny world that are longer are kept.
    """

    model: ModelSpec
    checkpoint: str
    training: Training
    updates: int
    length: int


def time_updates(timed: TimedModel) -> dict[str, float | str]:
    """Train a model for a few updates, and measure their duration.

    On a CPU, the duration is the process's own time, which does not count waiting for a core.

    Returns:
        ``updates``, the ``tokens`` that they read, their total ``seconds``, and the ``device``.

    Raises:
        ModelError: the checkpoint cannot be loaded.
        ConfigError, TrainingError, MemoryShortageError: the model cannot be trained.
    """
    model, training, card = timed.model, timed.training, get_task(DATASET.name, TASK)
    hardware = Hardware(training.precision, training.deterministic)
    device = hardware.prepare_device()
    with TemporaryDirectory() as folder:
        split = _encode_tiny_world(timed, Path(folder))
        loading = Loading(model, training, Path(folder, "encoded"), 0, device, begins=True)
        loaded = load_model(loading, timed.checkpoint, None, {TASK: card})
        setup = hardware.choose_setup(loaded, model.family, device)
        clock = time.process_time if device.type == "cpu" else time.perf_counter
        for updates in (WARM_UP, timed.updates):
            began = clock()
            trained = train(
                *(loaded, _build_stage(timed, updates), {TASK: card}, {TASK: split}),
                {TASK: split.limit_instances(1)},
                setup,
                Progress(1, "timed updates", StringIO()),
            )
            seconds = clock() - began
    measured = {"updates": timed.updates, "tokens": trained.tokens, "seconds": seconds}
    return {**measured, "device": device.type}


def _encode_tiny_world(timed: TimedModel, folder: Path) -> EncodedSplit:
    """Write the token ids of the tiny world, and return its training split.

    The tokens of a short instance are repeated until it has the given length.
    """
    model = timed.model
    generate_releases(folder / "world", dialogues=MINIMUM_DIALOGUES)
    cache_dataset(DATASET.name, folder / "world", False, folder / "instances")
    encode_dataset(
        *(folder / "instances", DATASET.name, [TASK], timed.checkpoint, None, model.family),
        *(model.max_length, folder / "encoded"),
    )
    split = read_split(folder / "encoded", TASK, "train")
    sequences = (split.sequences[row] for row in range(len(split.second_starts)))
    longer = [np.resize(ids, max(len(ids), timed.length)) for ids in sequences]
    return replace(split, sequences=build_ragged(longer))


def _build_stage(timed: TimedModel, updates: int) -> Stage:
    """Return a stage that trains for one round with a given number of updates."""
    return Stage(
        kind="baseline",
        label="timed",
        data=Data(DATASET.name, "tiny"),
        model=timed.model,
        train_tasks=(TASK,),
        selection=Selection((TASK,), every=updates),
        training=replace(timed.training, updates=updates),
        seed=0,
    )


def main() -> None:
    """Time the updates of the timed on the command line."""
    timed = TypeAdapter(TimedModel).validate_json(sys.argv[1])
    print(json.dumps(time_updates(timed)))


if __name__ == "__main__":
    main()
