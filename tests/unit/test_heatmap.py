"""The heatmap, the bars of several sources and the effects: cells, colours, marks and legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from constructed_results import flaws, results_of, with_cells
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from record_factory import ALGORITHMS, Run, single_source_runs

from tasktransfer.designs.transfer.choices import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.figures.heatmap import (
    FADED_LABEL,
    UNLEARNED_LABEL,
    fade_colour,
    plot_effects,
    plot_heatmap,
)
from tasktransfer.designs.transfer.figures.heatmap_panels import PROMPTED_TITLE
from tasktransfer.designs.transfer.figures.multi_source_bars import plot_multi_source_bars
from tasktransfer.designs.transfer.figures.one_dataset import select_dataset
from tasktransfer.designs.transfer.figures.pair_means import plot_aggregate_transfer
from tasktransfer.designs.transfer.frames import PROMPTED
from tasktransfer.designs.transfer.report.grid import build_payload
from tasktransfer.present.kit.matrix import (
    MISSING_LABEL,
    NOT_PLANNED_LABEL,
    ONE_TRAINING_LABEL,
    SURVIVES_LABEL,
)
from tasktransfer.present.kit.style import (
    MISSING,
    NEUTRAL,
    NOT_PLANNED,
    save_figure,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

TASKS = ("emotion_recognition", "dialogue_nli", "topic_classification")
RUNS = single_source_runs("DailyDialog", ["bert", "t5"], TASKS, [0, 1], ["multitask"])
BASE = {"emotion_recognition": 40.0, "dialogue_nli": 50.0, "topic_classification": 80.0}


def score(run: Run) -> float:
    """Return a score in which bert gains 10 points from emotions and loses 4 from others.

    t5 does not change. Seeds differ by 1 on both sides, so deltas do not.
    """
    _, model, _, sources, target, seed = run
    gain = 0.0 if not sources or model == "t5" else 10.0 if sources == (TASKS[0],) else -4.0
    return BASE[target] + seed + gain


def study(
    tmp_path: Path, gone: set[Run], *, runs: list[Run] = RUNS, synthetic: bool = False
) -> Frames:
    return results_of(
        tmp_path,
        runs,
        score,
        leave_out=gone.__contains__,
        synthetic=["Friends", "DailyDialog"] if synthetic else [],
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return a study with every planned run."""
    return study(tmp_path_factory.mktemp("whole"), set())


def figure_of(
    results: Frames, plot: Callable[[Frames, str], Figure | None] = plot_heatmap
) -> Figure:
    figure = plot(results, "DailyDialog")
    assert figure is not None
    return figure


def count_marks(results: Frames) -> Counter[str]:
    """Count the marks of transfers in the page's heatmap."""
    [dataset] = build_payload(results, "")["datasets"]
    return Counter(cell["mark"] for cell in dataset["cells"] if cell["state"] == "transfer")


def panels(figure: Figure) -> list[Axes]:
    """Return the panels, without the colour bar."""
    return [axes for axes in figure.axes if axes.texts or cells_of(axes, "missing")]


def cells_of(axes: Axes, label: str) -> list[tuple[int, int]]:
    """Return source and target of the cells with a look: cells, missing or significant."""
    return [
        (int(path.vertices[0][1]), int(path.vertices[0][0]))
        for collection in axes.collections
        if isinstance(collection, PolyCollection) and collection.get_label() == label
        for path in collection.get_paths()
    ]


def colours_of(axes: Axes) -> dict[tuple[int, int], tuple[float, float, float, float]]:
    """Map source and target of each cell to its colour."""
    cells = next(found for found in axes.collections if found.get_label() == "cells")
    return dict(zip(cells_of(axes, "cells"), map(tuple, cells.get_facecolor()), strict=True))


