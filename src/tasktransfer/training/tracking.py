"""A live view of a training run in TensorBoard, trackio or Weights & Biases (`tracking`).

Each client is its own package, which is imported only if the study's config names it. Values are
logged after each round. They are copies of numbers that the record contains, so tracking changes
neither records nor digests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tasktransfer.core.nodes import Stage
from tasktransfer.errors import ConfigError
from tasktransfer.training.job import Job

Values = Mapping[str, float]
OnRound = Callable[[int, Values, Sequence[float], float], None]
"""Function that receives each round's number, losses, dev scores, and the learning rate."""


class TrackingClient(Protocol):
    """A client that receives values by step."""

    def log(self, values: Values, step: int) -> None:
        """Log the values of a training step."""

    def close(self) -> None:
        """End the tracked run, and wait until everything is written."""


class _TensorBoard:
    """Event files for `tensorboard --logdir`."""

    def __init__(self, job: Job) -> None:
        board = _import_client("torch.utils.tensorboard", "tensorboard")
        self._writer = board.SummaryWriter(str(Path(job.tracking_folder, job.stage.path)))

    def log(self, values: Values, step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _TrackedRun:
    """A run of trackio or wandb, whose functions have the same names."""

    def __init__(self, name: str, job: Job, **options: Any) -> None:
        self._client = _import_client(name, name)
        project, config = format_project_name(job.study), describe_stage(job.stage)
        self._client.init(project=project, name=job.stage.path, config=config, **options)

    def log(self, values: Values, step: int) -> None:
        self._client.log(dict(values), step=step)

    def close(self) -> None:
        self._client.finish()


def _open_wandb(job: Job) -> TrackingClient:
    folder = Path(job.tracking_folder)
    folder.mkdir(parents=True, exist_ok=True)
    return _TrackedRun("wandb", job, dir=str(folder))


_OPEN: Mapping[str, Callable[[Job], TrackingClient]] = {
    "tensorboard": _TensorBoard,
    "trackio": partial(_TrackedRun, "trackio"),
    "wandb": _open_wandb,
}


@contextmanager
def open_tracker(job: Job, joules: Callable[[], float | None]) -> Iterator[OnRound | None]:
    """Yield the function that logs a round, or None if tracking is not configured.

    Args:
        job: the training job.
        joules: function that returns the energy so far, or None if it is not measured.

    Raises:
        ConfigError: the client's package is not installed.
    """
    if job.tracking is None:
        yield None
        return
    client = _OPEN[job.tracking](job)
    try:
        yield partial(_log_round, client, joules)
    finally:
        client.close()


def _log_round(
    client: TrackingClient,
    joules: Callable[[], float | None],
    number: int,
    train_loss: Values,
    scores: Sequence[float],
    rate: float,
) -> None:
    """Log the losses by task, dev scores by selection, learning rate and energy of a round."""
    values = {f"loss/{task}": loss for task, loss in train_loss.items()}
    names = ["dev/score", *(f"dev/score_{n}" for n in range(2, len(scores) + 1))]
    values |= dict(zip(names, scores, strict=True))
    values["learning_rate"] = rate
    energy = joules()
    if energy is not None:
        values["energy_joules"] = energy
    client.log(values, number)


def _import_client(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"tracking: The package {package} is not installed ({error}). Run `pip install "
            f"'tasktransfer[{package}]'`, or remove the key."
        ) from error


def describe_stage(stage: Stage) -> dict[str, Any]:
    """Return facts about a stage by which its run can be filtered and compared."""
    return {
        "dataset": stage.dataset,
        "model": stage.model.name,
        "label": stage.label,
        "seed": stage.seed,
        "digest": stage.digest,
    }


def format_project_name(study: str) -> str:
    """Return a project name for a study, without characters that tracking clients reject."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in study)
