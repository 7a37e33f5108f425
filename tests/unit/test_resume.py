"""Interrupted trainings resume, and end like undisturbed ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor, nn

from small_models import Loader, small_stage
from tasktransfer.core.specs import FAMILIES, Family, Selection, Training
from tasktransfer.datasets import DATASETS, get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ConfigError, MemoryShortageError
from tasktransfer.models.encoder import Encoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.training.loop import Trained, train
from tasktransfer.training.memory import TokenBudget
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import Snapshots, read_min_seconds
from tasktransfer.training.run import collect_resume_facts
from tasktransfer.training.setup import Setup
from tasktransfer.training.starts import list_tasks

TASK = get_task("DailyDialog", "emotion_recognition")
STAGE = small_stage(TASK.name, "dialogue_nli")
TRAINING = Training(epochs=5, batch_size=2, learning_rate=1e-3, dropout=0.3)


class KilledError(Exception):
    """A substitute for SIGKILL: no code after it runs."""


class Killing(Progress):
    """Ends the process after a round, before its state is saved."""

    def __init__(self, last_round: int) -> None:
        super().__init__(1, "test", io.StringIO())
        self._last_round = last_round

    def report_round(self, number: int, *_: Any) -> None:
        if number == self._last_round:
            raise KilledError


def setup(train_tokens: int = 256) -> Setup:
    budgets = TokenBudget(train_tokens, "training"), TokenBudget(256, "evaluation")
    return Setup(torch.device("cpu"), *budgets)


def snapshots(folder: Path, said: list[str] | None = None, **belongs_to: str) -> Snapshots:
    say = (said if said is not None else []).append
    return Snapshots(folder, {"stage": "a", **belongs_to}, say, share=float("inf"), least=0.0)


def run(
    model: FamilyModel,
    split: EncodedSplit,
    kept: Snapshots | None,
    *,
    kill_after: int | None = None,
    how: Setup | None = None,
    keep_round: Callable[[int], None] | None = None,
    **stage: Any,
) -> Trained:
    progress = Progress(1, "test", io.StringIO()) if kill_after is None else Killing(kill_after)
    splits = {TASK.name: split}
    told = small_stage(TASK.name, seed=3, **{"training": TRAINING} | stage)
    tasks = {TASK.name: TASK}
    return train(model, told, tasks, splits, splits, how or setup(), progress, kept, keep_round)


def outcome(trained: Trained, model: FamilyModel) -> tuple[Any, ...]:
    """Return the content of a record or checkpoint, except for times."""
    rounds = [replace(one, seconds=0.0) for one in trained.rounds]
    (chosen,) = trained.best
    best = torch.cat([w.flatten().float() for w in chosen.weights.values()])
    last = torch.cat([p.detach().flatten() for p in model.module.parameters()])
    return (
        rounds,
        chosen.round,
        trained.samples,
        trained.tokens,
        best.tolist(),
        last.tolist(),
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_killed_training_resumes_and_ends_bit_for_bit_the_same(
    family: Family, load: Loader, tmp_path: Path
) -> None:
    model, split = load(family, "DailyDialog", TASK.name)
    undisturbed = outcome(run(model, split, None), model)
    for death in (2, 4, 4):
        model, split = load(family, "DailyDialog", TASK.name)
        with pytest.raises(KilledError):
            run(model, split, snapshots(tmp_path), kill_after=death)
    model, split = load(family, "DailyDialog", TASK.name)
    trained = run(model, split, snapshots(tmp_path))
    assert trained.resumed_after == [1, 3]  # the third process died before it kept anything
    assert outcome(trained, model) == undisturbed


@pytest.mark.parametrize(
    "selection",
    [
        Selection((TASK.name,), every=2, keep="every"),
        Selection((TASK.name,), "loss", every=3),
        Selection((TASK.name,), every=1, patience=6),
    ],
)
def test_rounds_measures_and_patience_continue_too(
    selection: Selection, load: Loader, tmp_path: Path
) -> None:
    stage: dict[str, Any] = {"selection": selection, "trains": ("encoder",), "sampler": "uniform"}

    def once(kill_after: int | None, folder: Path | None) -> tuple[Trained, FamilyModel, list[int]]:
        model, split = load("encoder", "DailyDialog", TASK.name)
        numbers: list[int] = []
        keeps = numbers.append if selection.keep == "every" else None
        kept = snapshots(folder) if folder else None
        return (
            run(model, split, kept, kill_after=kill_after, keep_round=keeps, **stage),
            model,
            numbers,
        )

    trained, model, numbers = once(None, None)
    undisturbed = outcome(trained, model)
    assert trained.last > 3
    for death in (1, 3):
        with pytest.raises(KilledError):
            once(death, tmp_path)
    again, model, rest = once(None, tmp_path)
    assert again.resumed_after == [2]
    assert outcome(again, model) == undisturbed
    if selection.keep == "every":
        assert numbers == list(range(trained.last + 1))
        assert rest == numbers[3:]


def test_every_process_orders_a_model_s_weights_alike() -> None:
    """The optimiser's state is numbered.

    In another order it would be loaded into the wrong weights. The order of a set changes with the
    process.
    """
    names = tuple(DATASETS["DailyDialog"].tasks)
    several = small_stage(*names[::-1])
    assert list(list_tasks(several)) == sorted(names)


def test_a_state_of_other_weights_is_not_used(load: Loader, tmp_path: Path) -> None:
    made = []
    for order in ((0, 1), (1, 0)):
        model, _ = load("encoder", "DailyDialog", TASK.name)
        assert isinstance(model, Encoder)
        tasks = [TASK, get_task("DailyDialog", "dialogue_nli")]
        model.module["heads"] = nn.ModuleDict(
            {tasks[i].name: nn.Linear(4, tasks[i].classes) for i in order}
        )
        made.append(collect_resume_facts(STAGE, setup(), model))
    assert made[0] != made[1]
    assert {key for key in made[0] if made[0][key] != made[1][key]} == {"weights"}


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:1000]), "damaged"),
        (lambda file: file.write_bytes(b""), "damaged"),
        (lambda file: torch.save({"weights": {}}, file), "another stage"),
    ],
)
def test_a_state_that_cannot_be_used_is_named_and_the_training_starts_over(
    damage: Damage, said: str, load: Loader, tmp_path: Path
) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    with pytest.raises(KilledError):
        run(model, split, snapshots(tmp_path), kill_after=3)
    damage(snapshots(tmp_path).file)
    lines: list[str] = []
    model, split = load("encoder", "DailyDialog", TASK.name)
    assert run(model, split, snapshots(tmp_path, lines)).resumed_after == []
    assert said in lines[0]
    assert str(snapshots(tmp_path).file) in lines[0]


def test_the_state_of_another_device_or_version_is_not_used(load: Loader, tmp_path: Path) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    with pytest.raises(KilledError):
        run(model, split, snapshots(tmp_path, device="cuda"), kill_after=3)
    model, split = load("encoder", "DailyDialog", TASK.name)
    assert run(model, split, snapshots(tmp_path, device="cpu")).resumed_after == []


def test_a_state_that_costs_too_much_time_is_not_kept(tmp_path: Path) -> None:
    kept = snapshots(tmp_path)
    kept.share = 0.0
    written: list[int] = []

    def state() -> dict[str, Any]:
        written.append(1)
        return {}

    kept.write_state(state)
    kept.write_state(state)
    assert written == [1]  # the first tells what it costs


def test_no_state_is_kept_before_some_minutes_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = snapshots(tmp_path)
    kept.least = read_min_seconds()
    kept.write_state(dict)
    assert not kept.file.exists()
    kept._last -= kept.least  # as if that long had passed
    kept.write_state(dict)
    assert kept.file.exists()
    monkeypatch.setenv("TASKTRANSFER_RESUME_SECONDS", "0")
    assert read_min_seconds() == 0.0
    for text in ("-1", "nan", "soon"):
        monkeypatch.setenv("TASKTRANSFER_RESUME_SECONDS", text)
        with pytest.raises(ConfigError, match=f"TASKTRANSFER_RESUME_SECONDS={text}"):
            read_min_seconds()


def test_a_full_disk_costs_the_state_and_not_the_training(tmp_path: Path) -> None:
    lines: list[str] = []
    blocked = tmp_path / "stage"
    blocked.write_text("a file where the folder should be")
    snapshots(blocked, lines).write_state(dict)
    assert "cannot be written" in lines[0]


def test_clear_leaves_nothing(tmp_path: Path) -> None:
    kept = snapshots(tmp_path)
    kept.write_state(dict)
    kept.clear()
    assert list(tmp_path.iterdir()) == []


# --- out of memory ---


class Small:
    """A model on a device whose memory fits this number of tokens per micro-batch."""

    def __init__(self, model: FamilyModel, tokens: int) -> None:
        self._model, self._tokens = model, tokens
        self.module, self.compute_loss_divisor, self.save = (
            model.module,
            model.compute_loss_divisor,
            model.save,
        )
        self.get_parts, self.enter_training_mode = model.get_parts, model.enter_training_mode
        self.side_by_side, self.paths = model.side_by_side, model.paths
        self.split_for_training = model.split_for_training
        self.split_for_prediction = model.split_for_prediction
        self.refused = 0

    def _fits(self, split: EncodedSplit, examples: list[int]) -> bool:
        lengths = split.compute_longest_lengths()
        return len(examples) * max(int(lengths[example]) for example in examples) <= self._tokens

    def _refuse(self) -> NoReturn:
        self.refused += 1
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    def compute_loss(self, split: EncodedSplit, examples: list[int]) -> Tensor:
        value = self._model.compute_loss(split, examples)
        if not self._fits(split, examples):
            (value * 1000).backward()  # what a failed try leaves behind has to go
            self._refuse()
        return value

    def predict(self, split: EncodedSplit, examples: list[int]) -> list[tuple[str, ...]]:
        if not self._fits(split, examples):
            self._refuse()
        return self._model.predict(split, examples)


def test_out_of_memory_halves_the_micro_batch_and_changes_no_number(load: Loader) -> None:
    still = replace(TRAINING, dropout=None, batch_size=4, epochs=2)
    model, split = load("encoder", "DailyDialog", TASK.name)
    plain = run(model, split, None, training=still)
    longest = int(split.compute_longest_lengths().max())
    model, split = load("encoder", "DailyDialog", TASK.name)
    small = Small(model, longest)
    how = setup(longest * 4)
    tight = run(small, split, None, training=still, how=how)
    assert small.refused
    assert [e.train_loss for e in tight.rounds] == [
        {TASK.name: pytest.approx(e.train_loss[TASK.name], rel=1e-5)} for e in plain.rounds
    ]
    assert [e.dev for e in tight.rounds] == [e.dev for e in plain.rounds]
    tokens = how.train_budget.tokens
    assert tokens < longest * 4
    assert f"out of memory: training in micro-batches of {tokens} tokens" in how.notes


def test_what_fits_in_no_way_is_an_error_with_a_remedy(load: Loader) -> None:
    model, split = load("encoder", "DailyDialog", TASK.name)
    with pytest.raises(MemoryShortageError, match=r"one instance at a time.*max_length"):
        run(Small(model, 1), split, None)
