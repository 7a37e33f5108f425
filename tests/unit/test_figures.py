"""Content of each figure; nothing in it overlaps or is cut off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from constructed_results import (
    flaws,
    lengths_of,
    results_of,
    with_cells,
    with_shuffled_sources,
    with_sizes,
)
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from record_factory import Run, single_source_runs

from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.figures.one_dataset import LOOKS, get_task_type, select_dataset
from tasktransfer.designs.transfer.figures.pair_means import (
    UNLEARNED_LABEL,
    compute_arrow_threshold,
    get_arrow_look,
    plot_aggregate_transfer,
    plot_transfer_graph,
)
from tasktransfer.designs.transfer.figures.task_properties import (
    compute_ratios,
    plot_lengths,
    plot_sample_count,
    plot_sample_ratio,
    plot_source_type,
)
from tasktransfer.designs.transfer.shown import FIGURES, PLOTS
from tasktransfer.present.kit.paper import read_caption
from tasktransfer.present.kit.style import get_series_look
from tasktransfer.results.frames import Frames

ER, TC, DNLI = "emotion_recognition", "topic_classification", "dialogue_nli"
TASKS = (ER, TC, DNLI)
ACTS = "dialogue_act_classification"
SIZES = {ER: 1000, TC: 100, DNLI: 10}
RUNS = single_source_runs("DailyDialog", ["bert", "t5"], TASKS, [0, 1], ["multitask"])
PLANTED = {(ER, TC): 8.0, (ER, DNLI): 4.0, (TC, ER): -6.0, (TC, DNLI): -2.0,
           (DNLI, ER): 1.0, (DNLI, TC): 3.0}  # fmt: skip
"""Source and target → delta, of every model."""


def score(run: Run) -> float:
    *_, sources, target, seed = run
    return 50.0 + seed + (PLANTED[sources[0], target] if sources else 0.0)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    results = with_shuffled_sources(results_of(tmp_path_factory.mktemp("planted"), RUNS, score))
    return with_sizes(results, SIZES).replace({"lengths": lengths_of("DailyDialog")})


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_figure_reads_is_all_that_it_needs(planted: Frames, name: str) -> None:
    """``draw_figures`` passes only the tables that it names, of its dataset."""
    _, reads, _ = FIGURES[name]
    part = select_dataset(planted.select(reads), "DailyDialog")
    whole = PLOTS[name](planted, "DailyDialog")
    assert (PLOTS[name](part, "DailyDialog") is None) == (whole is None)
    assert name == "multi_source" or whole is not None


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def note(figure: Figure) -> str:
    return figure.legends[0].get_title().get_text().replace("\n", " ")


def count_bands(axes: Axes) -> int:
    return sum(isinstance(found, PolyCollection) for found in axes.collections)


def grid(axes: Axes) -> dict[tuple[float, float], list[str]]:
    """Return row and column of a cell → its texts, from top to bottom."""
    found: dict[tuple[float, float], list[str]] = {}
    for text in sorted(axes.texts, key=lambda text: text.get_position()[1]):
        x, y = text.get_position()
        found.setdefault((np.floor(y), np.floor(x)), []).append(text.get_text())
    return found


# --- layout ---------------------------------------------------------------------------------------


def noise(run: Run) -> float:
    """Return scores that vary with the names, and are equal in every call."""
    return 30.0 + sum(map(ord, "".join(map(str, run)))) * 37 % 4001 / 100


@pytest.fixture(scope="module")
def paper_scale(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return ten tasks, three models with long names, three algorithms, gaps, several sources."""
    tasks = list(DATASETS["DailyDialog"].tasks)
    models = ["an-organisation/a-model-with-a-long-name", "gpt2-medium", "t5-base"]
    runs = single_source_runs("DailyDialog", models, tasks, [0])
    runs += [
        ("DailyDialog", model, algorithm, tuple(sorted(tasks[3:6])), target, 0)
        for model in models
        for algorithm in ("pretrain_finetune", "multitask", "multitask_finetune")
        for target in tasks[:3]
    ]
    results = results_of(
        tmp_path_factory.mktemp("paper"),
        runs,
        noise,
        leave_out=lambda run: noise(run) % 1 > 0.9,
        synthetic=["DailyDialog", "Friends"],
    )
    sizes = {task: 50 * 2**place for place, task in enumerate(tasks)}
    cells = results["cells"]
    marked = with_cells(results, q=0.5, significant=cells.index % 3 == 0)
    marked = with_shuffled_sources(marked)
    return with_sizes(marked, sizes).replace({"lengths": lengths_of("DailyDialog")})


