"""Probes: fits, refused inputs, and the references next to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from planned_presets import PRESETS, plan_preset
from tasktransfer.designs import load_config, open_study
from tasktransfer.designs.probes.figures import read_judgements, resample_ties
from tasktransfer.designs.probes.plan import map_word_count_names
from tasktransfer.designs.probes.word_vectors import read_vectors, score_agreement
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.fits.mlp_probes import fit_mlp
from tasktransfer.fits.probes import (
    ProbeInputs,
    compute_micro_f1,
    find_best_constant_answer,
    fit_probes,
    shuffle_labels_by_type,
)
from tasktransfer.jobs.probe_job import check_held_out_dialogues, select_sample
from tasktransfer.tasks.card import Instance


def instance(number: int, target: tuple[str, ...], kind: str = "a") -> Instance:
    return Instance(
        id=f"d{number}-1",
        dialogue_id=f"d{number}",
        task="t",
        context=f"text {number}",
        focus=0,
        query={"type": kind},
        options=(),
        target=target,
    )


def given(
    tmp_path: Path, train: list[Instance], test: list[Instance], matrix: Any, **settings: Any
) -> tuple[ProbeInputs, list[str]]:
    place = {one.id: row for row, one in enumerate([*train, *test])}
    notes: list[str] = []
    read = {"t": {"train": train, "test": test}}

    def features(instances: Any) -> Any:
        return matrix[[place[one.id] for one in instances]]

    return ProbeInputs(read, features, settings, 0, tmp_path, notes.append), notes


def some(count: int, chance: np.random.Generator) -> tuple[list[Instance], Any]:
    matrix = chance.normal(size=(count, 4))
    labels = np.where(matrix[:, 0] > 0, "yes", "no")
    return [instance(n, (str(label),)) for n, label in enumerate(labels)], matrix


def test_what_can_be_read_is_read_and_shuffled_labels_are_not(tmp_path: Path) -> None:
    rows, matrix = some(300, np.random.default_rng(0))
    inputs, notes = given(tmp_path, rows[:200], rows[200:], matrix)
    fitted = fit_probes(inputs)
    measures = fitted.measures["t"]
    assert measures["micro_f1"] > 90
    assert abs(measures["shuffled_f1"] - 50) < 20
    assert measures["selectivity"] == measures["micro_f1"] - measures["shuffled_f1"]
    assert not notes
    assert (tmp_path / "t" / "probe.safetensors").is_file()
    ours = [row for row in fitted.rows if row.task == "t"]
    predicted = [row.prediction for row in ours]
    assert compute_micro_f1(predicted, [row.gold for row in ours]) == measures["micro_f1"]
    again = fit_probes(given(tmp_path, rows[:200], rows[200:], matrix)[0])
    assert again.measures == fitted.measures


def test_the_released_codes_way_may_answer_nothing(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    matrix = chance.normal(size=(200, 3)) * 0.01
    rows = [instance(n, (str(chance.integers(5)),)) for n in range(200)]
    fitted = fit_probes(given(tmp_path, rows[:150], rows[150:], matrix, release_compat=True)[0])
    assert fitted.measures["t"]["micro_f1"] == 0.0
    ours = fit_probes(given(tmp_path, rows[:150], rows[150:], matrix)[0])
    assert ours.measures["t"]["micro_f1"] > 0


@pytest.mark.parametrize("classes", [2, 5])
def test_an_mlp_answers_one_label_and_reads_what_a_linear_probe_reads(
    classes: int, tmp_path: Path
) -> None:
    chance = np.random.default_rng(1)
    matrix = chance.normal(size=(700, 12))
    scores = matrix @ chance.normal(size=(12, classes)) + chance.normal(size=(700, classes))
    rows = [instance(n, (str(label),)) for n, label in enumerate(scores.argmax(1))]
    fitted = fit_probes(given(tmp_path, rows[:500], rows[500:], matrix, mlp=2)[0])
    measures = fitted.measures["t"]
    assert measures["mlp_f1"] > measures["prior_f1"] + 20
    assert measures["mlp_f1"] > measures["micro_f1"] - 10
    answers = [row.prediction for row in fitted.rows if row.task == "t+mlp"]
    assert {len(answer) for answer in answers} == {1}


def test_an_mlp_reads_sets_of_labels_of_which_each_is_rare() -> None:
    """By the fraction of completely correct sets, none of the first passes is better."""
    chance = np.random.default_rng(0)
    matrix = chance.normal(size=(1500, 24))
    scores = matrix @ chance.normal(size=(24, 60)) / 5
    golds = [tuple(str(k) for k in np.flatnonzero(row > 1.4)) for row in scores]
    dialogues = [str(n // 5) for n in range(1500)]
    probe = fit_mlp(matrix[:1200], golds[:1200], dialogues[:1200], 0, one=False)
    assert compute_micro_f1(probe.predict(matrix[1200:]), golds[1200:]) > 50
    again = fit_mlp(matrix[:1200], golds[:1200], dialogues[:1200], 0, one=False)
    assert again.predict(matrix) == probe.predict(matrix)


def test_one_class_in_training_is_refused(tmp_path: Path) -> None:
    rows = [instance(n, ("only",)) for n in range(5)]
    inputs, _ = given(tmp_path, rows[:3], rows[3:], np.zeros((5, 2)))
    told = r"t: .* all 3 training instances have 'only' .from d0-1 .* to d2-1"
    with pytest.raises(DataError, match=told):
        fit_probes(inputs)
    inputs, _ = given(tmp_path, [instance(n, ()) for n in range(3)], rows[3:], np.zeros((5, 2)))
    with pytest.raises(DataError, match=r"have no label .from d0-1"):
        fit_probes(inputs)


def test_a_representation_that_is_nan_is_refused(tmp_path: Path) -> None:
    rows, matrix = some(30, np.random.default_rng(0))
    matrix[7, 2] = np.nan
    inputs, _ = given(tmp_path, rows[:20], rows[20:], matrix)
    with pytest.raises(DataError, match=r"instance d7-1 .* contains the value nan\. Train"):
        fit_probes(inputs)


def test_a_class_that_only_the_test_has_is_noted(tmp_path: Path) -> None:
    rows, matrix = some(60, np.random.default_rng(0))
    rows[59] = instance(59, ("maybe",))
    inputs, notes = given(tmp_path, rows[:40], rows[40:], matrix)
    fit_probes(inputs)
    assert (
        "1 label that the training split does not have, such as 'maybe' of instance d59-1"
        in notes[0]
    )


def test_too_few_iterations_are_noted(tmp_path: Path) -> None:
    rows, matrix = some(60, np.random.default_rng(0))
    inputs, notes = given(tmp_path, rows[:40], rows[40:], matrix, max_iter=1)
    fit_probes(inputs)
    assert any("stopped after max_iter 1 iterations" in note for note in notes)


def test_training_rows_of_held_out_dialogues_are_refused() -> None:
    read: Any = {"t": {"train": [instance(1, ("a",))], "test": [instance(2, ("b",))]}}
    check_held_out_dialogues(read, frozenset({"d3"}), "cache")
    with pytest.raises(DataError, match=r"cache: .* t, .*dialogue d1 \(instance d1-1\).* held-out"):
        check_held_out_dialogues(read, frozenset({"d1"}), "cache")
    read["t"]["test"].append(instance(1, ("a",)))
    with pytest.raises(DataError, match="dialogue d1 "):
        check_held_out_dialogues(read, frozenset(), "cache")


def test_shuffling_keeps_labels_within_their_type() -> None:
    rows = [instance(n, (f"{n % 2}-{n}",), kind=str(n % 2)) for n in range(40)]
    mixed = shuffle_labels_by_type(rows, 0)
    assert sorted(mixed) == sorted(row.target for row in rows)
    assert all(label[0][0] == row.query["type"] for label, row in zip(mixed, rows, strict=True))
    assert mixed != [row.target for row in rows]
    assert mixed == shuffle_labels_by_type(rows, 0) != shuffle_labels_by_type(rows, 1)


def test_the_best_constant_answer() -> None:
    assert find_best_constant_answer([("a",), ("b",), ("b",)]) == ("b",)
    # a alone: 2 * 3 / (4 + 5); a and b: 2 * 5 / (8 + 5).
    assert find_best_constant_answer([("a", "b"), ("a", "b"), ("a",), ()]) == ("a", "b")


def test_a_limit_takes_the_same_rows_whatever_the_seed() -> None:
    rows = [instance(n, ("a",)) for n in range(50)]
    assert select_sample(rows, 10) == select_sample(rows, 10)
    assert len(select_sample(rows, 10)) == 10
    assert select_sample(rows, None) == select_sample(rows, 99) == rows


def test_ties_under_resampling() -> None:
    """Samples of 200 from 2,000 judgements with 35 % ties have a standard deviation of 3.2 points.

    It would be 3.4 without the correction for sampling without replacement.
    """
    shares = resample_ties(np.arange(2000) < 700)
    assert shares.mean() == pytest.approx(35, abs=0.1)
    assert shares.std() == pytest.approx(100 * np.sqrt(0.35 * 0.65 / 200 * 1800 / 1999), abs=0.05)


def test_ties_of_a_users_judgements(tmp_path: Path) -> None:
    file = tmp_path / "judgements.csv"
    file.write_text("id,choice\n1,tie\n2,first\n3, tie\n4,second\n")
    assert read_judgements(file).tolist() == [True, False, True, False]
    file.write_text("id,answer\n1,tie\n")
    with pytest.raises(
        DataError,
        match=r"judgements\.csv:1: The column choice is missing. .* the columns .id, answer",
    ):
        read_judgements(file)
    with pytest.raises(DataError, match=r"none\.csv: The file is missing"):
        read_judgements(tmp_path / "none.csv")


def test_agreement_by_word_vectors_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("3 2\ncat 1 0\ndog 0 1\nhot 2 2\n")
    vectors = read_vectors(file)
    assert score_agreement([("Hot cat", "cat hot")], vectors) == 0
    # (1, 0) - (0, 1): mean square 1. (2, 2) - nothing: 4.
    assert score_agreement([("cat", "dog"), ("hot", "unheard of")], vectors) == -2.5
    file.write_text("cat 1 0\ndog 0 1 2\n")
    with pytest.raises(
        DataError,
        match=r"vectors\.txt:2: The line must contain a word and 2 numbers, but is 'dog 0 1 2'",
    ):
        read_vectors(file)


def test_word_vectors_of_an_encoder_are_its_input_embeddings_of_whole_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="The folder contains no encoder with word embeddings"):
        read_vectors(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged, and no tensors at all")
    with pytest.raises(DataError, match="The folder contains no encoder with word embeddings"):
        read_vectors(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\ncat\n##s\n")
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    save_file({"embeddings.word_embeddings.weight": rows}, tmp_path / "model.safetensors")
    vectors = read_vectors(tmp_path)
    assert {word: vector.tolist() for word, vector in vectors.items()} == {"cat": [2, 3]}
    (tmp_path / "vocab.txt").write_text("[PAD]\ncat\n")
    with pytest.raises(DataError, match="The folder contains no encoder with word embeddings"):
        read_vectors(tmp_path)


# --- plan and config ----------------------------------------------------------------------------


def of_preset(**probes: Any) -> Any:
    """Return the plan of the paper's preset with other keys of its section ``probes``."""
    return plan_preset("probes", **({"probes": probes} if probes else {}))[1]