def grid(axes: Axes) -> list[list[str]]:
    """Return the text (or hatching) of each cell of a panel: rows are sources, columns targets."""
    count = len(axes.get_xticks())
    cells = [[""] * count for _ in range(count)]
    for text in axes.texts:
        x, y = text.get_position()
        cells[int(y)][int(x)] = text.get_text()
    hatched = {"missing": MISSING["hatch"], "not planned": NOT_PLANNED["hatch"]}
    for label, hatch in hatched.items():
        for source, target in cells_of(axes, label):
            assert cells[source][target] == "", "a hatched cell carries a number"
            cells[source][target] = str(hatch)
    filled = [(row, column) for row in range(count) for column in range(count)]
    drawn = [cell for label in ("cells", *hatched) for cell in cells_of(axes, label)]
    assert sorted(drawn) == filled
    return cells


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_cells_hold_the_baseline_and_the_improvement(whole: Frames) -> None:
    figure = figure_of(whole)
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


def test_colours_say_the_sign_and_the_diagonal_is_neutral(whole: Frames) -> None:
    bert = panels(figure_of(whole))[0]
    faces = colours_of(bert)
    red, _, blue, _ = faces[0, 1]
    assert blue > red, "source 0 helps target 1: blue"
    red, _, blue, _ = faces[1, 0]
    assert red > blue, "source 1 hurts target 0: red"
    assert faces[1, 1] == to_rgba(NEUTRAL)


def test_missing_cells_are_hatched_never_zero(tmp_path: Path) -> None:
    gone: set[Run] = {
        ("DailyDialog", "bert", "multitask", (TASKS[0],), TASKS[1], seed) for seed in (0, 1)
    }
    gone |= {("DailyDialog", "bert", "baseline", (), TASKS[2], seed) for seed in (0, 1)}
    gone |= {("DailyDialog", "bert", "multitask", (TASKS[2],), TASKS[0], 1)}
    gone |= {("DailyDialog", "bert", "baseline", (), TASKS[1], 0)}
    figure = figure_of(study(tmp_path, gone))
    hatch = MISSING["hatch"]
    # One seed of a pair: its own baseline, 40, whatever the other seed's is.
    assert grid(panels(figure)[0]) == [
        ["40.5", hatch, hatch],
        ["−9.9", "51.0*", hatch],
        ["−10.0*", "−7.8*", hatch],
    ]
    assert [legend(figure)[0], *legend(figure)[2:]] == [
        "diagonal: baseline score",
        MISSING_LABEL,
        "* some seeds missing",
    ]


def test_cells_that_survive_are_framed_and_the_legend_says_so(whole: Frames) -> None:
    cells = whole["cells"]
    survives = (cells["source"] == TASKS[0]) & (cells["model"] == "bert")
    figure = figure_of(with_cells(whole, q=survives.map({True: 0.01, False: 0.6}),
                                  significant=survives))  # fmt: skip
    bert, t5 = panels(figure)
    assert sorted(cells_of(bert, "significant")) == [(0, 1), (0, 2)]
    assert cells_of(t5, "significant") == []
    assert legend(figure) == ["diagonal: baseline score", SURVIVES_LABEL]


def test_cells_of_one_training_say_so_and_are_never_framed(tmp_path: Path) -> None:
    one_seed = [run for run in RUNS if run[5] == 0]
    results = with_cells(study(tmp_path, set(), runs=one_seed), q=0.01, significant=True)
    figure = figure_of(results)
    for axes in panels(figure):
        assert cells_of(axes, "significant") == []
        assert len(cells_of(axes, "one training")) == 6
    assert legend(figure) == ["diagonal: baseline score", ONE_TRAINING_LABEL]
    assert count_marks(results).keys() == {"one-training"}
    assert flaws(figure) == []


def test_a_cell_that_lost_its_other_seeds_is_of_one_training(tmp_path: Path) -> None:
    lost = ("DailyDialog", "bert", "multitask", (TASKS[0],), TASKS[1], 1)
    results = with_cells(study(tmp_path, {lost}), q=0.01, significant=True)
    figure = figure_of(results)
    bert = panels(figure)[0]
    assert cells_of(bert, "one training") == [(0, 1)]
    assert len(cells_of(bert, "significant")) == 5
    assert legend(figure)[1:3] == [SURVIVES_LABEL, ONE_TRAINING_LABEL]