@pytest.fixture(scope="module")
def smallest(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """Return two tasks, one model, one algorithm and one seed."""
    runs = single_source_runs(
        "Friends", ["t"], list(DATASETS["Friends"].tasks)[:2], [0], ["multitask"]
    )
    several = ("Friends", "t", "multitask", ("question_answering", runs[0][4]), runs[1][4], 0)
    results = results_of(
        tmp_path_factory.mktemp("small"),
        [*runs, several],
        noise,
        synthetic=["DailyDialog", "Friends"],
    )
    results = with_shuffled_sources(results)
    return results.replace({"lengths": lengths_of("Friends", 3)})


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("scale", ["paper_scale", "smallest"])
def test_nothing_overlaps_or_is_truncated(
    name: str, scale: str, request: pytest.FixtureRequest
) -> None:
    results: Frames = request.getfixturevalue(scale)
    dataset = "DailyDialog" if scale == "paper_scale" else "Friends"
    figure = drawn(PLOTS[name](results, dataset))
    assert flaws(figure) == []
    assert "· SYNTHETIC" in figure.get_suptitle().replace("\n", " ")
    assert read_caption(figure).marks.startswith("SYNTHETIC (tiny world): generated dialogues")


@pytest.mark.parametrize("name", FIGURES)
def test_a_dataset_that_is_not_there_has_no_figure(name: str, planted: Frames) -> None:
    assert PLOTS[name](planted, "Friends") is None


def test_real_data_bear_no_mark(planted: Frames) -> None:
    for name, draw in PLOTS.items():
        if name != "multi_source":
            figure = drawn(draw(planted, "DailyDialog"))
            assert "SYNTHETIC" not in figure.get_suptitle()
            assert read_caption(figure).marks == ""
            assert "study constructed" in figure.get_suptitle()


# --- Figure 1 -------------------------------------------------------------------------------------


def test_the_graph_has_an_arrow_for_each_pair_as_strong_as_its_delta(planted: Frames) -> None:
    figure = drawn(plot_transfer_graph(planted, "DailyDialog"))
    bert, t5 = figure.axes
    assert bert.get_title() == "bert\n6 of 6 pairs drawn"
    arrows, other = (
        [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
        for axes in (bert, t5)
    )
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    expected = [get_arrow_look(delta, 10.0) for delta in PLANTED.values()]
    assert widths == pytest.approx(sorted(width for _, width, _ in expected))
    dashed = [arrow for arrow in arrows if arrow.get_linestyle() != "-"]
    assert len(dashed) == 2, "negative transfer is dashed, not red alone"
    assert {text.get_text() for text in bert.texts} == {"ER", "TC", "DNLI"}
    assert legend(figure)[-2:] == ["utterance classification", "dialogue classification"]
    assert len(other) == 6


def test_nodes_of_targets_whose_baseline_has_not_learned_are_hollow(planted: Frames) -> None:
    references = pd.DataFrame(
        [("DailyDialog", "bert", TC, "not better"), ("DailyDialog", "t5", TC, "learned")],
        columns=["dataset", "model", "target", "state"],
    ).assign(is_best=True)
    figure = drawn(plot_transfer_graph(planted.replace({"references": references}), "DailyDialog"))
    fills = [[line.get_markerfacecolor() for line in axes.lines] for axes in figure.axes]
    assert [colours.count("white") for colours in fills] == [1, 0]
    assert legend(figure)[-1] == UNLEARNED_LABEL
    assert flaws(figure) == []
    assert UNLEARNED_LABEL not in legend(drawn(plot_transfer_graph(planted, "DailyDialog")))


def test_only_arrows_that_can_be_distinguished_are_drawn(paper_scale: Frames) -> None:
    figure = drawn(plot_transfer_graph(paper_scale, "DailyDialog"))
    counts = [len(axes.patches) for axes in figure.axes]
    assert max(counts) <= 30
    assert min(counts) > 0
    assert "Arrows show effects of at least" in note(figure)


def test_the_threshold_leaves_at_most_so_many_arrows() -> None:
    arrows = pd.DataFrame({"model": "bert", "delta": [5.0, -4.04, 3.0, -2.0, 1.0]})
    assert compute_arrow_threshold(arrows, 5) == 0.0
    assert compute_arrow_threshold(arrows, 2) == 3.1
    assert compute_arrow_threshold(arrows, 1) == 4.1
    alike = pd.DataFrame({"model": "bert", "delta": [2.0] * 9})
    assert compute_arrow_threshold(alike, 3) == 2.0, "a crowded graph rather than an empty one"


def test_looks_tell_the_sign_without_colour() -> None:
    positive, negative = get_arrow_look(5.0, 10.0), get_arrow_look(-5.0, 10.0)
    assert positive[1] == negative[1]
    assert positive[2] != negative[2]
    assert get_arrow_look(99.0, 10.0)[1] == get_arrow_look(10.0, 10.0)[1]
    looks = list(LOOKS.values())
    assert len({look.marker for look in looks}) == len(looks)
    series = [get_series_look(rank) for rank in range(4)]
    assert len({look.marker for look in series}) == len({look.line for look in series}) == 4


# --- Figure 4 -------------------------------------------------------------------------------------


def test_ratios_are_of_training_samples(planted: Frames) -> None:
    cells = compute_ratios(planted, "DailyDialog")
    found = {(row.source, row.target): row.ratio for row in cells.itertuples()}
    assert found[ER, TC] == 10.0
    assert found[DNLI, ER] == 0.01
    types = dict(zip(cells["target"], cells["type"], strict=True))
    assert types == {ER: "utterance classification", TC: "dialogue classification",
                     DNLI: "dialogue classification"}  # fmt: skip
    unknown = with_sizes(planted, {ER: 1000, TC: 100})
    assert set(compute_ratios(unknown, "DailyDialog")["ratio"]) == {10.0, 0.1}
    assert plot_sample_ratio(with_sizes(planted, {}), "DailyDialog") is None
    figure = drawn(plot_sample_ratio(unknown, "DailyDialog"))
    assert "8 cells left out, because a task's size is unknown" in read_caption(figure).notes


def test_a_ratio_is_known_of_a_source_of_another_dataset(planted: Frames) -> None:
    sizes = planted["sizes"].head(1)
    foreign = pd.concat([sizes.assign(dataset="Own", task="mood", train=300), sizes])
    cells = planted["cells"].head(1).assign(source="Own/mood", target=sizes["task"].iloc[0])
    results = planted.replace({"sizes": foreign, "cells": cells}).select(("sizes", "cells"))
    part = select_dataset(results, "DailyDialog")
    assert list(compute_ratios(part, "DailyDialog")["ratio"]) == [300 / sizes["train"].iloc[0]]


EXPONENTS = {(ER, TC): 1, (ER, DNLI): 2, (TC, DNLI): 1, (DNLI, TC): -1, (ACTS, TC): -2,
             (ACTS, DNLI): -1}  # fmt: skip
"""Dialogue classification as target: source and target → logarithm of the sample ratio."""
LINEAR = (2.1, 4.0, 1.9, -2.0, -4.1, -1.9)
SCATTERED = (8.0, 4.0, -2.0, 3.0, 5.0, 2.0)


def with_dialogue_targets(results: Frames, deltas: tuple[float, ...]) -> Frames:
    """Return results with these deltas, by the pairs of ``EXPONENTS``, for each model."""
    cells, sizes = results["cells"], results["sizes"]
    one = cells[(cells["source"] == ER) & (cells["target"] == TC)]
    rows = [
        one.assign(source=source, target=target, delta=delta)
        for (source, target), delta in zip(EXPONENTS, deltas, strict=True)
    ]
    others = cells[cells["target"] == ER]
    wider = pd.concat([sizes, sizes.head(1).assign(task=ACTS)])
    changed = results.replace({"cells": pd.concat([others, *rows]), "sizes": wider})
    return with_sizes(changed, {**SIZES, ACTS: 1})


def test_the_best_fit_is_of_delta_on_the_logarithm_of_the_ratio(planted: Frames) -> None:
    figure = drawn(plot_sample_ratio(with_dialogue_targets(planted, LINEAR), "DailyDialog"))
    bert = figure.axes[0]
    slope, middle = np.polyfit([*EXPONENTS.values()], LINEAR, 1)
    look = LOOKS["dialogue classification"]
    line = next(line for line in bert.lines if line.get_color() == look.colour)
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert (x[0], x[-1]) == pytest.approx((0.01, 100))
    assert (y[0], y[-1]) == pytest.approx((middle - 2 * slope, middle + 2 * slope))
    assert count_bands(bert) == len(bert.lines) - 1 == 1, "no line through the other type's ratios"
    assert "jackknife over tasks" in read_caption(figure).notes


def test_no_line_is_drawn_whose_band_would_fill_the_panel(planted: Frames) -> None:
    figure = drawn(plot_sample_ratio(with_dialogue_targets(planted, SCATTERED), "DailyDialog"))
    for axes in figure.axes:
        assert count_bands(axes) == 0
        assert len(axes.lines) == 1, "the line at 0"
    assert "interval is wider than the range of the points" in read_caption(figure).notes


@pytest.mark.parametrize("draw", [plot_sample_ratio, plot_sample_count])
def test_no_line_is_drawn_through_fewer_than_three_values(
    planted: Frames, draw: Callable[[Frames, str], Figure | None]
) -> None:
    two = with_sizes(planted, {ER: 100, TC: 100, DNLI: 10})
    cells = two["cells"]
    one_target = two.replace({"cells": cells[cells["target"] == TC]})
    figure = drawn(draw(one_target, "DailyDialog"))
    for axes in figure.axes:
        assert count_bands(axes) == 0
        assert max(len(np.asarray(line.get_xdata())) for line in axes.lines) <= 2
    assert "there are too few distinct values" in read_caption(figure).notes
    assert not any("least-squares" in text for text in legend(figure))


# --- Figure 5 -------------------------------------------------------------------------------------


def test_points_are_means_by_sample_count(planted: Frames) -> None:
    figure = drawn(plot_sample_count(planted, "DailyDialog"))
    assert len(figure.axes) == 4
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes[::2]] == ["bert", "t5"]
    assert [axes.get_xlabel() for axes in figure.axes[2:]] == [
        "Training samples of the source",
        "Training samples of the target",
    ]

    def means(axes: Axes, rank: int) -> list[float]:
        marker = get_series_look(rank).marker
        return [line.get_ydata()[0] for line in axes.lines if line.get_marker() == marker]

    # By size: DNLI 10, TC 100, ER 1000.
    assert means(figure.axes[0], 0) == pytest.approx([2.0, -4.0, 6.0])
    assert means(figure.axes[3], 1) == pytest.approx([1.0, 5.5, -2.5])
    assert plot_sample_count(with_sizes(planted, {}), "DailyDialog") is None


# --- Figure 6 -------------------------------------------------------------------------------------


def test_lengths_are_shares_of_all(planted: Frames) -> None:
    frame = pd.DataFrame(
        [("DailyDialog", "utterance_words", length, count)
         for length, count in ((2, 50), (3, 30), (4, 19), (900, 1))],
        columns=["dataset", "unit", "length", "count"],
    )  # fmt: skip
    figure = drawn(plot_lengths(planted.replace({"lengths": frame}), "DailyDialog"))
    (axes,) = figure.axes
    bars = {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in axes.patches}
    assert bars == {2.0: 50.0, 3.0: 30.0, 4.0: 19.0}
    assert axes.get_title() == ("100 utterances\nmedian 2, mean 11.7\n1 longer than 4, up to 900")
    assert plot_lengths(planted.replace({"lengths": frame.head(0)}), "DailyDialog") is None


# --- Figures 7 and 8 ------------------------------------------------------------------------------


def test_aggregates_are_means_over_models_and_algorithms_with_margins(tmp_path: Path) -> None:
    runs = single_source_runs("Friends", ["bert", "t5"], ["a", "b"], [0], ["multitask"])

    def mixed(run: Run) -> float:
        _, model, _, sources, *_ = run
        gain = {("a", "bert"): 6.0, ("a", "t5"): -2.0, ("b", "bert"): 3.0}
        return 50.0 + (gain.get((sources[0], model), 0.0) if sources else 0.0)

    gone = ("Friends", "t5", "multitask", ("b",), "a", 0)
    results = results_of(tmp_path, runs, mixed, leave_out=lambda run: run == gone)
    figure = drawn(plot_aggregate_transfer(results, "Friends"))
    # a → b: +6 and −2; b → a: +3 by bert, the other is missing.
    assert grid(figure.axes[0]) == {
        (0.0, 1.0): ["+2.0", "1/2"],
        (1.0, 0.0): ["+3.0", "1/1*"],
        (0.0, 2.0): ["+2.0"],
        (1.0, 2.0): ["+3.0"],
        (2.0, 0.0): ["+3.0"],
        (2.0, 1.0): ["+2.0"],
        (2.0, 2.0): ["+2.5"],
    }
    assert legend(figure) == ["* some combinations missing"]
    assert "2 models and 1 algorithm" in figure.get_suptitle().replace("\n", " ")


# --- Figure 9 -------------------------------------------------------------------------------------


def test_source_types_have_their_cells_and_means(planted: Frames) -> None:
    figure = drawn(plot_source_type(planted, "DailyDialog"))
    bert, t5 = figure.axes
    assert [label.get_text() for label in t5.get_xticklabels()] == [
        "utterance\nclassification\n(1 task)",
        "dialogue\nclassification\n(2 tasks)",
    ]
    points = [np.sort(found.get_offsets()[:, 1]).tolist() for found in bert.collections]
    assert points == [[4.0, 8.0], [-6.0, -2.0, 1.0, 3.0]]
    marker = get_series_look(0).marker
    means = [line.get_ydata()[0] for line in bert.lines if line.get_marker() == marker]
    assert means == pytest.approx([6.0, -1.0])
    assert legend(figure) == ["Multitask"]


def test_task_types_are_those_of_the_paper(shared: Path) -> None:
    published = pd.read_csv(shared / "paper" / "table1_tasks.csv")
    assert len(published) == 17
    for row in published.itertuples():
        assert get_task_type(row.dataset, row.task) == row.task_type
    assert get_task_type("Friends", "a_task_of_my_own") == "other"