@pytest.mark.parametrize(("snapshots", "probes"), [(None, 855), ("all", 7410)])
def test_the_papers_plan(snapshots: str | None, probes: int) -> None:
    planned = of_preset(**({"snapshots": snapshots} if snapshots else {}))
    assert len(planned.stages) == 30
    assert sum(run.method != "words" for run in planned.runs) == probes
    fits = [fit for fit in planned.fits if fit.learner == "probes"]
    assert len(fits) == probes // 19 * 2
    (kept,) = {stage.selection.rounds for stage in planned.stages}
    assert kept == (tuple(range(26)) if snapshots else (0, 25))


def test_no_two_seeds_share_a_fit_and_defaults_stay_out_of_identities() -> None:
    fits = of_preset().fits
    assert len({fit.digest for fit in fits}) == len(fits)
    probing = next(fit for fit in fits if fit.learner == "probes")
    assert not {"mlp", "release_compat", "limit_train"} & probing.identity["settings"].keys()
    other = of_preset(release_compat=True)
    assert next(f for f in other.fits if f.on).settings["representation"] == "sum"
    assert {stage.selection.measure for stage in other.stages} == {"bleu2_exchanged"}


def test_word_vectors_ask_what_each_snapshot_says_and_change_no_other_node() -> None:
    plain, more = of_preset(), of_preset(word_vectors="glove.txt")
    assert len(more.evaluations) == 30 * 3
    assert {node.digest for node in plain.fits} == {node.digest for node in more.fits}
    assert {node.split for node in more.evaluations} == {"dev"}


