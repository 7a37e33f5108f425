"""Statistics files computed from table files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from record_factory import Run, constructed, make_plan, make_study, single_source_runs
from small_study import SMALL

from tasktransfer.cli import main
from tasktransfer.designs.transfer.frames import FRAMES
from tasktransfer.designs.transfer.statistics import cells
from tasktransfer.errors import RecordError
from tasktransfer.results.frames import is_always_planned, list_column_names
from tasktransfer.results.study import Study
from transfer_frames import COLUMNS, write_constructed, write_statistics

TASKS = (
    "emotion_recognition",
    "dialogue_nli",
    "topic_classification",
    "dialogue_act_classification",
)
MODELS = ("gpt2", "bert")
ALGORITHMS = ("pretrain_finetune", "multitask")
STATISTICS = [frame.name for frame in FRAMES if frame.needs and frame.planned is is_always_planned]
RUNS = single_source_runs("DailyDialog", MODELS, TASKS, [0, 1, 2], ALGORITHMS)


def score(run: Run) -> float:
    """Return arbitrary numbers that are equal in each call."""
    _, model, algorithm, sources, target, seed = run
    place = (len(model), len(algorithm), len("".join(sources)), len(target), seed)
    return 40 + (7 * place[0] + 3 * place[1] + 11 * place[2] + 5 * place[3] + 13 * place[4]) % 23


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results folder of a collected study."""
    folder = tmp_path_factory.mktemp("study")
    write_constructed(constructed(folder, RUNS, score))
    return folder


@pytest.fixture
def study(collected: Path, tmp_path: Path) -> Study:
    shutil.copytree(collected, tmp_path, dirs_exist_ok=True)
    return make_study(tmp_path, make_plan(RUNS))


@pytest.fixture
def tables(study: Study) -> Path:
    return Path(study.tables)


def shared_dialogues(folder: Path, **changes: object) -> None:
    rows = [("DailyDialog", s, t, 1, 4) for s in (*TASKS, "unstudied") for t in TASKS if s != t]
    frame = pd.DataFrame(rows, columns=["dataset", "source", "target", "shared", "of"])
    told = {"synthetic": False, "few_sample": True} | changes
    frame.assign(**told).to_parquet(folder / "overlap_data.parquet", index=False)


def test_every_table_is_written_and_read_back(study: Study, tables: Path) -> None:
    shared_dialogues(tables)
    found = write_statistics(study)
    for name in STATISTICS:
        assert list(found[name].columns) == list_column_names(COLUMNS[name])
        assert pq.read_schema(tables / f"{name}.parquet").metadata == (
            pq.read_schema(tables / "runs.parquet").metadata
        )
    assert {name: len(found[name]) for name in STATISTICS} == {
        "deltas": 4 * 12 * 3,
        "sizes": 4,
        "missing_runs": 0,
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
    assert list(found["summary"]["model"]) == ["gpt2", "gpt2", "bert", "bert"]
    assert list(found["summary"]["algorithm"]) == [*ALGORITHMS, *ALGORITHMS]
    assert found["asymmetry"]["p"].notna().all()


def test_equal_studies_give_equal_bytes(study: Study, tables: Path) -> None:
    def write() -> dict[str, bytes]:
        write_statistics(study)
        return {name: (tables / f"{name}.parquet").read_bytes() for name in STATISTICS}

    first = write()
    assert write() == first
    (tables / "cells.parquet").unlink()
    assert write() == first


def test_earlier_cells_are_handed_on(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    write_statistics(study)
    given = []

    def spied(
        runs: object, deltas: object, root: Path, previous: pd.DataFrame | None, more: object
    ) -> pd.DataFrame:
        given.append(previous)
        assert previous is not None
        return previous

    monkeypatch.setattr(cells, "compute_cells", spied)
    write_statistics(study)
    assert len(given[0]) == 48


@pytest.mark.parametrize("content", [b"", b"PAR1 no more", None])
def test_damaged_earlier_cells_are_recomputed(
    study: Study, tables: Path, content: bytes | None
) -> None:
    expected = write_statistics(study)["cells"].copy()
    if content is None:
        pd.DataFrame({"cells": [1]}).to_parquet(tables / "cells.parquet")
    else:
        (tables / "cells.parquet").write_bytes(content)
    pd.testing.assert_frame_equal(write_statistics(study)["cells"], expected)


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
    found = write_statistics(write_constructed(constructed(tmp_path, runs, score)).study)
    transfers = sum(bool(run[3]) for run in runs) if len(runs) > 1 else 0
    assert len(found["summary"]) == (1 if transfers else 0)
    assert len(found["cells"]) == transfers
    assert found["agreement"].empty
    for name in STATISTICS:
        assert list(found[name].columns) == list_column_names(COLUMNS[name])
    assert found["summary"]["mean"].dtype == found["top1"]["top1"].dtype == "float64"


def test_shared_dialogues_of_other_data_are_refused(study: Study, tables: Path) -> None:
    for change in ({"synthetic": True}, {"few_sample": False}):
        shared_dialogues(tables, **change)
        with pytest.raises(RecordError, match=r"overlap_data\.parquet: .*DailyDialog.*data stats"):
            write_statistics(study)


def test_damaged_input_is_named(study: Study, tables: Path) -> None:
    (tables / "overlap_data.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"overlap_data\.parquet: The table cannot be read"):
        write_statistics(study)
    pd.DataFrame({"dataset": ["DailyDialog"]}).to_parquet(tables / "overlap_data.parquet")
    with pytest.raises(RecordError, match=r"columns few_sample, .* are missing"):
        write_statistics(study)
    (tables / "overlap_data.parquet").unlink()
    (tables / "transfer_runs.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        RecordError, match=r"transfer_runs\.parquet: The table cannot be read.*collect"
    ):
        write_statistics(study)


def test_the_command_prints_a_line_per_table(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tables.parent / "study.yaml"
    config.write_text(json.dumps(SMALL | {"results": str(tables.parent)}))
    assert main(["statistics", "--config", str(config)]) == 0
    printed = capsys.readouterr().out
    assert f"{tables / 'cells'}.parquet: 48 rows" in printed
    assert all(f"{tables / name}.parquet: " in printed for name in STATISTICS)
    (tables / "runs.parquet").unlink()
    assert main(["statistics", "--config", str(config)]) == RecordError.exit_code
    assert "Run `tasktransfer collect --config" in capsys.readouterr().err
