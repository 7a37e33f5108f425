"""Statistics files computed from table files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from record_factory import Run, constructed, single_source_runs
from small_study import SMALL

from tasktransfer.cli import main
from tasktransfer.designs.transfer.collect.collect import write
from tasktransfer.designs.transfer.collect.columns import STATISTICS, names
from tasktransfer.designs.transfer.collect.results import read_results
from tasktransfer.designs.transfer.statistics import study_statistics
from tasktransfer.designs.transfer.statistics.study_statistics import compute
from tasktransfer.errors import RecordError

TASKS = (
    "emotion_recognition",
    "dialogue_nli",
    "topic_classification",
    "dialogue_act_classification",
)
MODELS = ("gpt2", "bert")
ALGORITHMS = ("pretrain_finetune", "multitask")
RUNS = single_source_runs("DailyDialog", MODELS, TASKS, [0, 1, 2], ALGORITHMS)


def score(run: Run) -> float:
    """Return arbitrary numbers that are equal in each call."""
    _, model, algorithm, sources, target, seed = run
    place = (len(model), len(algorithm), len("".join(sources)), len(target), seed)
    return 40 + (7 * place[0] + 3 * place[1] + 11 * place[2] + 5 * place[3] + 13 * place[4]) % 23


def study(root: Path, runs: list[Run] = RUNS) -> Path:
    """Collect a study, and return the folder of its tables."""
    write(constructed(root, runs, score))
    return root / "tables"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(tmp_path_factory.mktemp("study"))


@pytest.fixture
def tables(collected: Path, tmp_path: Path) -> Path:
    shutil.copytree(collected.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tables"


def shared_dialogues(folder: Path, **changes: object) -> None:
    rows = [("DailyDialog", s, t, 1, 4) for s in (*TASKS, "unstudied") for t in TASKS if s != t]
    frame = pd.DataFrame(rows, columns=["dataset", "source", "target", "shared", "of"])
    told = {"synthetic": False, "few_sample": True} | changes
    frame.assign(**told).to_parquet(folder / "overlap_data.parquet", index=False)


def test_every_table_is_written_and_read_back(tables: Path) -> None:
    shared_dialogues(tables)
    told: list[str] = []
    found = compute(tables, tables.parent, told.append)
    again = read_results(tables)
    for name in STATISTICS:
        frame = getattr(found, name)
        assert list(frame.columns) == names(name)
        pd.testing.assert_frame_equal(frame, getattr(again.statistics, name))
        assert pq.read_schema(tables / f"{name}.parquet").metadata == (
            pq.read_schema(tables / "runs.parquet").metadata
        )
    assert {name: len(getattr(found, name)) for name in STATISTICS} == {
        "cells": 4 * 12,
        "summary": 4,
        "variance": 16,
        "asymmetry": 4 * 6,
        "agreement": 4,
        "overlap": 12,
        "overlap_effect": 4,
        "control_cells": 0,
        "controls": 0,
        "top1": 4,
        "collapsed": 0,
    }
    assert list(found.summary["model"]) == ["gpt2", "gpt2", "bert", "bert"]
    assert list(found.summary["algorithm"]) == [*ALGORITHMS, *ALGORITHMS]
    assert found.asymmetry["p"].notna().all()
    assert any("agreement" in line for line in told)


def test_equal_studies_give_equal_bytes(tables: Path, tmp_path: Path) -> None:
    compute(tables, tables.parent)
    first = {name: (tables / f"{name}.parquet").read_bytes() for name in STATISTICS}
    compute(tables, tables.parent)
    assert first == {name: (tables / f"{name}.parquet").read_bytes() for name in STATISTICS}
    (tables / "cells.parquet").unlink()
    compute(tables, tables.parent)
    assert first == {name: (tables / f"{name}.parquet").read_bytes() for name in STATISTICS}


def test_earlier_cells_are_handed_on(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute(tables, tables.parent)
    given = []

    def spied(
        found: object, root: Path, previous: pd.DataFrame | None, more: object
    ) -> pd.DataFrame:
        given.append(previous)
        assert previous is not None
        return previous

    monkeypatch.setattr(study_statistics, "cells", spied)
    compute(tables, tables.parent)
    assert len(given[0]) == 48


@pytest.mark.parametrize("content", [b"", b"PAR1 no more", None])
def test_damaged_earlier_cells_are_made_anew(tables: Path, content: bytes | None) -> None:
    expected = compute(tables, tables.parent).cells
    if content is None:
        pd.DataFrame({"cells": [1]}).to_parquet(tables / "cells.parquet")
    else:
        (tables / "cells.parquet").write_bytes(content)
    pd.testing.assert_frame_equal(compute(tables, tables.parent).cells, expected)


@pytest.mark.parametrize(
    "runs",
    [
        single_source_runs("DailyDialog", ["bert"], TASKS[:1], [0], ["multitask"]),
        single_source_runs("DailyDialog", ["bert"], TASKS[:2], [0], ["multitask"]),
        single_source_runs("DailyDialog", ["bert"], TASKS[:2], [0, 1], []),
        [("DailyDialog", "bert", "multitask", (TASKS[0],), TASKS[1], 0)],
    ],
    ids=["one task", "one seed", "baselines only", "no baseline"],
)
def test_small_studies(tmp_path: Path, runs: list[Run]) -> None:
    tables = study(tmp_path, runs)
    compute(tables, tmp_path)
    found = read_results(tables).statistics
    transfers = sum(bool(run[3]) for run in runs) if len(runs) > 1 else 0
    assert len(found.summary) == (1 if transfers else 0)
    assert len(found.cells) == transfers
    assert found.agreement.empty
    assert found.summary["mean"].dtype == "float64"


def test_shared_dialogues_of_other_data_are_refused(tables: Path) -> None:
    for change in ({"synthetic": True}, {"few_sample": False}):
        shared_dialogues(tables, **change)
        with pytest.raises(RecordError, match=r"overlap_data\.parquet: DailyDialog.*data stats"):
            compute(tables, tables.parent)


def test_damaged_input_is_named(tables: Path) -> None:
    (tables / "overlap_data.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"overlap_data\.parquet: cannot be read"):
        compute(tables, tables.parent)
    pd.DataFrame({"dataset": ["DailyDialog"]}).to_parquet(tables / "overlap_data.parquet")
    with pytest.raises(RecordError, match="has no column few_sample"):
        compute(tables, tables.parent)
    (tables / "overlap_data.parquet").unlink()
    (tables / "deltas.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"deltas\.parquet: cannot be read.*collect` again"):
        compute(tables, tables.parent)


def test_the_command_prints_a_line_per_table(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tables.parent / "study.yaml"
    config.write_text(json.dumps(SMALL | {"results": str(tables.parent)}))
    assert main(["statistics", "--config", str(config)]) == 0
    printed = capsys.readouterr().out
    assert f"{tables / 'cells'}.parquet: 48 rows" in printed
    assert all(f"{tables / name}.parquet: " in printed for name in STATISTICS)
    assert printed.rstrip().endswith("seconds")
    (tables / "runs.parquet").unlink()
    assert main(["statistics", "--config", str(config)]) == RecordError.exit_code
    assert "run `tasktransfer collect` again" in capsys.readouterr().err
