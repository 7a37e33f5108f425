"""Files that plotting writes, and files that it leaves unchanged."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest
from constructed_results import lengths_of, results_of
from matplotlib.figure import Figure
from matplotlib.image import imread
from record_factory import Run, single_source_runs

from shown_results import drawn as draw_figures
from shown_results import shown_of, view_of
from tasktransfer.designs.transfer.figures.one_dataset import select_dataset
from tasktransfer.designs.transfer.shown import FIGURES, PLOTS
from tasktransfer.errors import RecordError
from tasktransfer.present.figures import draw_figures as draw_declared
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import write_frame
from transfer_frames import COLUMNS, read_frames

TASKS = {"DailyDialog": ("dialogue_nli", "topic_classification"),
         "Friends": ("question_answering", "personality_detection")}  # fmt: skip
RUNS = [
    run
    for dataset, tasks in TASKS.items()
    for run in single_source_runs(dataset, ["bert"], tasks, [0], ["multitask"])
]
SINGLE = [name for name in FIGURES if name not in ("multi_source", "shuffled_source")]
FEW = ("lengths", "heatmap", "training_curves")
REPEATED = FEW[:2]
LENGTHS = pd.concat([lengths_of(dataset, 20) for dataset in TASKS])


def score(run: Run) -> float:
    return 50.0 + 3.0 * len(run[3]) + len(run[4]) / 10


def study(folder: Path, runs: list[Run] = RUNS, **changes: object) -> Frames:
    return results_of(folder, runs, score, lengths=LENGTHS, **changes)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return a study of one dataset, which suffices for most tests."""
    return study(tmp_path_factory.mktemp("one"), RUNS[:4])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return a study of two datasets."""
    return study(tmp_path_factory.mktemp("two"))


def small_figure(results: Frames, dataset: str) -> Figure:
    """Replace figures by a small one, because plotting takes long."""
    figure = Figure(figsize=(1, 1))
    figure.text(0.5, 0.5, f"{dataset} {sum(map(len, results.values()))}")
    return figure


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SINGLE:
        monkeypatch.setitem(PLOTS, name, small_figure)


def files_of(out: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in out.iterdir()
        if path.suffix in (".png", ".pdf")
    }


def test_every_figure_is_drawn_as_png_and_pdf_and_again_as_the_same_bytes(
    tmp_path: Path, one: Frames
) -> None:
    drawn = draw_figures(one, tmp_path / "a")
    assert drawn.redrawn == [f"{name}_DailyDialog" for name in SINGLE]
    files = drawn.list_files(tmp_path / "a")
    assert [path.name for path in files] == [
        f"{stem}.{ending}" for stem in drawn.redrawn for ending in ("png", "pdf")
    ]
    for path in files:
        if path.suffix == ".png":
            height, width, _ = imread(path).shape
            assert 400 < width < 4000
            assert 400 < height < 4000
        else:
            assert path.read_bytes()[:5] == b"%PDF-"
    again = draw_figures(one, tmp_path / "b", REPEATED).list_files(tmp_path / "b")
    assert len(again) == 2 * len(REPEATED)
    for path in again:
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes()


@pytest.mark.usefixtures("quick")
def test_nothing_is_drawn_again_without_a_change(tmp_path: Path, one: Frames) -> None:
    names = draw_figures(one, tmp_path / "out").names
    before = files_of(tmp_path / "out")
    again = draw_figures(one, tmp_path / "out")
    assert again.redrawn == []
    assert again.names == names
    assert files_of(tmp_path / "out") == before


@pytest.mark.usefixtures("quick")
def test_a_new_record_of_one_dataset_leaves_the_others_figures(tmp_path: Path, two: Frames) -> None:
    last = RUNS[-1]
    assert last[0] == "Friends"
    out = tmp_path / "out"
    draw_figures(study(tmp_path / "study", leave_out=lambda run: run == last), out, FEW)
    before = files_of(out)
    drawn = draw_figures(two, out, FEW)
    after = files_of(out)
    # The lengths of the dialogues are the same as well.
    assert drawn.redrawn == [f"{name}_Friends" for name in FEW if name != "lengths"]
    changed = {name.rpartition(".")[0] for name in after if after[name] != before[name]}
    assert changed == set(drawn.redrawn)


@pytest.mark.usefixtures("quick")
def test_a_file_that_is_gone_is_drawn_again_alone(tmp_path: Path, one: Frames) -> None:
    out = tmp_path / "out"
    draw_figures(one, out, FEW)
    (out / "heatmap_DailyDialog.pdf").unlink()
    assert draw_figures(one, out, FEW).redrawn == ["heatmap_DailyDialog"]
    (out / "manifest.json").write_text("{ no JSON")
    assert len(draw_figures(one, out, FEW).redrawn) == len(FEW)


@pytest.mark.usefixtures("quick")
def test_names_and_marks_of_the_study_are_drawn_again(tmp_path: Path, one: Frames) -> None:
    draw_figures(one, tmp_path / "out", FEW)
    synthetic = dataclasses.replace(one.metadata, synthetic=True)
    marked = one.replace({}, synthetic)
    assert len(draw_figures(marked, tmp_path / "out", FEW).redrawn) == len(FEW)


@pytest.mark.usefixtures("quick")
def test_drawing_that_was_interrupted_resumes_where_it_stopped(
    tmp_path: Path, one: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(results: Frames, dataset: str) -> Figure:
        raise RuntimeError("cut off")

    whole = PLOTS["lengths"]
    monkeypatch.setitem(PLOTS, "lengths", fail)
    with pytest.raises(RuntimeError, match="cut off"):
        draw_figures(one, tmp_path / "out")
    monkeypatch.setitem(PLOTS, "lengths", whole)
    rest = SINGLE[SINGLE.index("lengths") :]
    assert draw_figures(one, tmp_path / "out").redrawn == [f"{name}_DailyDialog" for name in rest]


@pytest.mark.usefixtures("quick")
def test_figures_that_have_nothing_to_show_any_more_are_removed(
    tmp_path: Path, one: Frames, two: Frames
) -> None:
    out = tmp_path / "out"
    draw_figures(two, out, FEW)
    (out / "notes.png").write_bytes(b"somebody's own")
    draw_figures(one, out, FEW)
    assert {path.name for path in out.iterdir()} == {
        "manifest.json",
        "notes.png",
        "training_curves_DailyDialog.csv",
        *(f"{name}_DailyDialog.{ending}" for name in FEW for ending in ("png", "pdf")),
    }
    assert set(json.loads((out / "manifest.json").read_text())) == {
        f"{name}_DailyDialog" for name in FEW
    }


def test_a_part_has_its_dataset_and_the_frames_it_asks_for(two: Frames) -> None:
    part = select_dataset(two.select(("cells", "lengths")), "Friends")
    assert set(part["cells"]["dataset"]) == {"Friends"}
    assert len(part["cells"]) == 2
    assert set(part["lengths"]["dataset"]) == {"Friends"}
    assert set(part) == {"cells", "lengths"}
    assert list(part.metadata.order["task"]) == list(TASKS["Friends"])
    assert set(part.metadata.shorts) == set(TASKS["Friends"])
    assert set(select_dataset(two, "Friends")["transfer_runs"]["dataset"]) == {"Friends"}
    assert all(name in COLUMNS for _, reads, _ in FIGURES.values() for name in reads)


def test_a_figure_is_handed_the_frames_that_it_reads_and_no_others(
    tmp_path: Path, one: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    named: dict[str, str] = {}

    def look(results: Frames, dataset: str) -> Figure:
        seen.append(list(results))
        named.update(results.metadata.shorts)
        return small_figure(results, dataset)

    monkeypatch.setitem(PLOTS, "source_type", look)  # it reads cells alone
    draw_declared(shown_of(one, ["source_type"]), view_of(one), tmp_path)
    assert seen == [["cells"]]
    cells = one["cells"]
    assert named == {
        task: one.metadata.shorts[task] for task in {*cells["source"], *cells["target"]}
    }


def test_statistics_are_needed(tmp_path: Path) -> None:
    frames = study(tmp_path, RUNS[:4])
    path = Path(frames.study.tables, "runs.parquet")
    path.parent.mkdir(parents=True)
    write_frame(path, frames["runs"], COLUMNS["runs"], frames.metadata)
    collected = read_frames(frames.study)
    with pytest.raises(RecordError, match=r"cells\.parquet.*tasktransfer statistics"):
        collected["cells"]
