"""What the jobs of a study are made from.

Everything is named after its content, so what is there is right whatever its time of change, and
needs nothing any more: a cache that was deleted is made again for new trainings only, and those
that are finished stay so. (Snakemake's `ancient()` is not enough: it runs a job again when an
ancient input of it is *missing* and made again.)
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tasktransfer.config import TINY
from tasktransfer.core.stage import Stage
from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError
from tasktransfer.results.finished import damage_of, is_whole
from tasktransfer.results.study import Study

Folders = dict[tuple[str, str], str]
"""dataset, model → the folder of token ids"""


def encoded_folders(study: Study) -> Folders:
    """Every folder of token ids of a study."""
    return {
        (dataset.name, model.name): study.encoded(dataset.name, model.name)
        for dataset in study.config.datasets
        for model in study.config.models
    }


def instances(study: Study, dataset: str, cache: str) -> list[str]:
    """What a folder of cached instances is made from: the generated tiny world; nothing for a
    release, which `tasktransfer` finds and checks."""
    generated = study.config.data.generated or is_tiny_world(study, dataset, cache)
    return _unless_there(f"{cache}/manifest.json", [study.tiny_world] if generated else [])


def is_tiny_world(study: Study, dataset: str, cache: str) -> bool:
    """Whether a folder of cached instances is the one that tiny models are pre-trained on."""
    return Path(study.tiny_instances(dataset)) == Path(cache)


def tiny_model(study: Study, folder: str) -> list[str]:
    """What a built-in tiny model is made from."""
    caches = [f"{study.tiny_instances(dataset)}/manifest.json" for dataset in DATASETS]
    return _unless_there(f"{folder}/config.json", caches)


def encoding(study: Study, folders: Folders, dataset: str, model: str) -> list[str]:
    """What token ids are made from."""
    needed = [f"{study.instances(dataset)}/manifest.json", *_model_files(study, model)]
    return _unless_there(f"{folders[dataset, model]}/manifest.json", needed)


def training(study: Study, folders: Folders, stage: Stage) -> list[str]:
    """What a training that is not finished reads: token ids, and what it starts from.

    Raises:
        RecordError: its record may not be read.
    """
    needed = [f"{folders[stage.dataset, stage.model.name]}/manifest.json"]
    if stage.parent is not None:
        return [*needed, study.checkpoint(stage.parent)]
    return [*needed, *_model_files(study, stage.model.name)]


def submission(study: Study, dataset: str, model: str) -> list[str]:
    """The records of one dataset and model: every run that may be submitted.

    Raises:
        ConfigError: the study is free, and has no submission.
    """
    if study.config.rules != "challenge":
        raise ConfigError(
            f"{study.config_file}: a free study has no submission: set rules: challenge"
        )
    stages = study.plan.stages
    return [study.record(s) for s in stages if (s.dataset, s.model.name) == (dataset, model)]


def counts_dialogues(study: Study, tables: list[str]) -> bool:
    """Whether figures show what the dialogues themselves tell (``tables``): where that is there,
    can be counted, or dialogues have to be prepared for trainings anyway. Where every record is
    there and the dialogues are not, figures come from records alone."""
    caches = [study.instances(dataset.name) for dataset in study.config.datasets]
    if all(Path(cache, "manifest.json").exists() for cache in caches):
        return True
    if all(Path(table).exists() for table in tables):
        return True
    return not all(is_whole(study, stage) for stage in study.plan.stages)


class DamagedRecords:
    """The damaged records that Snakemake came upon, as a file newer than any of them: as an input
    it makes Snakemake train their stages again, and say so in a dry run. The trainer sets the
    records aside."""

    def __init__(self, study: Study) -> None:
        self.file = Path(study.config.results, "logs", "damaged.log")
        self._records: dict[str, tuple[float, str]] = {}
        """record → (when it was changed, what is wrong with it)"""

    def inputs(self, study: Study, stage: Stage) -> list[str]:
        """The file, if the record of a stage is damaged.

        Raises:
            RecordError: the record may not be read.
        """
        record = study.record(stage)
        problem = damage_of(study, stage) if os.path.lexists(record) else None
        if problem is None:
            return []
        if record not in self._records:
            self._records[record] = (Path(record).lstat().st_mtime, problem)
            self._write()
            print(f"damaged, trained once more: {problem}", file=sys.stderr)
        return [str(self.file)]

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        # With the time: a file of the same content would not be taken for a new one.
        lines = [time.ctime(), *(problem for _, problem in self._records.values())]
        self.file.write_text("".join(f"{line}\n" for line in lines))
        # The clock of the machine that wrote a record may have been ahead of ours.
        newest = max(time.time(), *(1 + changed for changed, _ in self._records.values()))
        os.utime(self.file, (newest, newest))


def _model_files(study: Study, name: str) -> list[str]:
    """What of a built-in tiny model has to be there; nothing for other checkpoints."""
    tiny = study.model(name).checkpoint == TINY
    return [f"{study.tiny_model(name)}/config.json"] if tiny else []


def _unless_there(file: str, needed: list[str]) -> list[str]:
    return [] if Path(file).exists() else needed
