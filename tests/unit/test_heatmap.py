from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread
from record_factory import ALGORITHMS, Run, single_source_runs, write_study

from tasktransfer.analysis.collect import Tables
from tasktransfer.analysis.figures import draw
from tasktransfer.analysis.heatmap import colour_limit, heatmap
from tasktransfer.analysis.multi_source_bars import multi_source_bars
from tasktransfer.analysis.style import MISSING, NEUTRAL, signed
from tasktransfer.analysis.tables import Metadata, collect

TASKS = ("emotion_recognition", "dialogue_nli", "topic_classification")
SHORTS = {"emotion_recognition": "ER", "dialogue_nli": "DNLI", "topic_classification": "TC"}
RUNS = single_source_runs("DailyDialog", ["bert", "t5"], TASKS, [0, 1], ["multitask"])
BASE = {"emotion_recognition": 40.0, "dialogue_nli": 50.0, "topic_classification": 80.0}


def score(run: Run) -> float:
    """bert: emotion_recognition gives 10 points to all, the others take 4; t5: nothing changes.
    Seeds are 1 apart on both sides, so that deltas are not."""
    _, model, _, sources, target, seed = run
    gain = 0.0 if not sources or model == "t5" else 10.0 if sources == (TASKS[0],) else -4.0
    return BASE[target] + seed + gain


def study(
    tmp_path: Path, gone: set[Run], *, runs: list[Run] = RUNS, synthetic: bool = False
) -> tuple[Tables, Metadata]:
    plan = write_study(
        tmp_path, runs, score, leave_out=gone.__contains__, synthetic=synthetic, shorts=SHORTS
    )
    return collect(tmp_path, plan, tmp_path / "tables")


def figure_of(tables: Tables, metadata: Metadata) -> Figure:
    figure = heatmap(tables, metadata, "DailyDialog")
    assert figure is not None
    return figure


def panels(figure: Figure) -> list[Axes]:
    """The panels, without the colour bar."""
    return [axes for axes in figure.axes if axes.patches]


def grid(axes: Axes) -> list[list[str]]:
    """What is printed (or hatched) in each cell of a panel: rows sources, columns targets."""
    count = len(axes.get_xticks())
    cells = [[""] * count for _ in range(count)]
    for text in axes.texts:
        x, y = text.get_position()
        cells[int(y)][int(x)] = text.get_text()
    for patch in axes.patches:
        if patch.get_hatch():
            x, y = patch.get_xy()
            assert cells[int(y)][int(x)] == "", "a hatched cell carries a number"
            cells[int(y)][int(x)] = patch.get_hatch()
    return cells


def test_cells_hold_the_baseline_and_the_improvement(tmp_path: Path) -> None:
    figure = figure_of(*study(tmp_path, set()))
    bert, t5 = panels(figure)
    assert [label.get_text() for label in bert.get_xticklabels()] == ["ER", "DNLI", "TC"]
    assert [label.get_text() for label in bert.get_yticklabels()] == ["ER", "DNLI", "TC"]
    # Baselines over two seeds: 40.5, 50.5, 80.5; +10 or -4 points of those.
    assert grid(bert) == [
        ["40.5", "+19.8", "+12.4"],
        ["−9.9", "50.5", "−5.0"],
        ["−9.9", "−7.9", "80.5"],
    ]
    assert grid(t5)[0] == ["40.5", "0.0", "0.0"]
    assert bert.get_title() == "Multitask"
    assert bert.get_ylabel().startswith("bert")
    assert t5.get_ylabel().startswith("t5")


def test_colours_say_the_sign_and_the_diagonal_is_neutral(tmp_path: Path) -> None:
    bert = panels(figure_of(*study(tmp_path, set())))[0]
    faces = {patch.get_xy(): patch.get_facecolor() for patch in bert.patches}
    red, _, blue, _ = faces[1, 0]
    assert blue > red, "source 0 helps target 1: blue"
    red, _, blue, _ = faces[0, 1]
    assert red > blue, "source 1 hurts target 0: red"
    assert faces[1, 1] == to_rgba(NEUTRAL)


def test_missing_cells_are_hatched_never_zero(tmp_path: Path) -> None:
    gone: set[Run] = {
        ("DailyDialog", "bert", "multitask", (TASKS[0],), TASKS[1], seed) for seed in (0, 1)
    }
    gone |= {("DailyDialog", "bert", "baseline", (), TASKS[2], seed) for seed in (0, 1)}
    gone |= {("DailyDialog", "bert", "multitask", (TASKS[2],), TASKS[0], 1)}
    gone |= {("DailyDialog", "bert", "baseline", (), TASKS[1], 0)}
    figure = figure_of(*study(tmp_path, gone))
    hatch = MISSING["hatch"]
    assert grid(panels(figure)[0]) == [
        ["40.5", hatch, hatch],
        ["−9.9", "51.0*", hatch],
        ["−10.0*", "−7.8*", hatch],
    ]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == [
        "diagonal: baseline score",
        "missing or not in the study",
        "* some seeds missing",
    ]


def test_a_whole_figure_has_no_missing_in_its_legend(tmp_path: Path) -> None:
    figure = figure_of(*study(tmp_path, set()))
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["diagonal: baseline score"]


