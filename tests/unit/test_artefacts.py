"""Artefacts are checked by their readers: swapped, damaged and lost ones of every kind of node."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from test_train_stage import EMOTIONS, TRAINING

from finished_stages import finish, opened
from small_models import Loader, small_stage, train_job
from tasktransfer.core.nodes import Data, Fit, Stage, Start
from tasktransfer.core.specs import Selection
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.designs import get_design, open_study
from tasktransfer.errors import ModelError, RecordError, TaskTransferError
from tasktransfer.fits import LEARNERS
from tasktransfer.jobs import inputs, node_jobs
from tasktransfer.models.weights import read_weights
from tasktransfer.results.artefacts import check_artefacts, find_artefact_problem
from tasktransfer.results.damage import ValidFolderCache, find_damage
from tasktransfer.results.records import read_record, write_record
from tasktransfer.results.rounds import check_round_folder
from tasktransfer.results.study import Study

DESIGN = Path(__file__).resolve().parents[1] / "toy_design.py"

# --- kept weights -------------------------------------------------------------------------------

FIRST = small_stage(EMOTIONS, training=TRAINING, selection=Selection((EMOTIONS,), keep="every"))
OTHER = replace(FIRST, seed=1)
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def trained(
    load: Loader, models_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Run two trainings of one shape that keep their rounds."""
    folder = tmp_path_factory.mktemp("trained")
    for stage, name in ((FIRST, "first"), (OTHER, "other")):
        train_job(models_folder, stage, folder / name)
    return {name: folder / name for name in ("first", "other")}


@pytest.fixture
def kept(trained: dict[str, Path], tmp_path: Path) -> Path:
    """Return a copy of the first of them to damage, with its times."""
    shutil.copytree(trained["first"], tmp_path / "kept")
    return tmp_path / "kept"


def one_nan(file: Path) -> None:
    weights = load_file(file)
    weights[min(weights)].view(-1)[0] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def swapped(file: Path, trained: dict[str, Path]) -> None:
    kept = next(folder for folder in file.parents if folder.name == "kept")
    shutil.copy(trained["other"] / file.relative_to(kept), file)


Harm = Callable[[Path, dict[str, Path]], Any]
HARMS: dict[str, tuple[Harm, str]] = {
    "another's": (
        swapped,
        "model.safetensors: The SHA-256 of the file does not match",
    ),
    "one NaN": (lambda file, _: one_nan(file), "model.safetensors: The SHA-256"),
    "cut off": (
        lambda file, _: cut(file),
        "model.safetensors: The file has .* bytes, but the record",
    ),
    "gone": (lambda file, _: file.unlink(), "model.safetensors: The file is missing"),
    "another's heads": (
        lambda file, trained: swapped(file.with_name("heads.safetensors"), trained),
        "heads.safetensors: The SHA-256",
    ),
    "adapters put in": (
        lambda file, _: shutil.copy(file, file.with_name("adapters.safetensors")),
        "adapters.safetensors: The record of its node does not list this file",
    ),
}


@pytest.mark.parametrize(("harm", "said"), HARMS.values(), ids=HARMS)
@pytest.mark.parametrize("at", ["best", 1])
def test_a_training_does_not_start_from_what_another_has_left(
    at: Any, harm: Harm, said: str, trained: dict[str, Path], kept: Path, small: Path
) -> None:
    folder = kept / ("checkpoint" if at == "best" else f"rounds/{at}")
    stage = replace(small_stage(EMOTIONS, training=TRAINING), starts=(Start(FIRST, at=at),))
    harm(folder / WEIGHTS, trained)
    with pytest.raises(RecordError, match=said) as told:
        train_job(small, stage, kept.parent / "out", (str(folder),))
    assert f"Delete {kept}/metrics.json and run the study with snakemake" in str(told.value)
    assert not (kept.parent / "out" / "metrics.json").exists()


@pytest.fixture
def small(load: Loader, models_folder: Path) -> Path:
    return models_folder


