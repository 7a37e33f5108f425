"""Figures in paper style: width, fonts, captions, and files that LaTeX accepts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from constructed_results import flaws, lengths_of, results_of, with_shuffled_sources, with_sizes
from matplotlib.text import Text
from PIL import Image
from record_factory import Run, single_source_runs

from shown_results import drawn as draw_figures
from tasktransfer.designs.transfer.figures.forest import plot_methods
from tasktransfer.designs.transfer.figures.one_dataset import select_dataset
from tasktransfer.designs.transfer.frames import METHODS
from tasktransfer.designs.transfer.shown import FIGURES, PLOTS
from tasktransfer.present.figures import draw_for_paper, find_latex_engine, list_paper_endings
from tasktransfer.present.kit.panels import create_panels
from tasktransfer.present.kit.paper import (
    CELL,
    NARROW,
    POINTS,
    WIDE,
    count_columns,
    use_paper_style,
)
from tasktransfer.present.kit.style import save_figure
from tasktransfer.results.frames import Frames, list_column_names

TASKS = ("emotion_recognition", "topic_classification", "dialogue_nli")
SEVERAL: Run = ("DailyDialog", "bert", "multitask", TASKS[:2], TASKS[2], 0)
KINDS = [name for name in FIGURES if name != "sample_count"]


def score(run: Run) -> float:
    return 30.0 + sum(map(ord, "".join(map(str, run)))) * 37 % 401 / 10


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    runs = single_source_runs("DailyDialog", ["bert", "t5_long-name"], TASKS, [0, 1])
    folder = tmp_path_factory.mktemp("paper")
    made = results_of(folder, [*runs, SEVERAL], score, synthetic=["DailyDialog", "Friends"])
    made = with_sizes(with_shuffled_sources(made), dict(zip(TASKS, (1000, 100, 10), strict=True)))
    return made.replace({"lengths": lengths_of("DailyDialog")})


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", KINDS)
def test_no_text_overlaps_or_is_large(results: Frames, name: str, width: float) -> None:
    with use_paper_style(width):
        figure = PLOTS[name](results, "DailyDialog")
        assert figure is not None
        found = flaws(figure)
    assert figure.get_figwidth() == width
    assert figure.get_suptitle() == ""
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert {round(text.get_fontsize(), 3) for text in texts} & {POINTS}
    assert all(text.get_fontsize() <= POINTS for text in texts if text.get_gid() != CELL)
    assert {text.get_fontfamily()[0] for text in texts} == {"STIXGeneral"}
    if width == WIDE:
        assert found == []


def make_methods(
    targets: Iterable[str], methods: dict[str, tuple[str | None, str | None]]
) -> pd.DataFrame:
    """Return equal rows of methods, by method with its model and variant."""
    empty = dict.fromkeys(list_column_names(METHODS))
    return pd.DataFrame(
        {**empty, "dataset": "DailyDialog", "target": target, "method": name, "model": model,
         "variant": variant, "n_seeds": 2, "score": 50.0, "low": 40.0, "high": 70.0,
         "recommended": name == "most_frequent", "is_best": False}
        for target in targets
        for name, (model, variant) in methods.items()
    )  # fmt: skip


def test_the_figure_of_methods_has_the_declared_short_names(results: Frames) -> None:
    shorts = {"dialogue_nli": "DNLI", "emotion_recognition": "ER"}
    methods = make_methods(shorts, {"tfidf_logistic": (None, None)})
    alone = results.replace({"methods": methods}, replace(results.metadata, shorts=shorts)).select(
        ("methods",)
    )
    figure = plot_methods(select_dataset(alone, "DailyDialog"))
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["DNLI", "ER"]


def test_methods_of_many_targets_do_not_overlap_on_paper(results: Frames) -> None:
    targets = ("emotion_recognition", "topic_classification", "dialogue_nli", "dialogue_acts")
    methods: dict[str, tuple[str | None, str | None]] = {
        "most_frequent": (None, None),
        "frozen_logistic": ("minilm", None),
        "nearest_neighbour": ("minilm", None),
        "transfer": ("minilm", "multitask:dialogue_reasoning_span_extraction"),
        "prompted": ("smollm2-135m", "4 shots"),
    }
    frames = results.replace({"methods": make_methods(targets, methods)})
    with use_paper_style(WIDE):
        figure = plot_methods(frames)
        assert figure is not None
        assert flaws(figure) == []
    widths = [axes.get_position().width * figure.get_figwidth() for axes in figure.axes]
    assert min(widths) > 0.6, widths
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(labels) == len(methods)


def test_panels_of_a_group_stay_in_one_row() -> None:
    with use_paper_style(WIDE):
        for count in (6, 20):
            _, axes = create_panels(count, 1.5, 1.35, shared="none", group=2)
            places = [panel.get_subplotspec() for panel in axes]
            rows = [place.rowspan.start for place in places if place is not None]
            assert rows[::2] == rows[1::2]


def test_files_have_the_page_width_and_the_whole_caption(results: Frames, tmp_path: Path) -> None:
    drawn = draw_figures(results, tmp_path, ["transfer_graph"], "paper")
    assert drawn.names == ["transfer_graph_DailyDialog"]
    assert [path.suffix[1:] for path in drawn.list_files(tmp_path)] == list(list_paper_endings())
    path = tmp_path / "transfer_graph_DailyDialog.pdf"
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", path.read_bytes())
    assert box is not None
    assert float(box[1]) / 72 == pytest.approx(WIDE, abs=0.01)
    latex = path.with_suffix(".tex").read_text(encoding="utf-8")
    assert "\\includegraphics[width=5.5in]{transfer_graph_DailyDialog.pdf}" in latex
    assert "study constructed, 2 seeds" in latex
    assert "Nodes are tasks" in latex, "the caption of the kind"
    assert "DNLI: dialogue NLI; ER: emotion recognition; TC: topic classification." in latex
    assert "SYNTHETIC (tiny world): generated dialogues" in latex
    assert draw_figures(results, tmp_path, ["transfer_graph"], "paper").redrawn == []


def test_the_caption_is_in_the_files_for_the_screen_too(results: Frames, tmp_path: Path) -> None:
    figure = PLOTS["effects"](results, "DailyDialog")
    assert figure is not None
    png, _ = save_figure(figure, tmp_path, "effects")
    with Image.open(png) as picture:
        texts = dict(picture.info)
    assert "TC: topic classification" in texts["Description"]
    assert texts["Warning"].startswith("SYNTHETIC (tiny world)")
    assert "change of the score by transfer, points" in texts["Title"]


def test_panels_move_below_each_other_only_on_paper() -> None:
    assert count_columns(4, 2.6, 4) == 4
    with use_paper_style(WIDE):
        assert count_columns(4, 2.6, 4) == 2
        assert count_columns(17, 2.9, 4, 2.1) == 4, "no higher than a page"
        assert count_columns(17, 2.6, 17, 4.5) == 4, "no narrower than their titles"
    with use_paper_style(NARROW):
        assert count_columns(4, 2.6, 4) == 1


@pytest.mark.skipif(find_latex_engine() != "pdflatex", reason="needs pdflatex and pgf")
def test_latex_reads_the_files(results: Frames, tmp_path: Path) -> None:
    for name in ("effects", "multi_source", "aggregate_transfer"):
        figure = PLOTS[name](results, "DailyDialog")
        assert figure is not None
        draw = partial(PLOTS[name], results, "DailyDialog")
        draw_for_paper(draw, figure, tmp_path / name, "100 % of a_b & c: ±1, Δ ≤ 2.")
    names = sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".pgf", ".tex"))
    assert len(names) == 6, "one file per figure and format: no images next to PGF files"
    text = "\n\\clearpage\n".join(f"\\input{{{name}}}" for name in names)
    preamble = "\\documentclass{article}\\usepackage{pgf,graphicx}\\def\\mathdefault#1{#1}"
    document = f"{preamble}\\begin{{document}}{text}\\end{{document}}"
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    latex = [shutil.which("pdflatex") or "", "-halt-on-error", "paper.tex"]
    ended = subprocess.run(latex, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
