"""A malicious shard is imported or refused without harm, and the other shards are imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_shards import MAKERS

from finished_stages import finish_all, opened
from tasktransfer.errors import RecordError
from tasktransfer.operate.commons.isolated import PackReader
from tasktransfer.operate.pack import pack_results

pytestmark = pytest.mark.slow

HARMLESS = {"damaged_0", "damaged_10", "record_of_another_node"}
"""Shards that are read without an error: unused bytes changed, or a record refused by ``merge``."""
MOST_MIB = 400
SECONDS = 10

MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=300)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = used.ru_utime + used.ru_stime
print(json.dumps([done.returncode, done.stdout, done.stderr, used.ru_maxrss / 1024, seconds]))
"""
"""Script for a separate process, because child processes inherit the peak memory."""


def measured(*words: str) -> tuple[int, str, str, float, float]:
    """Run ``tasktransfer``; return exit code, output, errors, peak MiB and processor seconds."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "tasktransfer", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, out, errors, memory, seconds = json.loads(done.stdout)
    return code, out, errors, memory, seconds


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a valid shard, ``lab/good.parquet``, next to its study's config."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        study = opened(results="lab")
        finish_all(study, measured=True)
        pack_results(study, folder / "good.parquet", by="Lab A", with_text=True)
        opened()
    return folder / "good.parquet"


@pytest.fixture(scope="module")
def reader() -> Iterator[PackReader]:
    with PackReader(follow_links=False) as reader:
        yield reader


@pytest.mark.parametrize("name", MAKERS)
def test_a_hostile_shard_is_refused(
    name: str, good: Path, reader: PackReader, tmp_path: Path
) -> None:
    shards, results = tmp_path / "shards", tmp_path / "results"
    shards.mkdir()
    results.mkdir()
    MAKERS[name](good, file := shards / "shard.parquet")
    before = sorted(path for path in tmp_path.iterdir())
    read = reader.read_facts(file)
    if name in HARMLESS:
        reader.unpack_nodes(file, results)
    elif not read.problem:
        with pytest.raises(RecordError) as error:
            reader.unpack_nodes(file, results)
        assert str(file) in str(error.value) or str(results) in str(error.value)
    else:
        assert str(file) in read.problem
    assert sorted(path for path in tmp_path.iterdir()) == before
    assert not Path("/tmp/escaped").exists()


def test_all_hostile_shards_at_once_leave_the_others(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command runs as by a user; exit code, imported nodes and cost are checked."""
    monkeypatch.chdir(tmp_path)
    study = opened()
    shards = tmp_path / "shards"
    shards.mkdir()
    for name, make in MAKERS.items():
        make(good, shards / f"{name}.parquet")
    (shards / "z-good.parquet").write_bytes(good.read_bytes())
    code, out, errors, memory, _ = measured("import", "shards", "--config", "study.yaml", "--json")
    assert code == 6
    assert "Traceback" not in errors
    assert memory < MOST_MIB
    seen: dict[str, dict[str, Any]] = {
        Path(shard["file"]).stem: shard for shard in json.loads(out)["shards"]
    }
    assert seen.keys() == {*MAKERS, "z-good"}
    untouched = {name for name, shard in seen.items() if not shard["problem"]}
    assert untouched == {*HARMLESS, "z-good"}
    taken = sum(shard["counts"]["copied"] for shard in seen.values())
    assert taken == len(study.plan.stages)
    assert seen["record_of_another_node"]["counts"]["rejected"] == 1


@pytest.mark.parametrize("name", ["zeros_of_400_megabytes", "dictionary_of_one_text"])
def test_a_bomb_costs_little(
    name: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened()
    Path("shards").mkdir()
    MAKERS[name](good, Path("shards/bomb.parquet"))
    code, out, errors, memory, seconds = measured("import", "shards", "--config", "study.yaml")
    assert (code, "Traceback" in errors) == (6, False)
    assert "takes more than 288 MiB of memory" in out
    assert memory < MOST_MIB
    assert seconds < SECONDS


def test_a_merge_of_one_file_is_as_careful(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened()
    MAKERS["dictionary_of_one_text"](good, Path("bomb.parquet"))
    code, _, errors, memory, seconds = measured("merge", "bomb.parquet", "--config", "study.yaml")
    assert (code, "Traceback" in errors) == (6, False)
    assert memory < MOST_MIB
    assert seconds < SECONDS
