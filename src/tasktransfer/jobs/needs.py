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
from tasktransfer.core.nodes import Data, Evaluation, Fit, Node, Outcome, Stage, Start
from tasktransfer.results.finished import damage_of
from tasktransfer.results.study import Study


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
    caches = [f"{cache}/manifest.json" for cache in study.tiny_texts]
    return _unless_there(f"{folder}/config.json", caches)


def encoding(study: Study, folder: str) -> list[str]:
    """What token ids are made from."""
    data, model = study.encoded_folders[folder]
    made = study.record(data) if data.recipe else f"{study.instances(data.name)}/manifest.json"
    return _unless_there(f"{folder}/manifest.json", [made, *_model_files(study, model)])


def of(study: Study, node: Node) -> list[str]:
    """What the job of a node that is not finished reads."""
    return _training(study, node) if isinstance(node, Stage) else _library_job(study, node)


def _training(study: Study, stage: Stage) -> list[str]:
    """Token ids, and what it starts from."""
    needed = [f"{study.encoded(stage.data, stage.model.name)}/manifest.json"]
    needed += [_left_by(study, start) for start in stage.starts if start.stage]
    return needed if stage.starts_whole else [*needed, *_model_files(study, stage.model.name)]


def _library_job(study: Study, node: Data | Fit | Evaluation) -> list[str]:
    """The nodes that it uses, and the instances or token ids that it reads."""
    needed = []
    needed += [study.record(used) for used in node.uses if not isinstance(used, Stage)]
    needed += [_left_by(study, start) for start in _starts(node)]
    read = [used for used in node.uses if isinstance(used, Data)]
    read += [node.data] if not isinstance(node, Data) else []
    if isinstance(node, Data) and not read:
        needed.append(f"{study.instances(node.name)}/manifest.json")
    needed += [f"{study.instances(data.name)}/manifest.json" for data in read if not data.recipe]
    models: list[tuple[Data, Stage]] = []
    if isinstance(node, Evaluation) and isinstance(node.of, Outcome):
        models = [(node.data, stage) for stage in node.of.stages]
    on = node.on if isinstance(node, Fit) else None
    if on is not None and on.stage is not None:
        models = [(on.stage.data, on.stage)]
    needed += [f"{study.encoded(d, s.model.name)}/manifest.json" for d, s in models]
    return list(dict.fromkeys(needed))


def _starts(node: Data | Fit | Evaluation) -> list[Start]:
    """The trained models that it reads."""
    starts: list[Start | None] = []
    if isinstance(node, Data):
        starts += [Start(used) for used in node.uses if isinstance(used, Stage)]
    elif isinstance(node, Fit):
        starts.append(node.on)
    elif isinstance(node.of, Outcome):
        starts += node.of.starts
    return [start for start in starts if start and start.stage]


def _left_by(study: Study, start: Start) -> str:
    """What a stage leaves when a round of it can be started from. Rounds other than the best are
    no outputs of their own: how many there are is known when the stage is done."""
    assert start.stage is not None
    return study.start(start) if start.at == "best" else study.record(start.stage)


class DamagedRecords:
    """The damaged records that Snakemake came upon, as a file newer than any of them: as an input
    it makes Snakemake train their stages again, and say so in a dry run. The trainer sets the
    records aside."""

    def __init__(self, study: Study) -> None:
        self.file = Path(study.config.results, "logs", "damaged.log")
        self._records: dict[str, tuple[float, str]] = {}
        """record → (when it was changed, what is wrong with it)"""

    def inputs(self, study: Study, node: Node) -> list[str]:
        """The file, if the record of a node is damaged.

        Raises:
            RecordError: the record may not be read.
        """
        record = study.record(node)
        problem = damage_of(study, node) if os.path.lexists(record) else None
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