def test_what_is_right_is_read(kept: Path) -> None:
    assert check_round_folder(f"{kept}/checkpoint", FIRST.digest) == f"{kept}/checkpoint"
    assert check_round_folder(f"{kept}/rounds/last", FIRST.digest) == f"{kept}/rounds/2"
    # Snakemake leaves a hidden file in the folders that are outputs.
    (kept / "checkpoint" / ".snakemake_timestamp").touch()
    check_round_folder(f"{kept}/checkpoint", FIRST.digest)


def test_another_stages_whole_folder_is_refused(trained: dict[str, Path]) -> None:
    with pytest.raises(RecordError, match=r"belongs to node .*, expected"):
        check_round_folder(str(trained["other"] / "checkpoint"), FIRST.digest)


def test_old_records_have_no_checksums_and_are_read(kept: Path) -> None:
    record = read_record(kept / "metrics.json")
    del record["artefacts"]
    write_record(kept / "metrics.json", record)
    one_nan(kept / "checkpoint" / WEIGHTS)
    check_round_folder(f"{kept}/checkpoint", FIRST.digest)
    assert find_damage(kept, FIRST.digest, "all") is None


@pytest.mark.parametrize("harm", [one_nan, cut, lambda file: file.unlink()])
def test_weights_without_checksums_are_looked_at_when_they_are_read(
    harm: Callable[[Path], Any], kept: Path
) -> None:
    file = kept / "checkpoint" / "heads.safetensors"
    harm(file)
    with pytest.raises(
        ModelError, match=r"heads\.safetensors: .*(NaN|damaged|does not exist).* again"
    ):
        read_weights(file)


# --- finished nodes -----------------------------------------------------------------------------


def test_weights_that_are_gone_are_no_damage(kept: Path) -> None:
    """Weights are removed once no node starts from them."""
    shutil.rmtree(kept / "checkpoint")
    shutil.rmtree(kept / "rounds")
    assert find_damage(kept, FIRST.digest, "all") is None


def test_what_is_younger_than_its_record_is_read_and_the_rest_by_size(kept: Path) -> None:
    file, record = kept / "checkpoint" / WEIGHTS, kept / "metrics.json"
    assert find_damage(kept, FIRST.digest) is None
    one_nan(file)
    assert "SHA-256" in str(find_damage(kept, FIRST.digest))
    long_ago = record.stat().st_mtime - 60
    os.utime(file, (long_ago, long_ago))
    assert find_damage(kept, FIRST.digest) is None
    assert "SHA-256" in str(find_damage(kept, FIRST.digest, "all"))
    assert find_damage(kept, FIRST.digest, "none") is None
    cut(file)
    os.utime(file, (long_ago, long_ago))
    assert "record of its node" in str(find_damage(kept, FIRST.digest))


