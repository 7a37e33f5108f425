"""Prediction of the dialogues in a file with an exported model, in bounded memory."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tasktransfer.datasets.declared.inputs import Input, check_not_empty, read_inputs
from tasktransfer.errors import ConfigError, print_note
from tasktransfer.files import replace_file
from tasktransfer.files.progress import StatusLine

if TYPE_CHECKING:  # imports torch
    from tasktransfer.jobs.predictor import Prediction, Predictor

BATCHES, CHARACTERS = 32, 2_000_000
"""Maximum numbers of batches and of characters that are read before they are predicted."""
MOST_NOTES = 30


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """Options of a prediction, as in ``Predictor.predict`` and ``open_inputs``."""

    top_k: int = 0
    min_probability: float = 0.0
    batch_size: int = 32
    skip_empty: bool = False
    skip_broken: bool = False


def predict_file(folder: Path, file: Path, out: Path | None, request: PredictionRequest) -> None:
    """Predict each dialogue or turn of a file, and write one JSON line per prediction.

    Args:
        folder: folder of the exported model.
        file: file of dialogues.
        out: file to write, which appears when it is complete; None for standard output.

    Raises:
        ConfigError: an option does not fit the model.
        DataError: the file, or lines of it, cannot be read.
        ModelError: the folder is damaged.
    """
    from tasktransfer.jobs.predictor import load_predictor  # noqa: PLC0415  # imports torch

    if out is not None and out.resolve() == file.resolve():
        raise ConfigError(
            f"--out {out}: The output file is the dialogues file itself. Choose another file."
        )
    predictor = load_predictor(folder)
    if request.top_k > len(predictor.labels):
        raise ConfigError(
            f"--top-k {request.top_k}: The model has only {len(predictor.labels)} labels. Choose "
            f"{len(predictor.labels)} or a smaller number."
        )
    of, notes = predictor.exported.inputs, list[str]()
    if missing := [name for name in of.query_fields if name not in of.fields]:
        raise ConfigError(
            f"{folder}: The model also reads the inputs {', '.join(missing)}, but their fields "
            "are unknown. Use tasktransfer.load_model, and pass objects with these fields."
        )
    inputs = read_inputs(
        *(file, of.scope, of.dialogue, of.fields, notes),
        skip_empty=request.skip_empty,
        skip_broken=request.skip_broken,
    )
    with ExitStack() as stack:
        stream: TextIO = sys.stdout
        if out is not None:
            part = stack.enter_context(replace_file(out))
            stream = stack.enter_context(part.open("w", encoding="utf-8"))
        count = _write_predictions(predictor, check_not_empty(inputs, file), stream, request)
    for note in notes[:MOST_NOTES]:
        print_note(note)
    if len(notes) > MOST_NOTES:
        print_note(f"{file}: {len(notes) - MOST_NOTES:,} more notes are not shown")
    print(f"{out or file}: {count:,} predictions", file=sys.stderr)


def _write_predictions(
    predictor: Predictor, inputs: Iterator[Input], stream: TextIO, request: PredictionRequest
) -> int:
    line, began, count = StatusLine("predicting"), time.perf_counter(), 0
    least = predictor.exported.min_probability
    for some in _group_inputs(inputs, BATCHES * request.batch_size):
        instances = [
            predictor.exported.build_instance(
                f"{i.dialogue}#{i.turn}", i.context, i.focus, i.query, i.dialogue
            )
            for i in some
        ]
        predictions = predictor.predict_instances(
            instances,
            top_k=request.top_k,
            min_probability=request.min_probability,
            batch_size=request.batch_size,
        )
        for read, prediction in zip(some, predictions, strict=True):
            confident = None if least is None else prediction.probability >= least
            stream.write(f"{_format_line(read, prediction, confident)}\n")
        count += len(some)
        rate = count / (time.perf_counter() - began)
        line.show(f"{count:,} predictions, {rate:,.0f} per second")
    line.end("")
    return count


def _group_inputs(inputs: Iterable[Input], most: int) -> Iterator[list[Input]]:
    """Group inputs into lists of at most ``most`` inputs, to limit memory use."""
    group: list[Input] = []
    characters = 0
    for read in inputs:
        group.append(read)
        characters += len(read.context)
        if len(group) == most or characters > CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _format_line(read: Input, prediction: Prediction, confident: bool | None) -> str:
    turn = {} if read.turn is None else {"turn": read.turn}
    line: dict[str, object] = {
        "id": read.dialogue,
        **turn,
        "label": prediction.label,
        "probability": round(prediction.probability, 6),
    }
    if confident is not None:
        line["confident"] = confident
    if prediction.top:
        line["top"] = [{"label": name, "probability": round(p, 6)} for name, p in prediction.top]
    return json.dumps(line, ensure_ascii=False)
