"""Facts that ``plan`` and ``status`` print, as their ``--json`` has them."""

from __future__ import annotations

from typing import TypedDict


class OtherNodes(TypedDict):
    """Counts of one kind of node other than trainings, or None if finished work is unknown."""

    kind: str
    total: int
    done: int | None
    left: int | None


# --- status ---------------------------------------------------------------------------------------


class ProgressGroup(TypedDict):
    """Trainings of a model and an algorithm (or kind of stage), by state."""

    model: str
    algorithm: str
    trainings: int
    states: dict[str, int]


class UnfinishedInput(TypedDict):
    """Data, token ids or a tiny model that are being created or failed.

    ``error`` is the last line of the error, None unless the state is "failed".
    """

    label: str
    state: str
    error: str | None
    log: str


class NodeName(TypedDict):
    """Names of a node; ``model`` and ``seed`` are None if it has none."""

    dataset: str
    model: str | None
    label: str
    kind: str
    seed: int | None
    digest: str
    log: str


class TrainingProgress(TypedDict):
    """Percent, speed and remaining time of a training, None before its first progress bar."""

    percent: int | None
    per_second: str | None
    left: str | None


class RunningNode(NodeName, TrainingProgress):
    """A running node with its process and progress."""

    host: str | None
    pid: int | None
    device: str | None
    started: str | None


class FailedNode(NodeName):
    """A failed node, with the last line of its error, its time and its number of starts."""

    error: str | None
    cause: str | None
    time: str | None
    attempts: int


class Restarts(TypedDict):
    """Restarted trainings, their restarts, and the restarts after an error."""

    trainings: int
    times: int
    after_errors: int


class Pace(TypedDict):
    """Throughput and remaining time; ``seconds_left`` is None if unknown."""

    finished_last_hour: int
    per_hour: float
    seconds_left: float | None
    device_seconds_left: float


class DatedPace(Pace):
    """Pace, and the number of records whose timestamp is in the future."""

    dated_in_the_future: int


class StudyProgress(DatedPace):
    """Progress of a study.

    ``left``: number of unfinished nodes of all kinds. ``again``: number of unfinished nodes whose
    record exists. ``damaged``: problems of damaged records. ``totals`` and ``groups`` count
    trainings by state. ``announced``: clauses on the trainings that pending choices add;
    ``further_trainings``: their maximum number, None if it is unknown.
    """

    study: str
    results: str
    trainings: int
    left: int
    again: int
    damaged: list[str]
    choice_pending: bool
    announced: list[str]
    further_trainings: int | None
    totals: dict[str, int]
    started_again: Restarts
    groups: list[ProgressGroup]
    others: list[OtherNodes]
    inputs: list[UnfinishedInput]
    running: list[RunningNode]
    failed: list[FailedNode]
    interrupted: list[NodeName]


# --- plan -----------------------------------------------------------------------------------------


class RunCounts(TypedDict):
    """Runs by method."""

    total: int
    by_method: dict[str, int]
    choice_pending: bool


class PairTrainings(TypedDict):
    """Trainings of a model on a dataset."""

    dataset: str
    model: str
    tasks: int
    trainings: int


class TrainingCounts(TypedDict):
    """Distinct trainings; counts of finished work are None if it is unknown."""

    total: int
    without_variants: int
    spared: int
    by_kind: dict[str, int]
    by_dataset_and_model: list[PairTrainings]
    done: int | None
    left: int | None
    again: int | None
    damaged: list[str]


class ModelSpeed(TypedDict):
    """A model's size, and the basis of its estimated speed."""

    parameters: int
    parameters_from: str
    trained_parameters: int
    speed_from: str
    precision: str


class WorkCost(TypedDict):
    """Estimated cost of some nodes."""

    trainings: int
    samples: int
    tokens: int
    evaluated_samples: int
    evaluated_tokens: int
    device_hours: float
    device_hours_besides: float
    answered_by_endpoints: int
    wall_hours: float


class TargetTrainings(TypedDict):
    """Training runs whose best epoch is selected by a target's dev score."""

    dataset: str
    target: str
    short: str
    trainings: int
    done: int | None
    left: int | None
    device_hours: float
    device_hours_left: float


class DiskSpace(TypedDict):
    """Disk space of a results folder in bytes.

    ``there``: current size. ``kept_checkpoints``: further checkpoints that are kept. ``temporary``:
    peak size of other checkpoints and of resume states. ``records_and_predictions``: further
    records and predictions, with logs. ``peak``: sum of all these. ``free``: free space of the file
    system, None if unknown. ``short``: whether the free space is too small.
    """

    there: int
    kept_checkpoints: int
    temporary: int
    records_and_predictions: int
    peak: int
    free: int | None
    short: bool


class Endpoint(TypedDict):
    """A served model: its address, its key and its capabilities."""

    model: str
    endpoint: str | None
    key_variable: str | None
    key: str
    refusals: list[str]
    probes: list[str]


class StudyEstimate(TypedDict):
    """Estimated work, all of it and the remaining part."""

    device: str
    devices: int
    devices_from: str
    speed_from: dict[str, ModelSpeed]
    rates: str
    sizes_from: list[str]
    total: WorkCost
    left: WorkCost
    by_target: list[TargetTrainings]
    disk_bytes: DiskSpace


class Overview(TypedDict):
    """Counts and estimates for a study.

    ``absent`` and ``lacking`` are messages about missing inputs. ``synthetic`` is None if unknown.
    """

    study: str
    config: str
    results: str
    synthetic: bool | None
    absent: list[str]
    lacking: list[str]
    runs: RunCounts
    trainings: TrainingCounts
    others: list[OtherNodes]
    endpoints: list[Endpoint]
    estimate: StudyEstimate
