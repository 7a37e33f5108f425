"""Inputs of the measurements, prepared once: instances, weights, token ids, stages.

They are kept in the work folder, under names that depend on their sources.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.training_speed.cases import DATASET, LENGTHS, SEED, Case, Volume
from tasktransfer.config import TINY_WORLD
from tasktransfer.core.identity import ENCODING_VERSION, compute_digest
from tasktransfer.core.nodes import Stage
from tasktransfer.core.specs import Family
from tasktransfer.datasets import DATASETS
from tasktransfer.designs import open_study
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.errors import DataError, ModelError
from tasktransfer.files import replace_file
from tasktransfer.results.study import Study

RECIPE = 1
"""Version of the random weights, to be increased when they change."""


@dataclass(frozen=True, slots=True)
class Source:
    """Sources of the inputs.

    ``release``: a folder, or ``tiny_world``. ``weights``: the encoder's folder, or None for random
    weights. ``shapes``: size of random models (``weights.LAYERS_HIDDEN_HEADS``).
    """

    release: str
    weights: Path | None
    shapes: str
    work: Path


@dataclass(frozen=True, slots=True)
class Inputs:
    """Paths of all inputs. ``models`` and ``encoded`` are by family."""

    config: Path
    release: Path
    few_sample: bool
    models: dict[Family, Path]
    encoded: dict[Family, Path]

    def read_split(self, case: Case, name: str) -> EncodedSplit:
        """Return the token ids of a case's split."""
        return read_split(self.encoded[case.family], case.task, name)

    def read_model_config(self, family: Family) -> dict[str, Any]:
        """Return a model's ``config.json``."""
        found: dict[str, Any] = json.loads((self.models[family] / "config.json").read_bytes())
        return found

    def find_stage(self, case: Case, volume: Volume) -> Stage:
        """Return the planned baseline of a case's task, limited to the volume's instances."""
        study = open_study(self.config, limit_training(volume))
        for stage in study.plan.stages:
            if stage.train_tasks == (case.task,) and stage.model.family == case.family:
                return stage
        raise DataError(f"{self.config}: The plan has no baseline of {case.name}, which is a bug.")


def limit_training(volume: Volume) -> dict[str, dict[str, int | None]]:
    """Return the overrides of a config that limit its trainings to a volume."""
    limits = {
        "epochs": volume.epochs,
        "limit_train": volume.instances,
        "limit_dev": volume.evaluate,
        "limit_test": volume.evaluate,
    }
    return {"training": limits}


def prepare_inputs(source: Source, cases: Sequence[Case]) -> Inputs:
    """Prepare missing inputs.

    Raises:
        DataError: the release is missing or damaged.
        ModelError: ``weights`` does not contain a model.
    """
    if source.weights is not None and not (source.weights / "config.json").is_file():
        raise ModelError(
            f"{source.weights}: The folder has no config.json. Install the small encoder with "
            "`make minilm`, or omit --weights to use random weights."
        )
    tasks = tuple(sorted({case.task for case in cases}))
    families = tuple(dict.fromkeys(case.family for case in cases))
    made_from = {"shapes": source.shapes, "recipe": RECIPE, "data": source.release}
    models = {
        family: source.work / "models" / f"{family}-{source.shapes}-{compute_digest(made_from)[:8]}"
        for family in families
    }
    own = source.weights is not None and "encoder" in models and source.shapes != "base"
    if own:
        assert source.weights is not None
        models["encoder"] = source.weights.resolve()
    config = _write_config(source, tasks, models)
    study = open_study(config, need_inputs=False)
    instances = _prepare_instances(study)
    encoded = {}
    for family, folder in models.items():
        mine = tuple(sorted({case.task for case in cases if case.family == family}))
        key = {"model": str(folder), "tasks": mine, "data": study.revisions.data[DATASET]}
        name = f"{family}-{compute_digest({**key, 'encoding': ENCODING_VERSION, **made_from})[:8]}"
        encoded[family] = source.work / "encoded" / name
        random = not (own and family == "encoder")
        _prepare_family(source, family, folder, instances, mine, encoded[family], random=random)
    few = study.config.data.few_sample
    return Inputs(config.resolve(), Path(study.release).resolve(), few, models, encoded)