def test_cells_that_left_a_race_are_hatched_in_their_own_way(whole: Frames) -> None:
    cells = whole["cells"]
    left = (cells["source"] == TASKS[1]) & (cells["model"] == "bert")
    why = cells["no_interval"].astype(object).where(~left, NO_INTERVAL)
    results = with_cells(whole, no_interval=why, n_seeds=cells["n_seeds"].where(~left, 1))
    figure = figure_of(results)
    bert, t5 = panels(figure)
    assert cells_of(bert, "hatched lightly") == [(1, 0), (1, 2)]
    assert cells_of(t5, "hatched lightly") == cells_of(bert, "one training") == []
    assert all(grid(bert)[1])  # their numbers are still there
    assert LEFT_LABEL in legend(figure)
    assert LEFT_LABEL not in legend(figure_of(whole))
    assert count_marks(results)["left-race"] == 2
    assert flaws(figure) == []


def test_targets_whose_baseline_has_not_learned_are_dotted(whole: Frames) -> None:
    states = {"bert": {TASKS[1]: "not better", TASKS[2]: "learned"}, "t5": {}}
    references = pd.DataFrame(
        [
            {"dataset": "DailyDialog", "model": model, "target": target, "state": state}
            for model, of_model in states.items()
            for target, state in of_model.items()
        ]
    ).assign(is_best=True)
    figure = figure_of(whole.replace({"references": references}))
    bert, t5 = panels(figure)
    assert cells_of(bert, "dotted") == [(0, 1), (1, 1), (2, 1)]
    assert cells_of(t5, "dotted") == []
    assert all(all(row) for row in grid(bert))  # their numbers are still there
    assert UNLEARNED_LABEL in legend(figure)
    assert UNLEARNED_LABEL not in legend(figure_of(whole))
    assert flaws(figure) == []


def test_both_heatmaps_dot_the_same_targets(whole: Frames) -> None:
    """Without ``references`` as well: the scores of `data reference`, and collapsed baselines."""
    scores = pd.DataFrame(
        [("DailyDialog", TASKS[0], "tfidf_logistic", 100.0)],
        columns=["dataset", "target", "reference", "score"],
    )
    names = ["dataset", "model", "algorithm", "target", "n_runs", "n_collapsed"]
    rows = [("DailyDialog", "t5", "baseline", TASKS[1], 2, 1)]
    results = whole.replace({"reference": scores, "collapsed": pd.DataFrame(rows, columns=names)})
    (dataset,) = [
        one for one in build_payload(results, "")["datasets"] if one["name"] == "DailyDialog"
    ]
    assert dataset["unlearned"] == [["bert", TASKS[0]], ["t5", TASKS[0]], ["t5", TASKS[1]]]
    for axes, columns in zip(panels(figure_of(results)), ({0}, {0, 1}), strict=True):
        assert {column for _, column in cells_of(axes, "dotted")} == columns


def test_missing_and_not_planned_cells_look_apart(tmp_path: Path) -> None:
    """In the figure, in the aggregate, on the page, and on paper: PNG and PDF."""
    lost, never = (TASKS[0], TASKS[1]), (TASKS[1], TASKS[2])
    planned = [run for run in RUNS if run[3] != never[:1] or run[4] != never[1]]
    gone = {run for run in planned if run[3] == lost[:1] and run[4] == lost[1]}
    results = study(tmp_path, gone, runs=planned)
    figure, aggregate = figure_of(results), figure_of(results, plot_aggregate_transfer)
    for axes in [*panels(figure), aggregate.axes[0]]:
        assert cells_of(axes, "missing") == [(0, 1)]
        assert cells_of(axes, "not planned") == [(1, 2)]
    for one in (figure, aggregate):
        assert {MISSING_LABEL, NOT_PLANNED_LABEL} <= set(legend(one))
    assert MISSING["hatch"] != NOT_PLANNED["hatch"]
    assert {path.suffix for path in save_figure(figure, tmp_path, "heatmap")} == {".png", ".pdf"}
    [dataset] = build_payload(results, "")["datasets"]
    states = {(cell["source"], cell["target"]): cell["state"] for cell in dataset["cells"]}
    assert states[lost] == "missing"
    assert never not in states


