"""The report's text: one complete file, numbers from the tables only, no foreign scripts."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from report_results import Asked, RunName, make_results, path_of
from shown_results import printed, render, shown_of, write_report
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer.collect import BASELINE_MISSING
from tasktransfer.designs.transfer.figures.forest import plot_effect_forest
from tasktransfer.designs.transfer.report.grid import build_payload
from tasktransfer.designs.transfer.shown import FIGURES
from tasktransfer.present.kit.matrix import (
    MISSING_LABEL,
    NOT_PLANNED_LABEL,
    ONE_TRAINING_LABEL,
    SURVIVES_LABEL,
)
from tasktransfer.present.kit.paper import WIDE, use_paper_style
from tasktransfer.present.kit.style import format_signed, save_figure
from tasktransfer.present.marks import describe_limits
from tasktransfer.present.numbers import format_named_p, format_p_value, format_value_with_interval
from tasktransfer.present.page.common_blocks import STATES
from tasktransfer.present.tables import PrintedTable
from tasktransfer.results.frames import Frames
from tasktransfer.results.state import DAMAGED, State

ROOT = Path(__file__).resolve().parents[2]
A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"
NASTY = "</script><script>window.injected = 1</script>"
VOID = {"meta", "link", "img", "br", "hr", "input"}


def small(**changes: Any) -> Frames:
    return make_results(Asked(**({"tasks": {"DailyDialog": (A, B, C)}} | changes)))


def page_of(results: Frames, **more: Any) -> str:
    return render(results, Path("nowhere"), Path("results"), **more)


@cache
def a_page() -> str:
    return page_of(small())


class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects what a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closes another element"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text.append(data)


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    assert parsed.open == []
    return parsed


def cells_of(page: str) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """Return the cells of the interactive heatmap by model, algorithm, source and target."""
    [dataset] = embedded(page)["datasets"]
    keys = ("model", "algorithm", "source", "target")
    return {tuple(cell[key] for key in keys): cell for cell in dataset["cells"]}  # type: ignore[misc]


def seen(page: str) -> str:
    return " ".join(" ".join(outline(page).text).split())


def embedded(page: str) -> Any:
    found = re.search(r'id="heatmap-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_is_well_formed_and_names_the_study() -> None:
    text = seen(a_page())
    for words in (
        *("constructed", "digest cccccccccccc", "revision revision-1", "bert (encoder)"),
        "Nothing is missing: every planned run has a result",
        "two models have a mean rank correlation of 0.25 (9 comparisons",
        # The marks have the names that the figure has.
        *(SURVIVES_LABEL, ONE_TRAINING_LABEL, MISSING_LABEL, NOT_PLANNED_LABEL),
    ):
        assert words in text


def test_every_id_is_one_element_and_every_link_inside_leads_to_one() -> None:
    tags = outline(a_page()).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = [
        a["href"] or "" for tag, a in tags if tag == "a" and (a["href"] or "").startswith("#")
    ]
    cells = [link for link in inside if link.startswith("#cell/")]  # opened by heatmap.js
    assert {link[1:] for link in inside if link not in cells} <= set(ids)
    assert len(cells) == len(set(cells)) == len(small()["cells"])


def test_nothing_is_fetched_from_anywhere() -> None:
    page = a_page()
    for tag, attributes in outline(page).tags:
        for key in ("src", "href"):
            value = attributes.get(key) or ""
            assert not value.startswith(("http:", "https:", "//")), f"<{tag} {key}={value}>"
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!data:)|fetch\(|XMLHttpRequest|https?://", page)


def test_cells_hold_the_numbers_of_the_statistics() -> None:
    results = small()
    page = page_of(results)
    found, cells = embedded(page), results["cells"]
    by_key = {key: cell for key, cell in cells_of(page).items() if cell["state"] == "transfer"}
    assert len(by_key) == len(cells)
    for row in cells.itertuples():
        cell = by_key[row.model, row.algorithm, row.source, row.target]
        for name in ("score", "baseline_score", "delta", "improvement", "p", "q"):
            assert cell[name] == pytest.approx(getattr(row, name), rel=1e-9)
        for name in ("low", "high"):  # no difference is beyond 100 points
            within = min(max(getattr(row, name), -100), 100)
            assert cell[name] == pytest.approx(within, rel=1e-9)
        assert cell["significant"] == row.significant
        assert cell["looks"]["points"]["text"] == format_signed(row.delta)
        assert cell["looks"]["percent"]["text"] == format_signed(row.improvement)
        assert cell["looks"]["q"]["text"] == format_p_value(row.q)
        assert cell["faded"] == (row.low <= 0 <= row.high)
        runs = [found["runs"][place] for place, _ in cell["runs"]]
        baselines = [found["runs"][place] for _, place in cell["runs"]]
        assert [run[0] for run in runs] == row.seeds
        deltas = [a[1] - b[1] for a, b in zip(runs, baselines, strict=True)]
        assert np.mean(deltas) == pytest.approx(row.delta)
        for (_, _, digest, path, _), seed in zip(runs, row.seeds, strict=True):
            run = ("DailyDialog", row.model, row.algorithm, (row.source,), row.target, seed)
            assert path == path_of(run)
            assert digest[:12] in path


def test_text_stands_out_from_every_colour() -> None:
    every = [
        cell
        for results in (small(seeds=range(1)), small())
        for cell in build_payload(results, "")["datasets"][0]["cells"]
    ]
    looks = [look for cell in every for look in cell.get("looks", {"": cell}).values()]
    assert {look["ink"] for look in looks} == {"#000000", "#ffffff"}
    for cell in looks:
        light, dark = sorted((_luminance(cell["fill"]), _luminance(cell["ink"])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, cell["fill"]


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_holes_are_named_and_not_averaged_in() -> None:
    def lost(run: RunName) -> tuple[str, str] | None:
        _, model, algorithm, sources, target, seed = run
        if (model, algorithm, sources, target) == ("bert", "multitask", (A,), B):
            return ("failed", "failed: loss is not a number at step 12") if seed == 0 else None
        if (model, sources, target) == ("gpt2", (B,), C):
            return "running", "running"
        return None

    results = small(
        lost=lost, problems=[("stages/x/metrics.json", "stages/x/metrics.json: truncated")]
    )
    page = page_of(results)
    text = seen(page)
    assert "7 planned runs have no result: 1 failed (" in text
    assert "1 damaged record was left out." in text
    assert "failed: loss is not a number at step 12" in text
    assert "stages/x/metrics.json: truncated" in text
    found = cells_of(page)
    partial = found["bert", "multitask", A, B]
    assert partial["seeds"] == [1]
    assert all(look["text"].endswith("*") for look in partial["looks"].values())
    assert partial["gaps"] == ["seed 0: failed: loss is not a number at step 12"]
    gone = found["gpt2", "multitask", B, C]
    assert gone["state"] == "missing"
    assert gone["gaps"] == ["seed 0: running", "seed 1: running"]
    assert "delta" not in gone


def test_a_lost_baseline_leaves_its_column_without_numbers() -> None:
    baseline = ("baseline", (), B)
    results = small(lost=lambda run: ("waiting", "no record") if run[2:5] == baseline else None)
    [dataset] = build_payload(results, "")["datasets"]
    cells = [cell for cell in dataset["cells"] if cell["target"] == B]
    assert {cell["state"] for cell in cells if cell["algorithm"] is None} == {"missing"}
    assert not [cell for cell in cells if cell["state"] == "transfer"]


def test_the_states_of_missing_runs_are_all_explained() -> None:
    assert set(STATES) == {*get_args(State), DAMAGED, BASELINE_MISSING}


def test_names_and_errors_from_files_are_text_and_never_markup() -> None:
    results = make_results(
        Asked(
            tasks={f"Dd{NASTY}": (A, NASTY, '"><img src=x onerror="window.injected = 2">')},
            models=(f"bert{NASTY}",),
            study=f"study <b>{NASTY}",
            shorts={A: "<i>ER</i>"},
            lost=lambda run: ("failed", f"failed: {NASTY} & more") if run[5] == 1 else None,
            problems=[(f"stages/{NASTY}", f"<svg onload=alert(1)>{NASTY}")],
        )
    )
    page = page_of(results, arguments=f"--config '{NASTY}'")
    parsed = outline(page)
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("script") == 2
    assert not {"b", "i", "img"} & set(tags)
    assert all(a["class"] == "bar" for tag, a in parsed.tags if tag == "svg")
    assert not [key for _, attributes in parsed.tags for key in attributes if key.startswith("on")]
    assert page.count("window.injected = 1") > 10
    assert html.escape(NASTY) in page
    assert embedded(page)["datasets"][0]["models"] == [f"bert{NASTY}"]


def test_synthetic_studies_say_so_first() -> None:
    text = seen(page_of(small(synthetic=True)))
    assert text.index("SYNTHETIC") < text.index("Answer")
    assert "not from real dialogues" in text
    assert "SYNTHETIC" not in seen(a_page())


def test_one_model_and_baselines_alone_have_a_page() -> None:
    one = seen(page_of(small(models=("bert",))))
    assert "“Agreement of models and of algorithms” is not shown, because the study does" in one
    alone = page_of(small(algorithms=()))
    assert "baselines only" in seen(alone)
    assert "heatmap-data" not in {a.get("id") for _, a in outline(alone).tags}


def test_seeds_are_counted_and_named() -> None:
    assert "Seeds 1 seed (number 0)" in seen(page_of(small(seeds=(0,))))
    assert "Seeds 2 seeds (numbers 0, 3)" in seen(page_of(small(seeds=(0, 3))))


def list_table_ids(page: str) -> set[str | None]:
    return {attributes.get("id") for tag, attributes in outline(page).tags if tag == "table"}


def test_a_table_of_dashes_is_a_sentence_that_says_why() -> None:
    results = small()
    correlation = dict.fromkeys(("correlation", "low", "high", "p"), np.nan)
    halves = dict.fromkeys(("disjoint", "reliability"), np.nan)
    dashes = {
        "variance": results["variance"].assign(share=np.nan),
        "agreement": results["agreement"].assign(**correlation, **halves),
        "overlap_effect": results["overlap_effect"].assign(**correlation),
    }
    page = page_of(results.replace(dashes))
    assert dashes.keys().isdisjoint(list_table_ids(page))
    text = seen(page)
    assert text.count("not available in this study, because it requires") == len(dashes)
    assert "requires at least three source-target pairs" in text


def test_a_column_of_dashes_is_left_out() -> None:
    results = small()
    summary = results["summary"].assign(mean_low=np.nan, mean_high=np.nan, rank=np.nan)
    table = printed(results.replace({"summary": summary}))["summary"]
    assert isinstance(table, PrintedTable)
    labels = list(table.layout.head)
    assert "Rank" not in labels
    assert labels.count("interval") == 3
    lines = [line for block in table.layout.blocks for entry in block for line in entry]
    assert {len(line) for line in lines} == {len(labels)}


def test_a_printed_table_of_dashes_is_a_sentence() -> None:
    """There are runs of several sources, but none of the single ones that Table 3 compares."""
    several = [("DailyDialog", (A, B), C)]
    results = small(
        several=several, lost=lambda run: ("waiting", "no record") if len(run[3]) == 1 else None
    )
    page = page_of(results)
    assert {"table3", "table6"} & list_table_ids(page) == {"table6"}
    assert "not available in this study, because every value is missing." in seen(page)


def test_the_same_results_give_the_same_page() -> None:
    assert page_of(small()) == a_page()


def test_the_answer_s_picture_has_the_numbers_on_screen_and_not_on_paper() -> None:
    summary = small()["summary"]
    texts = list_texts(summary)
    several = summary["model"].nunique() > 1
    for row in summary.itertuples():
        value = format_value_with_interval(row.mean, row.joint_low, row.joint_high, "+.1f")
        shown = f"{value}, {format_named_p('q', row.joint_q)}"
        assert (shown in texts) != several, "lines of several models have no room"
    one = summary[summary["model"] == summary["model"].iloc[0]]
    assert len(list_texts(one)) == len(one)
    with use_paper_style(WIDE):
        assert not list_texts(one)


def list_texts(summary: pd.DataFrame) -> list[str]:
    """Return the texts beside the intervals of the plot of effects."""
    figure = plot_effect_forest(small().replace({"summary": summary}))
    assert figure is not None
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_limits_are_words() -> None:
    cuts = "limit_train 500, limit_test 1200, prompted.limit_test 200, limit 20, limit_pool 60"
    assert describe_limits(cuts) == (
        "at most 500 training and 1,200 test instances per task; 200 test instances for prompted "
        "models; 20 test instances and 60 candidates per dataset"
    )
    assert describe_limits("settings.limit_test 8") == "at most 8 test responses to select"


def test_every_figure_has_a_caption_which_snakemakes_report_shows_too() -> None:
    shown = shown_of(small())
    names = [figure.text or figure.name for figure in shown.figures]
    assert set(names) == {*FIGURES, "forest"}
    for name, figure in zip(names, shown.figures, strict=True):
        text = shown.read_caption(name, figure.caption)
        assert len(text) > 80
        file = ROOT / "workflow" / "report" / shown.captions / f"{name}.rst"
        assert " ".join(file.read_text().split()) == text


def test_figures_are_in_the_file_and_their_pdfs_are_linked(tmp_path: Path) -> None:
    figure = Figure(figsize=(20, 3))
    figure.subplots().plot([0, 1])
    save_figure(figure, tmp_path / "figures", "heatmap_DailyDialog")
    out = write_report(small(), tmp_path / "figures", tmp_path / "report.html")
    page = out.read_text(encoding="utf-8")
    [image] = [attributes for tag, attributes in outline(page).tags if tag == "img"]
    assert (image["src"] or "").startswith("data:image/png;base64,")
    assert image["alt"]
    assert '<a href="figures/heatmap_DailyDialog.pdf">Open as PDF</a>' in page
    assert "Links to records and PDFs work only while" in page


DAILY, FRIENDS = (tuple(DATASETS[name].tasks) for name in ("DailyDialog", "Friends"))


def dense_figure() -> Figure:
    """Plot as much as the paper's largest heatmap: 900 cells with their numbers."""
    values = np.random.default_rng(0).standard_normal((30, 30))
    figure = Figure(figsize=(17, 17))
    axes = figure.subplots()
    axes.pcolormesh(values, cmap="RdBu")
    for (row, column), value in np.ndenumerate(values):
        axes.text(column, row, f"{value:.1f}", fontsize=7)
    return figure


@pytest.mark.slow
def test_at_the_papers_scale_the_page_is_below_ten_megabytes(tmp_path: Path) -> None:
    """All 6,375 runs, and eight figures as dense as the densest."""
    several = [("DailyDialog", DAILY[:2], target) for target in DAILY[2:4]]
    several += [("Friends", FRIENDS[3:6], target) for target in FRIENDS[:2]]
    results = make_results(
        Asked({"DailyDialog": DAILY, "Friends": FRIENDS}, seeds=range(5), several=several)
    )
    assert len(results["transfer_runs"]) == 6195 + 180
    [png, _] = save_figure(dense_figure(), tmp_path, "dense")
    picture = png.read_bytes()
    for dataset in ("DailyDialog", "Friends"):
        for name in list(FIGURES)[:4]:
            (tmp_path / f"{name}_{dataset}.png").write_bytes(picture)
    out = write_report(results, tmp_path, tmp_path / "report.html")
    assert 3e6 < out.stat().st_size < 10e6
    assert out.read_text(encoding="utf-8").count("data:image/png") == 8