def test_a_model_that_left_nothing_has_a_hatched_panel(tmp_path: Path) -> None:
    figure = figure_of(*study(tmp_path, {run for run in RUNS if run[1] == "t5"}))
    cells = [cell for row in grid(panels(figure)[1]) for cell in row]
    assert Counter(cells) == {MISSING["hatch"]: 9}


@pytest.mark.parametrize("synthetic", [True, False])
def test_the_title_names_study_dataset_seeds_and_synthetic_data(
    tmp_path: Path, synthetic: bool
) -> None:
    figure = figure_of(*study(tmp_path, set(), synthetic=synthetic))
    title = figure.get_suptitle().replace("\n", " ")
    assert "DailyDialog" in title
    assert "study constructed, 2 seeds" in title
    assert ("SYNTHETIC (tiny world)" in title) == synthetic


def test_a_baseline_of_zero_shows_points(tmp_path: Path) -> None:
    plan = write_study(tmp_path, RUNS, lambda run: 7.0 if run[3] else 0.0, shorts=SHORTS)
    tables, metadata = collect(tmp_path, plan, tmp_path / "tables")
    figure = figure_of(tables, metadata)
    assert grid(panels(figure)[0])[0] == ["0.0", "Δ+7.0", "Δ+7.0"]
    assert "Δ: points" in figure.legends[0].get_texts()[1].get_text()


def test_no_text_overlaps_or_is_cut_at_paper_scale(tmp_path: Path) -> None:
    tasks = [f"task_{letter}" for letter in "abcdefghij"]
    runs = single_source_runs("DailyDialog", ["bert-base-uncased", "gpt2", "t5-base"], tasks, [0])
    plan = write_study(tmp_path, runs, lambda run: 5.0 + 90.0 * (len(str(run)) % 2))
    tables, metadata = collect(tmp_path, plan, tmp_path / "tables")
    figure = figure_of(tables, metadata)
    figure.draw_without_rendering()
    whole = figure.bbox
    shown = panels(figure)
    assert len(shown) == 3 * len(ALGORITHMS)
    boxes = []
    for axes in figure.axes:
        extent = axes.get_tightbbox()
        assert extent is not None
        boxes.append(extent)
        assert extent.x0 >= whole.x0 - 1
        assert extent.x1 <= whole.x1 + 1
        assert extent.y0 >= whole.y0 - 1
        assert extent.y1 <= whole.y1 + 1
    overlaps = [
        (i, j)
        for i, one in enumerate(boxes)
        for j, other in enumerate(boxes[:i])
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    ]
    assert overlaps == []
    cell = shown[0].get_window_extent().width / 10
    assert max(text.get_window_extent().width for axes in shown for text in axes.texts) < cell


def test_colour_limits_are_round_and_ignore_one_outlier() -> None:
    assert colour_limit(np.array([np.nan])) == 1.0
    assert colour_limit(np.array([-12.0, 8.0])) == 20.0
    assert colour_limit(np.array([5.0] * 99 + [900.0])) == 5.0
    assert colour_limit(np.array([-1000.0, 1000.0])) == 1000.0


def test_signed_numbers() -> None:
    assert [signed(x) for x in (1.26, -0.04, 0.0, -3.0, 1234.5)] == [
        "+1.3",
        "0.0",
        "0.0",
        "−3.0",
        "+1234",
    ]


def test_multi_source_bars_beside_their_singles(tmp_path: Path) -> None:
    sources = tuple(sorted((TASKS[0], TASKS[1])))
    several: list[Run] = [
        ("DailyDialog", model, "multitask", sources, TASKS[2], seed)
        for model in ("bert", "t5")
        for seed in (0, 1)
    ]
    tables, metadata = study(
        tmp_path, {run for run in several if run[1] == "t5"}, runs=[*RUNS, *several]
    )
    figure = multi_source_bars(tables, metadata, "DailyDialog")
    assert figure is not None
    bert, t5 = figure.axes
    # Single sources give +10 and -4, so +3; the run on both scores -4.
    assert [text.get_text() for text in bert.texts] == ["+3.0", "−4.0"]
    assert len(t5.texts) == 0
    assert [bool(patch.get_hatch()) for patch in t5.patches] == [True, True]
    assert "missing" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label.get_text() for label in t5.get_xticklabels()] == ["TC\nfrom DNLI + ER"]
    assert multi_source_bars(*study(tmp_path / "none", set()), "DailyDialog") is None


def test_draw_writes_every_file_and_the_same_bytes_again(tmp_path: Path) -> None:
    study(tmp_path, set(), synthetic=True)
    written = draw(tmp_path / "tables", tmp_path / "figures")
    assert {path.name for path in written} == {
        "table2.csv",
        "table2.md",
        "table2.tex",
        "heatmap_DailyDialog.png",
        "heatmap_DailyDialog.pdf",
    }
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(
        path.name for path in written
    )
    image = imread(tmp_path / "figures" / "heatmap_DailyDialog.png")
    height, width, _ = image.shape
    assert 600 < width < 4000
    assert 600 < height < 4000
    assert (tmp_path / "figures" / "heatmap_DailyDialog.pdf").read_bytes()[:5] == b"%PDF-"
    before = {path.name: path.read_bytes() for path in written}
    draw(tmp_path / "tables", tmp_path / "figures")
    assert {path.name: path.read_bytes() for path in written} == before