def test_colours_end_at_100_per_cent_and_cells_beyond_are_marked(tmp_path: Path) -> None:
    """A score that falls to 0 has the darkest colour of the scale, next to one of +954 %."""
    gains = {TASKS[0]: 70.0, TASKS[1]: -7.0, TASKS[2]: 45.0}

    def collapsing(run: Run) -> float:
        return 7.0 + (gains[run[3][0]] if run[3] else 0.0)

    results = results_of(tmp_path, RUNS, collapsing)
    figure = figure_of(results)
    bert = panels(figure)[0]
    assert grid(bert)[0][1] == "+1000", "the number is printed as it is"
    assert sorted(cells_of(bert, "beyond")) == [(0, 1), (0, 2), (2, 0), (2, 1)]
    assert "beyond the colours (±100 %)" in legend(figure)
    faces, scale = colours_of(bert), mpl.colormaps["RdBu"]
    assert (faces[1, 0], faces[0, 1]) == (scale(0.0), scale(1.0)), "the ends of the scale"
    bar = next(axes for axes in figure.axes if axes.get_ylabel() == "Improvement, %")
    assert bar.get_ylim() == (-100.0, 100.0)
    [dataset] = build_payload(results, "")["datasets"]
    assert dataset["limits"] == {"points": 100.0, "percent": 100.0}
    beyond = {
        (c["source"], c["target"])
        for c in dataset["cells"]
        if "looks" in c and c["looks"]["percent"]["beyond"]
    }
    assert beyond == {(s, t) for s in (TASKS[0], TASKS[2]) for t in TASKS if s != t}
    assert flaws(figure) == []


def test_a_figure_without_frames_says_why(whole: Frames) -> None:
    none = figure_of(with_cells(whole, q=0.6, significant=False))
    assert legend(none)[1] == "no cell is significant after false-discovery control (q ≤ 0.05)"
    untested = figure_of(with_cells(whole, q=np.nan, significant=False))
    assert legend(untested) == ["diagonal: baseline score", "no cell was tested"]
    assert not any(cells_of(axes, "significant") for axes in untested.axes)


def test_a_model_that_left_nothing_has_a_hatched_panel(tmp_path: Path) -> None:
    figure = figure_of(study(tmp_path, {run for run in RUNS if run[1] == "t5"}))
    cells = [cell for row in grid(panels(figure)[1]) for cell in row]
    assert Counter(cells) == {MISSING["hatch"]: 9}


@pytest.mark.parametrize("synthetic", [True, False])
def test_the_title_names_study_dataset_seeds_and_synthetic_data(
    tmp_path: Path, synthetic: bool
) -> None:
    figure = figure_of(study(tmp_path, set(), synthetic=synthetic))
    title = figure.get_suptitle().replace("\n", " ")
    assert "DailyDialog" in title
    assert "study constructed, 2 seeds" in title
    assert ("· SYNTHETIC" in title) == synthetic


def test_a_baseline_of_zero_shows_points(tmp_path: Path) -> None:
    figure = figure_of(results_of(tmp_path, RUNS, lambda run: 7.0 if run[3] else 0.0))
    assert grid(panels(figure)[0])[0] == ["0.0", "Δ+7.0", "Δ+7.0"]
    assert "Δ: points (baseline 0, no percentage)" in legend(figure)


def test_no_text_overlaps_or_is_cut_at_paper_scale(tmp_path: Path) -> None:
    tasks = [f"task_{letter}" for letter in "abcdefghij"]
    runs = single_source_runs("DailyDialog", ["bert-base-uncased", "gpt2", "t5-base"], tasks, [0])
    results = results_of(tmp_path, runs, lambda run: 5.0 + 90.0 * (len(str(run)) % 2))
    figure = figure_of(with_cells(results, q=0.01, significant=True))
    assert flaws(figure) == []
    shown = panels(figure)
    assert len(shown) == 3 * len(ALGORITHMS)
    cell = shown[0].get_window_extent().width / 10
    assert max(text.get_window_extent().width for axes in shown for text in axes.texts) < cell


