"""Learning curves: the target's loss, and the dev score, in each round of a run's last stage."""

from __future__ import annotations

from collections.abc import Iterator

from tasktransfer.designs.transfer.collect.rows import Values, scored
from tasktransfer.designs.transfer.runs import is_transfer, name_of
from tasktransfer.results.frames import Frames


def make_learning_curves(frames: Frames) -> Iterator[Values]:
    """Yield the rows of the frame ``learning_curves``: one per run and round."""
    collected = frames.collected
    for run in collected.runs:
        if not is_transfer(run):
            continue
        dataset, model, algorithm, sources, target, seed = name_of(run)
        names = (dataset, model, algorithm, "+".join(sources), target, seed)
        stage = scored(run)
        course = collected.record(stage)["training"]
        (scores,) = (
            selection["scores"]
            for selection in course["selections"]
            if tuple(selection["select_on"]) == tuple(stage.selection.tasks)
        )
        for entry, score in zip(course["rounds"], scores, strict=True):
            loss = entry["train_loss"].get(target, float("nan"))
            yield (*names, entry["round"], loss, score)