def _write_config(source: Source, tasks: Sequence[str], models: dict[Family, Path]) -> Path:
    generated = source.release == TINY_WORLD
    value = {
        "study": "bench",
        "results": str(source.work.resolve()),
        "data": {
            "release": TINY_WORLD if generated else str(Path(source.release).resolve()),
            "few_sample": not generated,  # a tenth of the tiny world would be too little
        },
        "datasets": {DATASET: {"tasks": list(tasks)}},
        "models": [
            {
                "name": family,
                "family": family,
                "checkpoint": str(folder.resolve()),
                "max_length": LENGTHS[family],
            }
            for family, folder in models.items()
        ],
        "algorithms": ["baseline"],
        "seeds": [SEED],
    }
    file = source.work / f"config-{compute_digest(value)[:8]}.yaml"
    with replace_file(file) as part:
        part.write_text(json.dumps(value, indent=1))  # JSON is YAML
    return file


def _prepare_instances(study: Study) -> Path:
    from tasktransfer.data import cache

    if study.config.data.generated and not Path(study.tiny_world).exists():
        from tasktransfer.datasets.tiny_world import generate_releases

        made_from = study.config.data.tiny_world
        generate_releases(
            Path(study.tiny_world), seed=made_from.seed, dialogues=made_from.dialogues
        )
    folder = Path(study.get_instances_folder(DATASET))
    if not (folder / "manifest.json").exists():
        _print_message(f"reading {study.release}")
        cache.cache_dataset(DATASET, study.release, study.config.data.few_sample, folder)
    return folder


def _prepare_family(
    source: Source,
    family: Family,
    model: Path,
    instances: Path,
    tasks: Sequence[str],
    encoded: Path,
    *,
    random: bool,
) -> None:
    """Prepare a family's token ids, and its weights if they are random."""
    from tasktransfer.encoding.encode import encode_dataset

    if random and not (model / "config.json").exists():
        _make_weights(source, family, model, instances)
    if not (encoded / "manifest.json").exists():
        _print_message(f"encoding for {model.name}")
        encode_dataset(
            instances, DATASET, tasks, str(model), None, family, LENGTHS[family], encoded
        )


def _make_weights(source: Source, family: Family, model: Path, instances: Path) -> None:
    from benchmarks.training_speed import weights
    from tasktransfer.encoding.encode import encode_dataset
    from tasktransfer.encoding.tokenizer import load_tokenizer

    _print_message(f"creating random weights: {family}, {source.shapes}")
    learned = ("emotion_recognition", "dialogue_reasoning_span_extraction")
    texts = weights.build_texts(
        instances, DATASET, [t for t in learned if t in DATASETS[DATASET].tasks]
    )
    building = model.with_name(f".{model.name}.part")
    shutil.rmtree(building, ignore_errors=True)
    given = source.weights is not None and family == "encoder"
    tokenizer = load_tokenizer(str(source.weights), None, family) if given else None
    weights.write_random_model(family, source.shapes, texts, tokenizer, building)
    if family != "encoder":
        ids = building.with_name(f".{model.name}.ids.part")
        encode_dataset(
            instances, DATASET, learned, str(building), None, family, LENGTHS[family], ids
        )
        weights.teach_to_end(family, building, ids, learned)
        shutil.rmtree(ids)
    building.rename(model)


def read_used_splits(inputs: Inputs, case: Case, volume: Volume) -> dict[str, EncodedSplit]:
    """Return the used parts of a case's train, dev and test splits."""
    limits = {"train": volume.instances, "dev": volume.evaluate, "test": volume.evaluate}
    return {
        name: inputs.read_split(case, name).limit_instances(limit) for name, limit in limits.items()
    }


def as_dict(volume: Volume) -> dict[str, Any]:
    """Convert a volume for ``cases.Work``."""
    return asdict(volume)


def _print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
