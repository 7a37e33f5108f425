"""Real dialogues in the published layout, fetched and converted, give the readers' instances.

The published archives cannot be downloaded here. Archives of their layout are built from a part of
the shared corpora, and fetched from a local server.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from archive_server import Server, serving
from published_corpora import (
    empathetic_files,
    in_thirds,
    multiwoz_files,
    pack_zip,
    without_user_acts,
)
from small_corpora import as_tgz
from tasktransfer.datasets.dataset import Release
from tasktransfer.datasets.download import Conversion, fetch_converted_files
from tasktransfer.datasets.multiwoz import MULTIWOZ
from tasktransfer.datasets.multiwoz.download import CONVERSION as WOZ
from tasktransfer.designs.empathetic.sources.dialogues import (
    EMPATHETIC_DIALOGUES,
    SPLIT_OF,
    read_dialogues,
)
from tasktransfer.designs.empathetic.sources.download import CONVERSION as ED
from tasktransfer.files.data_files import read_zip_member
from tasktransfer.tasks.card import SPLITS, Instance

SHARED = Path(__file__).resolve().parents[3] / "shared" / "dialogue"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no data in {SHARED}")
EVERY, PER_SPLIT = 40, 30


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server({}, kind="application/octet-stream")) as started:
        yield started


def fetch(conversion: Conversion, content: bytes, server: Server, folder: Path) -> None:
    """Fetch and convert an archive that has this content."""
    server.files[conversion.archive.name] = content
    archive = replace(conversion.archive, sha256=sha256(content).hexdigest())
    assert fetch_converted_files(replace(conversion, archive=archive), folder, server.address) == ()


def read_all(release: Release) -> dict[tuple[str, str], list[Instance]]:
    return {
        (task, split): list(release.instances(task, split))
        for task in release.tasks
        for split in SPLITS
    }


def sort_key(name: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", name)], name


def copy_part_of_empathetic(folder: Path) -> Path:
    """Write every 40th dialogue of each emotion in the layout of the shared corpus."""
    source, target = SHARED / "empathetic_dialogues", folder / "empathetic_dialogues"
    (target / "by_emotion").mkdir(parents=True)
    kept = set()
    for file in sorted((source / "by_emotion").glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            header, *rows = csv.reader(lines)
        names = list(dict.fromkeys(row[0] for row in rows))[::EVERY]
        names.sort(key=sort_key)
        kept |= set(names)
        with (target / "by_emotion" / file.name).open("w", encoding="utf-8", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerows([header, *(row for n in names for row in rows if row[0] == n)])
    with (source / "split.csv").open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    rows = [row for row in rows if row[0] in kept]
    rows.sort(key=lambda row: sort_key(row[0]))
    with (target / "split.csv").open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([header, *rows])
    return target


def test_fetched_empathetic_dialogues_equal_those_by_emotion(
    server: Server, tmp_path: Path
) -> None:
    part = copy_part_of_empathetic(tmp_path / "shared")
    names = {split: name for name, split in SPLIT_OF.items()}
    dialogues = [replace(d, split=names[d.split]) for d in read_dialogues(part)]
    fetch(ED, as_tgz(empathetic_files(dialogues)), server, tmp_path / "fetched")
    reader = EMPATHETIC_DIALOGUES.reader
    fetched, shared = (reader.open(tmp_path / name, False) for name in ("fetched", "shared"))
    assert read_all(fetched) == read_all(shared)
    assert sum(map(len, read_all(fetched).values())) > 1000
    assert fetched.turns == shared.turns
    assert fetched.revision == shared.revision


def test_fetched_multiwoz_equals_the_files_by_split(server: Server, tmp_path: Path) -> None:
    named: dict[str, Any] = {}
    for file in ("val.json", "test.json"):
        content = json.loads(read_zip_member(SHARED / "multiwoz20" / f"{file}.zip", file))
        named |= dict(list(content.items())[: PER_SPLIT * 3 // 2])
    thirds = in_thirds(list(named))
    splits = {split: {name: named[name] for name in names} for split, names in thirds.items()}
    for folder, change in (("shared", dict), ("published", without_user_acts)):
        (tmp_path / folder / "multiwoz20").mkdir(parents=True)
        for split, file in (("train", "train.json"), ("dev", "val.json"), ("test", "test.json")):
            text = json.dumps(change(splits[split]), indent=2)
            (tmp_path / folder / "multiwoz20" / file).write_text(text, encoding="utf-8")
    fetch(WOZ, pack_zip(multiwoz_files(splits)), server, tmp_path / "fetched")
    fetched, published, shared = (
        MULTIWOZ.reader.open(tmp_path / name, False) for name in ("fetched", "published", "shared")
    )
    rows = read_all(fetched)
    assert rows == read_all(published)
    assert fetched.turns == shared.turns
    assert sum(map(len, rows.values())) > 300
    for key, with_user_acts in read_all(shared).items():
        for one, other in zip(rows[key], with_user_acts, strict=True):
            assert drop_topic(one) == drop_topic(other)


def drop_topic(instance: Instance) -> Instance:
    """Remove the label that acts of user turns can change."""
    labels = json.loads(instance.query["labels"])
    del labels["RecentTopic"]
    return replace(instance, query={**instance.query, "labels": json.dumps(labels)})