def test_multi_source_bars_beside_their_singles(tmp_path: Path, whole: Frames) -> None:
    sources = tuple(sorted((TASKS[0], TASKS[1])))
    several: list[Run] = [
        ("DailyDialog", model, "multitask", sources, TASKS[2], seed)
        for model in ("bert", "t5")
        for seed in (0, 1)
    ]
    gone = {run for run in several if run[1] == "t5"}
    results = study(tmp_path, gone, runs=[*RUNS, *several])
    figure = figure_of(results, plot_multi_source_bars)
    bert, t5 = figure.axes
    # Single sources give +10 and -4, so +3; the run on both scores -4.
    assert [text.get_text() for text in bert.texts] == ["+3.0", "−4.0"]
    assert len(t5.texts) == 0
    assert [bool(patch.get_hatch()) for patch in t5.patches] == [True, True]
    assert "missing" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label.get_text() for label in t5.get_xticklabels()] == ["TC\nfrom DNLI + ER"]
    assert plot_multi_source_bars(whole, "DailyDialog") is None


def test_scores_of_prompted_models_appear_once(whole: Frames) -> None:
    asked = build_frame(
        [
            ("DailyDialog", "smol", shots, target, value, *[np.nan] * 2, 2, 1.0, 1, 1, 1, 9, 9,
             "written", 0.0, 5, "unknown", 1)
            for shots, value in ((0, 11.0), (4, 22.0))
            for target in (*TASKS[:2], "")
        ],
        PROMPTED,
    )  # fmt: skip
    figure = figure_of(whole.replace({"prompted": asked}))
    (table,) = [axes for axes in figure.axes if axes.get_title(loc="left") == PROMPTED_TITLE]
    labels = [text.get_text() for text in table.get_yticklabels()]
    assert labels == ["smol, 0 shots", "smol, 4 shots"]
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert (texts.count("11.0"), texts.count("22.0")) == (2, 2)
    assert [text.get_text() for text in table.texts] == ["11.0"] * 2 + ["22.0"] * 2
    assert flaws(figure) == []
    part = select_dataset(whole.replace({"prompted": asked}), "Friends")
    assert part["prompted"].empty
    assert len(figure_of(whole).axes) == len(figure.axes) - 1


def test_effects_are_points_and_faded_unless_their_interval_excludes_zero(whole: Frames) -> None:
    rows = whole["cells"].sort_values(["model", "source", "target"], ignore_index=True)
    one_seed = rows.index == 2
    rows = rows.assign(
        low=np.where(rows.index % 2, 0.5, -30.0),
        high=np.where(rows.index % 2, 30.0, 40.0),
        n_seeds=np.where(one_seed, 1, rows["n_seeds"]),
    )
    rows.loc[one_seed, "low"] = 0.5  # the interval of one seed is over dialogues alone
    figure = figure_of(whole.replace({"cells": rows}), plot_effects)
    bert, _ = panels(figure)
    assert grid(bert)[0] == ["40.5", "+10.0", "+10.0"]
    names = [label.get_text() for label in bert.get_xticklabels()]
    bold = {
        (names[int(text.get_position()[1])], names[int(text.get_position()[0])])
        for text in bert.texts
        if text.get_weight() == "bold"
        and int(text.get_position()[0]) != int(text.get_position()[1])
    }
    shorts = {task: name for task, name in whole.metadata.shorts.items() if name in names}
    certain = rows[(rows["model"] == "bert") & (rows.index % 2 == 1)]
    assert bold == {
        (shorts[source], shorts[target])
        for source, target in zip(certain["source"], certain["target"], strict=True)
    }
    assert FADED_LABEL in legend(figure)
    assert fade_colour((0.0, 0.0, 0.0, 1.0)) == (0.75, 0.75, 0.75)