def trainings(**changed: Any) -> dict[str, set[str]]:
    """Return model → digests of its trainings, in the paper's preset with changes."""
    digests: dict[str, set[str]] = {}
    for stage in plan_preset("probes", **changed)[1].stages:
        digests.setdefault(stage.model.name, set()).add(stage.digest)
    return digests


def with_architecture(**changed: Any) -> list[dict[str, Any]]:
    models = yaml.safe_load((PRESETS / "probes.yaml").read_text())["models"]
    return [{**each, "architecture": {**each["architecture"], **changed}} for each in models]


def test_what_is_probed_is_not_part_of_a_training() -> None:
    usual = trainings()
    assert trainings(probes={"snapshots": "all"}) == usual
    assert trainings(probes={"snapshots": ["best", 7], "wordcont_text": "target"}) == usual


@pytest.mark.parametrize(
    "changed",
    [
        {"models": with_architecture(heads=4)},
        {"models": with_architecture(feed_forward=64)},
        {"training": {"dropout": 0.1}},
    ],
)
def test_a_key_that_recurrent_models_do_not_read_changes_the_transformer_alone(
    changed: dict[str, Any],
) -> None:
    usual, other = trainings(), trainings(**changed)
    assert {name for name in usual if usual[name] != other[name]} == {"Transformer"}


