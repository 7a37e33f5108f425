"""Results of small studies, packed in ``tests/fixtures/results`` so that tests need not train them.

A pack is used only for the nodes that it was made of: if a digest has changed since, the nodes are
computed. ``python tests/contract/pack_studies.py`` packs the contract's studies again.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from tasktransfer.data.cache import cache_dataset
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.tiny_world import generate_release, generate_releases
from tasktransfer.results.revisions import get_own_tiny_version
from tasktransfer.results.study import Study

PACKS = Path(__file__).with_name("fixtures") / "results"
NODES = "nodes.json"
"""File in a pack with the digests of its nodes."""
WEIGHTS = ("checkpoint", "rounds")
"""Folders of a stage that are not packed, because steps after the records must not need them."""
WHEN = (2026, 1, 1, 0, 0, 0)
"""Time of each file in a pack, so that equal results have equal packs."""


def prepare_data(study: Study) -> None:
    """Generate the study's tiny worlds, and read the instances of its datasets."""
    made_from = study.config.data.tiny_world
    for name in study.config.dataset_names:
        place = Path(study.get_release(name))
        if not place.exists():
            if get_own_tiny_version(name):
                generate_release(
                    DATASETS[name], place, seed=made_from.seed, dialogues=made_from.dialogues
                )
            else:
                generate_releases(place, seed=made_from.seed, dialogues=made_from.dialogues)
        cache_dataset(name, place, study.config.data.few_sample, study.get_instances_folder(name))


def list_digests(study: Study) -> list[str]:
    """Return the digests of the study's nodes."""
    return [node.digest for node in study.plan.nodes]


def get_pack(name: str) -> Path:
    """Return the path of a study's pack."""
    return PACKS / f"{name}.zip"


def is_current(study: Study, name: str) -> bool:
    """Return whether a study's pack has the results of the study's nodes."""
    file = get_pack(name)
    if not file.exists():
        return False
    with zipfile.ZipFile(file) as archive:
        packed: list[str] = json.loads(archive.read(NODES))
    return packed == list_digests(study)


def restore(study: Study, name: str) -> bool:
    """Extract the results of a study's nodes, and return whether its pack has them."""
    if not is_current(study, name):
        return False
    with zipfile.ZipFile(get_pack(name)) as archive:
        files = [file for file in archive.namelist() if file != NODES]
        archive.extractall(study.config.results, files)
    return True


def write_pack(study: Study, name: str) -> Path:
    """Pack the results of a finished study, and return the pack's path."""
    file = get_pack(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _write(archive, NODES, json.dumps(list_digests(study)).encode())
        for node in study.plan.nodes:
            folder = Path(study.get_node_folder(node))
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not {*WEIGHTS} & {*path.relative_to(folder).parts}:
                    packed = path.relative_to(study.config.results)
                    _write(archive, packed.as_posix(), path.read_bytes())
    return file


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, WHEN), content, zipfile.ZIP_DEFLATED)
