"""A stage from its job to its files: starts, rounds, checkpoints and record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from small_models import build_job, small_stage, train_job
from tasktransfer.core.nodes import Stage, Start, merge_selections
from tasktransfer.core.specs import FAMILIES, Family, Selection, Training
from tasktransfer.errors import ModelError
from tasktransfer.results.records import (
    describe_unrecorded_selections,
    get_selected_round,
    select_comparable_parts,
)
from tasktransfer.results.rounds import (
    find_round_folder,
    get_round_folder,
    get_selected_round_folder,
    list_kept_rounds,
)
from tasktransfer.results.rows import read_record_rows, select_task_rows
from tasktransfer.results.schema import Record
from tasktransfer.training.attempt import add_recorded_selections, is_trained
from tasktransfer.training.job import Job
from tasktransfer.training.progress import Progress
from tasktransfer.training.resume import MIN_SECONDS_VARIABLE

EMOTIONS, NLI = "emotion_recognition", "dialogue_nli"
TRAINING = Training(epochs=2, batch_size=2, learning_rate=1e-3, precision="float32")
STILL = replace(TRAINING, learning_rate=1e-12, epochs=1)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    assert files
    return {f"{file.name}/{name}": t for file in files for name, t in load_file(file).items()}


def chosen_in(record: Record) -> tuple[int, float]:
    """Return the round of the only selection, and its score."""
    (one,) = record["training"]["selections"]
    return one["round"], one["dev_score"]


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> set[str]:
    """Return the names of bitwise equal parameters."""
    assert first.keys() == second.keys()
    return {name for name in first if torch.equal(first[name], second[name])}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_round_is_kept_as_a_checkpoint_and_changes_no_number(
    family: Family, small: Path, tmp_path: Path
) -> None:
    plain = small_stage(EMOTIONS, family=family, training=TRAINING)
    keeping = replace(plain, selection=Selection((EMOTIONS,), keep="every"))
    without = train_job(small, plain, tmp_path / "plain")
    record = train_job(small, keeping, tmp_path / "keeping")
    assert [one["round"] for one in record["training"]["rounds"]] == [0, 1, 2]
    assert record["training"]["rounds"][0]["train_loss"] == {}
    assert record["training"]["rounds"][0]["dev"].keys() == {EMOTIONS}
    kept, usual = select_comparable_parts(record), select_comparable_parts(without)
    assert kept["training"]["rounds"][1:] == usual["training"]["rounds"]
    assert chosen_in(record) == chosen_in(without)
    assert kept["results"] == usual["results"]
    rounds = tmp_path / "keeping" / "rounds"
    assert sorted(folder.name for folder in rounds.iterdir()) == ["0", "1", "2"]
    best = weights(rounds / str(chosen_in(record)[0]))
    assert same(best, weights(tmp_path / "keeping" / "checkpoint")) == best.keys()
    assert same(best, weights(tmp_path / "plain" / "checkpoint")) == best.keys()
    assert same(weights(rounds / "0"), weights(rounds / "2")) != best.keys()
    # A training that starts from a round begins where that round ended.
    for at in ("last", 1):
        start = replace(plain, starts=(Start(keeping, at=at),), training=STILL)  # type: ignore[arg-type]
        folder = get_round_folder(str(tmp_path / "keeping"), at)  # type: ignore[arg-type]
        again = train_job(small, start, tmp_path / f"from-{at}", (folder,))
        number = 2 if at == "last" else 1
        assert again["training"]["rounds"][0]["dev"] == record["training"]["rounds"][number]["dev"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_training_with_two_selections_is_two_trainings_with_one(
    family: Family, small: Path, tmp_path: Path
) -> None:
    """Scores, predictions, weights and later trainings equal those of two separate trainings."""
    both = (NLI, EMOTIONS)
    plain = small_stage(EMOTIONS, family=family, training=TRAINING)
    alone = [replace(plain, train_tasks=both, selection=Selection((task,))) for task in both]
    assert alone[0].digest == alone[1].digest
    together = merge_selections(alone[0], alone)
    assert together.digest == alone[0].digest
    assert together.tested == both
    record = train_job(small, together, tmp_path / "together")
    rows = read_record_rows(tmp_path / "together" / "metrics.json")
    for stage in alone:
        (task,) = stage.select_on
        by_itself = train_job(small, stage, tmp_path / task)
        assert get_selected_round(record, (task,)) == get_selected_round(by_itself, (task,))
        assert record["results"][task] == by_itself["results"][task]
        own = read_record_rows(tmp_path / task / "metrics.json")
        assert select_task_rows(rows, task).to_pylist() == own.to_pylist()
        rounds = zip(record["training"]["rounds"], by_itself["training"]["rounds"], strict=True)
        assert all(one["train_loss"] == other["train_loss"] for one, other in rounds)
        kept = get_round_folder(str(tmp_path / "together"), "best", (task,))
        usual = get_round_folder(str(tmp_path / task), "best", (task,))
        assert same(weights(Path(kept)), weights(Path(usual))) == weights(Path(usual)).keys()
        tuned = replace(stage, train_tasks=(task,), starts=(Start(stage),))
        again = [train_job(small, tuned, tmp_path / "tuned", (folder,)) for folder in (kept, usual)]
        for part in ("training", "results"):
            first, second = (select_comparable_parts(each)[part] for each in again)
            assert first == second


def test_a_training_is_repeated_for_a_selection_and_loses_none(small: Path, tmp_path: Path) -> None:
    both = (NLI, EMOTIONS)
    plain = replace(small_stage(EMOTIONS, training=TRAINING), train_tasks=both)
    first = train_job(small, plain, tmp_path)
    other = replace(plain, selection=Selection((NLI,)))
    asked = add_recorded_selections(other, tmp_path)
    assert [one.tasks for one in asked.selections] == [(NLI,), (EMOTIONS,)]
    assert describe_unrecorded_selections(other, first) == f"no round was selected on {NLI}"
    again = train_job(small, asked, tmp_path)
    assert describe_unrecorded_selections(asked, again) is None
    assert again["results"][EMOTIONS] == first["results"][EMOTIONS]


def test_a_stage_of_parts_of_several_others(small: Path, tmp_path: Path) -> None:
    """Merged encoders and the head of one; only the other head is trained."""
    firsts = [small_stage(task, training=TRAINING, kind="first") for task in (EMOTIONS, NLI)]
    folders = [tmp_path / stage.select_on[0] for stage in firsts]
    for stage, folder in zip(firsts, folders, strict=True):
        train_job(small, stage, folder)
    starts = (
        Start(None),
        Start(firsts[0], parts=("encoder",), merged="mean"),
        Start(firsts[1], parts=("encoder",), merged="mean"),
        Start(firsts[0], parts=(f"head.{EMOTIONS}",)),
    )
    both = (EMOTIONS, NLI)
    parts = {"starts": starts, "trains": (f"head.{NLI}",), "tests": both}
    stage = small_stage(NLI, selection=Selection(both, "loss"), training=TRAINING, **parts)
    places = tuple(str(folders[i] / "checkpoint") for i in (0, 1, 0))
    record = train_job(small, stage, tmp_path / "panel", places)
    assert record["node"]["parents"] == [first.digest for first in firsts]
    assert {*record["results"]} == {*both}
    (chosen,) = record["training"]["selections"]
    assert chosen["dev_score"] == min(chosen["scores"])
    encoders = [load_file(folder / "checkpoint" / "model.safetensors") for folder in folders]
    chosen_by_both = get_selected_round_folder(tmp_path / "panel" / "checkpoint", both)
    merged = load_file(chosen_by_both / "model.safetensors")
    for name, tensor in merged.items():
        mean = torch.stack([encoder[name] for encoder in encoders]).mean(0)
        assert torch.equal(tensor, mean), name
    saved = (*(each / "checkpoint" for each in folders), chosen_by_both)
    heads = [load_file(folder / "heads.safetensors") for folder in saved]
    for part in ("weight", "bias"):
        assert torch.equal(heads[2][f"{EMOTIONS}.{part}"], heads[0][f"{EMOTIONS}.{part}"])
        assert not torch.equal(heads[2][f"{NLI}.{part}"], heads[1][f"{NLI}.{part}"])


def test_a_round_that_was_not_kept_is_named_with_those_that_were(tmp_path: Path) -> None:
    for number in (0, 9, 10):
        (tmp_path / "rounds" / str(number)).mkdir(parents=True)
    assert find_round_folder(get_round_folder(str(tmp_path), 9)).endswith("rounds/9")
    words = r"rounds/11: The checkpoint of this round was not kept \(kept rounds: 0, 9, 10\)"
    with pytest.raises(ModelError, match=words):
        find_round_folder(get_round_folder(str(tmp_path), 11))
    with pytest.raises(ModelError, match=r"no round was kept.*keep: every"):
        find_round_folder(get_round_folder(str(tmp_path / "other"), 1))


def test_an_earlier_attempt_s_rounds_do_not_stay(small: Path, tmp_path: Path) -> None:
    (tmp_path / "rounds" / "77").mkdir(parents=True)
    stage = small_stage(
        EMOTIONS, training=STILL, selection=Selection((EMOTIONS,), "loss", every=2, keep="every")
    )
    train_job(small, stage, tmp_path)
    rounds = json.loads((tmp_path / "metrics.json").read_text())["training"]["rounds"]
    assert list_kept_rounds(tmp_path) == [one["round"] for one in rounds]
    last = find_round_folder(get_round_folder(str(tmp_path), "last"))
    assert last == str(tmp_path / "rounds" / str(rounds[-1]["round"]))


def test_a_finished_training_without_a_round_is_repeated_and_loses_none(
    small: Path, tmp_path: Path
) -> None:
    def keeping(*rounds: int) -> Stage:
        selection = Selection((EMOTIONS,), keep="every", rounds=rounds)
        return small_stage(EMOTIONS, training=TRAINING, selection=selection)

    def asking(stage: Stage) -> Job:
        return build_job(small, stage, tmp_path)

    first = train_job(small, keeping(0, 2), tmp_path)
    assert list_kept_rounds(tmp_path) == [0, 2]
    assert is_trained(asking(keeping(2)))
    assert not is_trained(asking(keeping(1, 2)))
    assert not is_trained(asking(keeping()))
    again = train_job(small, keeping(1), tmp_path)
    assert list_kept_rounds(tmp_path) == [0, 1, 2]
    for part in ("training", "results", "rows"):
        assert select_comparable_parts(first)[part] == select_comparable_parts(again)[part]
    assert is_trained(asking(keeping()))
    before = (tmp_path / "rounds" / "1" / "model.safetensors").stat().st_mtime_ns
    # This stage keeps its best round only.
    train_job(small, small_stage(EMOTIONS, training=TRAINING), tmp_path)
    assert list_kept_rounds(tmp_path) == [0, 1, 2]
    assert (tmp_path / "rounds" / "1" / "model.safetensors").stat().st_mtime_ns > before


def test_an_interrupted_training_starts_over_where_an_earlier_round_is_requested(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setenv(MIN_SECONDS_VARIABLE, "0")
    monkeypatch.setattr(Progress, "print_message", lambda self, text: lines.append(text))
    monkeypatch.setattr(Progress, "report_round", _killed_in_round_2)

    def killed(*rounds: int) -> str:
        lines.clear()
        selection = Selection((EMOTIONS,), keep="every", rounds=rounds)
        with pytest.raises(KeyboardInterrupt):
            stage = small_stage(EMOTIONS, training=TRAINING, selection=selection)
            train_job(small, stage, tmp_path)
        return "\n".join(lines)

    killed(0)
    assert "resumes after round 1" in killed(0)
    assert "The checkpoints of rounds 1 are missing, so the training starts over" in killed(1)
    assert list_kept_rounds(tmp_path) == [0, 1]


def _killed_in_round_2(self: Progress, number: int, *rest: object) -> None:
    if number == 2:
        raise KeyboardInterrupt