def test_where_a_word_is_looked_for_is_not_part_of_probes_that_ask_for_none() -> None:
    usual, other = of_preset(), of_preset(wordcont_text="target")
    kept = {fit.digest for fit in usual.fits} & {fit.digest for fit in other.fits}
    assert {f.data.name for f in usual.fits if f.digest in kept} == {"MultiWOZ"}
    assert {f.data.name for f in usual.fits if f.digest not in kept} == {"PersonaChat"}


def test_counts_of_words_are_of_what_the_encoders_read() -> None:
    words = [fit for fit in of_preset().fits if fit.learner == "probes_of_words"]
    assert [fit.settings["reads"] for fit in words] == [{"max_length": 100}] * 2
    config = load_config(PRESETS / "probes.yaml", {"models": with_lengths(50, 100, 50, 50, 50)})
    named = map_word_count_names(config)  # type: ignore[arg-type]
    assert named["LSTM"] == named["HRED"] == "words as LSTM"
    assert named["LSTM-attention"] == "words as LSTM-attention"


def with_lengths(*lengths: int) -> list[dict[str, Any]]:
    both = zip(with_architecture(), lengths, strict=True)
    return [{**each, "max_length": length} for each, length in both]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"probes": {"tasks": ["RecentTopics"]}},
            "The probe 'RecentTopics' is unknown.*'RecentTopic'",
        ),
        (
            {"probes": {"snapshots": [30]}},
            r"probes.snapshots\[0\]: The value is 30, but training.epochs is 25",
        ),
        ({"corpora": ["MultiWoz"]}, "corpora"),
        ({"models": [{"name": "a", "family": "encoder"}]}, "either an architecture or a check"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(PRESETS / "probes.yaml", changed)


def test_the_laptop_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PRESETS.parents[1])
    study = open_study(PRESETS / "probes-laptop.yaml", need_inputs=False)
    assert len(study.plan.stages) == 20


def test_encoders_of_other_studies_plan_without_a_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan names derived data only, but their source has a path too."""
    monkeypatch.chdir(PRESETS.parents[1])
    study = open_study(PRESETS / "probes-any.yaml", need_inputs=False)
    assert not study.plan.stages
    for corpus in ("MultiWOZ", "PersonaChat"):
        assert study.get_released_data(corpus).recipe == ""
        assert study.get_instances_folder(corpus)
    with pytest.raises(ConfigError, match="The study does not read the dataset 'Nowhere'"):
        study.get_released_data("Nowhere")