def test_what_was_right_once_and_is_another_now_is_read_whatever_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = opened()
    stage = next(s for s in study.plan.stages if s.kind == "baseline")
    folder = finish(study, stage)
    file, results = folder / "checkpoint" / WEIGHTS, tmp_path / study.config.results
    known = ValidFolderCache(results)
    assert known.find_damage(stage, str(folder)) is None
    known.save()
    content, before = file.read_bytes(), file.stat()
    file.write_bytes(content[:-1] + b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (
        ValidFolderCache(results / "none").find_damage(stage, str(folder)) is None
    )  # never seen before
    assert "SHA-256" in str(ValidFolderCache(results).find_damage(stage, str(folder)))


def test_a_record_names_files_of_its_own_folder_alone(kept: Path) -> None:
    record: Any = read_record(kept / "metrics.json")
    for name in ("../other/metrics.json", "/etc/passwd", "a/../b", ".claim", ""):
        record["artefacts"] = {name: {"bytes": 0, "sha256": "0" * 64}}
        with pytest.raises(RecordError, match="artefacts"):
            write_record(kept / "metrics.json", record)


# --- fits and derived data ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Run the jobs of a fit, and of the data derived by it, without a model."""
    folder = tmp_path_factory.mktemp("made")
    config = {
        "study": "toy",
        "design": "toy",
        "plugins": [str(DESIGN)],
        "results": str(folder / "results"),
        "data": {"tiny_world": {"dialogues": 120}},
        "models": [{"name": "m", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    }
    (folder / "study.yaml").write_text(json.dumps(config))
    study = open_study(folder / "study.yaml")
    generate_releases(Path(study.tiny_world), seed=0, dialogues=120)
    cache_dataset("DailyDialog", study.tiny_world, True, study.get_instances_folder("DailyDialog"))
    design = get_design(study.config)
    node_jobs.fit_node(study, study.plan.fits[0], design)
    node_jobs.derive_data(study, study.plan.derived[0], design)
    return study


@pytest.fixture
def study(made: Study, tmp_path: Path) -> Study:
    """Return a copy of the study to damage."""
    shutil.copytree(Path(made.config.results), tmp_path / "results")
    content = json.loads(Path(made.config_file).read_text())
    (tmp_path / "study.yaml").write_text(
        json.dumps(content | {"results": str(tmp_path / "results")})
    )
    return open_study(tmp_path / "study.yaml")


def rolled(file: Path) -> None:
    """Return weights with their rows rotated by one: as large, and valid by themselves."""
    save_arrays({name: np.roll(rows, 1, axis=0) for name, rows in load_arrays(file).items()}, file)


@pytest.mark.parametrize(
    ("harm", "said"), [(rolled, "The SHA-256"), (cut, "The file has .* bytes")]
)
def test_a_fit_that_was_changed_makes_no_data_and_no_scores(
    harm: Callable[[Path], Any], said: str, study: Study
) -> None:
    fit, data = study.plan.fits[0], study.plan.derived[0]
    file = Path(study.get_node_folder(fit), fit.tasks[0], "classifier.safetensors")
    harm(file)
    evaluation = next(e for e in study.plan.evaluations if isinstance(e.of, Fit))
    Path(study.get_record_path(data)).unlink()
    for job in (
        lambda: node_jobs.derive_data(study, data, get_design(study.config)),
        lambda: node_jobs.evaluate_node(study, evaluation, get_design(study.config), 1),
    ):
        with pytest.raises(TaskTransferError, match=f"{file}: .*{said}.*with snakemake"):
            job()
    # Its own job repeats it.
    node_jobs.fit_node(study, fit, get_design(study.config))
    node_jobs.derive_data(study, data, get_design(study.config))
    assert (
        find_artefact_problem(
            Path(study.get_node_folder(fit)), read(study, fit)["artefacts"], every=True
        )
        is None
    )


def read(study: Study, node: Fit | Data) -> Any:
    return read_record(Path(study.get_record_path(node)))


def test_a_fasttext_models_rows_are_its_records(tmp_path: Path, study: Study) -> None:
    fit = study.plan.fits[0]
    instances = read_instances(study.get_instances_folder("DailyDialog"), fit.tasks[0], "train")
    from tasktransfer.datasets import get_task  # noqa: PLC0415

    learner = LEARNERS["fasttext"]
    card = get_task("DailyDialog", fit.tasks[0])
    folder = Path(study.get_node_folder(fit), card.name)
    learner.fit(card, instances, None, {"epoch": 1}, 0).save(folder)
    with pytest.raises(RecordError, match=r"classifier\.(safetensors|json): "):
        inputs.load_fit_classifier(study, fit, card, learner)


def test_derived_tables_are_those_of_their_recipe(study: Study) -> None:
    data = study.plan.derived[0]
    task = study.list_tasks(data)[0]
    folder = inputs.get_cache(study, data)
    train, dev = (folder / f"{task}-{split}.arrow" for split in ("train", "dev"))
    content = train.read_bytes()
    shutil.copy(dev, train)
    with pytest.raises(TaskTransferError, match=r"train\.arrow: The SHA-256"):
        read_instances(folder, task, "train")
    train.write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["synthetic"] = False
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    with pytest.raises(RecordError, match=r"manifest\.json: .*the record"):
        inputs.get_cache(study, data)


def test_parts_that_the_record_does_not_name_are_not_looked_at(kept: Path) -> None:
    (kept / "notes.txt").write_text("mine")
    check_artefacts(kept, FIRST.digest, ["checkpoint"])


def test_a_stage_that_keeps_nothing_names_nothing(small: Path, tmp_path: Path) -> None:
    stage: Stage = small_stage(EMOTIONS, training=replace(TRAINING, epochs=1))
    record = train_job(small, stage, tmp_path / "out", save_checkpoint=False)
    assert "artefacts" not in record
