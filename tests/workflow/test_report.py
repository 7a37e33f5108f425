"""The report in a real browser: what a reader sees, points at, clicks and types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from report_results import Asked, RunName, digest_of_run, make_results, path_of, score_of
from shown_results import write_report
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.frames import CURVES, PROMPTED
from tasktransfer.designs.transfer.runs import get_algorithm_label
from tasktransfer.present.kit.style import format_signed
from tasktransfer.results.common_frames import ROUNDS
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import build_frame

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from report_reader import (
    CUT,
    INSIDE,
    PAPER,
    cell,
    choose,
    detail,
    focused,
    header,
    open_page,
    orders,
    press,
    requested,
    running_browser,
    shown_at,
    texts,
)

pytestmark = pytest.mark.slow

A, B, C, D = "emotion_recognition", "dialogue_nli", "topic_classification", "dialogue_acts"
E, F = "question_answering", "relation_extraction"
NASTY = "</script><img src=x onerror='window.injected = 1'>"
MODELS = ("bert", NASTY)
ALGORITHMS = ("pretrain_finetune", "multitask")
ARGUMENTS = "--config study.yaml"


def lost(run: RunName) -> tuple[str, str] | None:
    dataset, model, algorithm, sources, target, seed = run
    if (dataset, model, algorithm, target) != ("DailyDialog", "bert", "multitask", B):
        return None
    if sources == (A,):
        return "failed", f"failed: loss is not a number {NASTY}"
    return ("running", "running") if sources == (C,) and seed == 1 else None


CURVE = [(2.0, 10.0), (0.5, 30.0), (np.nan, 20.0)]
"""Loss and dev score by round of each run of one cell, and of its baselines."""

ASKED = Asked(
    tasks={"DailyDialog": (A, B, C, D), "Friends": (E, F)},
    models=MODELS,
    algorithms=ALGORITHMS,
    several=[("DailyDialog", (A, B), C)],
    lost=lost,
    synthetic=True,
    shorts={A: "ER", B: "DNLI", C: "TC"},
)


@pytest.fixture(scope="module")
def results() -> Frames:
    # Prompted runs, for two of three tasks.
    scores = [("smol", 0, A, 11.0), ("smol", 4, A, 22.0), ("smol", 4, B, 33.0)]
    prompted = [
        ("DailyDialog", model, shots, target, score, *[np.nan] * 2, 2, 1.0, 1, 1, 1, 9, 9,
         "written", 0.0, 5, "unknown", 1)
        for model, shots, target, score in scores
    ]  # fmt: skip
    made = make_results(ASKED)
    curves = [
        (*("DailyDialog", "bert", algorithm, source, C, seed), round_, *values)
        for algorithm, source in (("pretrain_finetune", A), ("baseline", ""))
        for seed in (0, 1)
        for round_, values in enumerate(CURVE, 1)
    ]
    return made.replace(
        {
            "prompted": build_frame(prompted, PROMPTED),
            "training_curves": build_frame(curves, CURVES),
            "training_rounds": build_frame(list_rounds(), ROUNDS),
        }
    )


def list_rounds() -> Iterator[tuple[Any, ...]]:
    """Yield the rounds of fifteen trainings of two seeds; round 1 is selected."""
    for number in range(15):
        label, seed = f"T{number}", number % 2
        path = f"stages/baseline/DailyDialog/bert/{label}/seed{seed}-ab"
        for round_, (loss, score) in enumerate([(None, 10.0), (0.7, 30.0), (0.4, 20.0)]):
            yield label, "bert", seed, path, round_, loss, score, round_ == 1


@pytest.fixture(scope="module")
def report(results: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return write_report(results, folder, folder / "report.html", arguments=ARGUMENTS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as driver:
        yield driver


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """Load the report, and check after the test that it logged no errors and fetched nothing."""
    browser.get("about:blank")  # or the driver reloads the page and may answer halfway through
    browser.get_log("performance")
    open_page(browser, report)
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.injected") is None
    assert requested(browser) == {report.as_uri()}


# --- expected content of the page


def the_cells(
    results: Frames, dataset: str, model: str, algorithm: str
) -> dict[tuple[str, str], Any]:
    cells = results["cells"]
    shown = cells[
        (cells["dataset"] == dataset)
        & (cells["model"] == model)
        & (cells["algorithm"] == algorithm)
    ]
    return {(row.source, row.target): row for row in shown.itertuples()}


def number(value: float, *, sign: bool = False) -> str:
    return format(value, "+.2f" if sign else ".2f").replace("-", "−")


def square(results: Frames, axis: str) -> pd.Series[float]:
    """Return the mean delta by task as source or target in the first heatmap."""
    cells = results["cells"]
    here = cells[
        (cells["dataset"] == "DailyDialog")
        & (cells["model"] == "bert")
        & (cells["algorithm"] == "pretrain_finetune")
        & (cells["n_sources"] == 1)
    ]
    return here.groupby(axis)["delta"].mean().sort_values(ascending=False)


# --- tests ---


def test_it_opens_and_can_be_looked_at(page: Any, tmp_path: Path) -> None:
    assert page.title == "SYNTHETIC: constructed"
    assert "not from real dialogues" in page.find_element(By.CLASS_NAME, "synthetic").text
    for width in (1400, 420):
        page.set_window_size(width, 1000)
        page.execute_script("document.getElementById('interactive-title').scrollIntoView()")
        assert page.save_screenshot(str(tmp_path / f"report-{width}.png"))
        assert (tmp_path / f"report-{width}.png").stat().st_size > 10_000
        # Frames that are wider than the window scroll; the page itself does not.
        assert page.execute_script(INSIDE)
    page.set_window_size(1400, 1000)


LONG = "a_task_with_a_name_that_somebody_generated_from_a_path_" * 4


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("dash", ["_", ""])
def test_long_names_do_not_widen_the_page(
    browser: Any, tmp_path: Path, width: int, dash: str
) -> None:
    """Datasets, tasks, models and studies have long names, also without line-break points."""
    name = LONG.replace("_", dash)
    long = Asked(
        tasks={f"Data{name}": (f"first{name}", f"second{name}", f"third{name}")},
        models=(f"bert{name}", f"gpt{name}"),
        several=[(f"Data{name}", (f"first{name}", f"second{name}"), f"third{name}")],
        study=f"study{name}",
        lost=lambda run: ("failed", f"failed: {name}") if run[5] and run[3] else None,
        problems=[(f"stages/{name}/metrics.json", f"{name}: truncated")],
    )
    out = write_report(make_results(long), tmp_path, tmp_path / "report.html")
    with shown_at(browser, width):
        open_page(browser, out)
        assert browser.execute_script("return window.innerWidth") == width
        assert browser.execute_script(INSIDE)
        script = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
        browser.execute_script(script)
        for state in ("baseline", "transfer"):
            one = browser.find_element(By.CSS_SELECTOR, f"#heatmap [data-state={state}]")
            browser.execute_script("arguments[0].click()", one)
            assert browser.execute_script(INSIDE), f"with the records of a {state}"
    with shown_at(browser, PAPER, "print"):
        assert browser.execute_script(CUT, PAPER) == []


def test_every_heatmap_shows_its_numbers(page: Any, results: Frames) -> None:
    seen = 0
    for dataset, tasks in ASKED.tasks.items():
        choose(page, "choose-dataset", dataset)
        for model in MODELS:
            choose(page, "choose-model", model)
            for algorithm in ALGORITHMS:
                choose(page, "choose-algorithm", get_algorithm_label(algorithm))
                known = the_cells(results, dataset, model, algorithm)
                shown = texts(page)
                for key, row in known.items():
                    assert shown.pop(key).removesuffix("*") == format_signed(row.delta)
                    seen += 1
                for task in tasks:
                    runs: list[RunName] = [
                        (dataset, model, "baseline", (), task, s) for s in (0, 1)
                    ]
                    score = sum(map(score_of, runs)) / 2
                    assert shown.pop((task, task)) == f"{score:.1f}"
                assert set(shown.values()) <= {""}
    assert seen == len(results["cells"])


def test_pointing_and_focusing_show_a_cells_numbers(page: Any, results: Frames) -> None:
    known = the_cells(results, "DailyDialog", "bert", "pretrain_finetune")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell(page, A, B))
    ActionChains(page).move_to_element(cell(page, A, B)).perform()
    _check_detail(detail(page), known[A, B])
    page.execute_script("arguments[0].focus()", cell(page, C, A))
    _check_detail(detail(page), known[C, A])
    ActionChains(page).move_to_element(cell(page, A, A)).perform()
    assert detail(page)["title"] == f"baseline of {A}, bert"
    panel = page.find_element(By.ID, "detail")
    assert panel.get_attribute("aria-live") == "polite"


def _check_detail(shown: dict[str, str], row: Any) -> None:
    assert shown["title"] == f"{row.source} → {row.target}, bert, Pre-train → fine-tune"
    assert shown["delta"] == f"{number(row.delta, sign=True)} points"
    low, high = (min(max(end, -100), 100) for end in (row.low, row.high))
    assert shown["95 % interval"] == f"{number(low, sign=True)} to {number(high, sign=True)}"
    assert shown["improvement"] == f"{format_signed(row.improvement)} %"
    assert shown["score"] == number(row.score)
    assert shown["baseline score"] == number(row.baseline_score)
    assert shown["p"] == ("< 0.001" if row.p < 0.0005 else f"{row.p:.3f}")
    assert shown["q (p adjusted)"] == ("< 0.001" if row.q < 0.0005 else f"{row.q:.3f}")
    assert shown["significant"] == ("yes (q ≤ 0.05)" if row.significant else "no")
    assert shown["seeds"].removesuffix(", with different signs") == "2 (0, 1)"


def test_a_click_shows_the_records_behind_a_cell(page: Any, report: Path) -> None:
    choose(page, "choose-model", NASTY)
    cell(page, A, B).click()
    records = page.find_element(By.ID, "records")
    rows = records.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == 2
    for seed, row in enumerate(rows):
        run: RunName = ("DailyDialog", NASTY, "pretrain_finetune", (A,), B, seed)
        base: RunName = ("DailyDialog", NASTY, "baseline", (), B, seed)
        parts = [part.text for part in row.find_elements(By.CSS_SELECTOR, "th, td")]
        assert parts == [
            str(seed),
            number(score_of(run)),
            number(score_of(base)),
            number(score_of(run) - score_of(base), sign=True),
            digest_of_run(run),
            path_of(run),
            path_of(base),
        ]
        link = row.find_element(By.TAG_NAME, "a").get_attribute("href")
        # Browsers do not escape an apostrophe.
        assert link == (report.parent / path_of(run)).as_uri().replace("%27", "'")
    heads = [one.text for one in records.find_elements(By.CSS_SELECTOR, "thead th")]
    assert heads[-2:] == [
        "record (file next to this page)",
        "baseline’s record (file next to this page)",
    ]
    command = page.find_element(By.ID, "explain").text
    assert command == (
        "tasktransfer explain --config study.yaml DailyDialog "
        f"""'{NASTY.replace("'", "'" + '"' + "'" + '"' + "'")}' pretrain_finetune {A} {B}"""
    )
    assert cell(page, A, B).get_attribute("aria-pressed") == "true"
    cell(page, "+".join((A, B)), C).click()
    assert page.find_element(By.ID, "explain").text.endswith(f" {A}+{B} {C}")
    cell(page, B, B).click()
    assert page.find_element(By.ID, "explain").text.endswith(f" baseline {B}")
    choose(page, "choose-algorithm", "Multitask")
    assert not page.find_elements(By.ID, "explain")


def test_records_have_their_curves_beside_the_baseline_s(page: Any) -> None:
    cell(page, A, C).click()
    records = page.find_element(By.ID, "records")
    heads = [one.text for one in records.find_elements(By.CSS_SELECTOR, "thead th")]
    assert heads[4:6] == ["loss by round", "dev score by round"]
    curves = records.find_elements(By.CSS_SELECTOR, "svg.curve")
    assert [one.get_attribute("aria-label") for one in curves] == [
        "loss by round: 2.00, 0.50, –; baseline: 2.00, 0.50, –",
        "dev score by round: 10.00, 30.00, 20.00; baseline: 10.00, 30.00, 20.00",
    ] * 2
    lines = [
        [*map(str.strip, line.get_attribute("points").split(" "))]
        for line in curves[1].find_elements(By.TAG_NAME, "polyline")
    ]
    assert lines[0] == lines[1]
    heights = [float(point.partition(",")[2]) for point in lines[0]]
    assert heights[1] < heights[2] < heights[0], "the best round is at the top"
    cell(page, A, B).click()  # a cell without curves
    assert not records.find_elements(By.CSS_SELECTOR, "svg")


def test_the_learning_curves_of_every_training_are_filtered_and_drawn_in_parts(page: Any) -> None:
    page.execute_script("document.getElementById('trainings').open = true")
    listed = page.find_element(By.ID, "training-curves")
    count = page.find_element(By.ID, "training-count")
    WebDriverWait(page, 5).until(lambda _: count.text == "12 of 15 shown")
    first = listed.find_element(By.TAG_NAME, "li")
    assert [one.get_attribute("aria-label") for one in first.find_elements(By.TAG_NAME, "svg")] == [
        "training loss by round: none, 0.7, 0.4",
        "dev score by round: 10, 30, 20",
    ]
    assert "training loss 0.7" in first.text
    assert "dev score 30" in first.text
    page.find_element(By.ID, "more-trainings").click()
    assert len(listed.find_elements(By.TAG_NAME, "li")) == 15
    page.find_element(By.ID, "training-words").send_keys("bert seed 1")
    assert [one.text for one in listed.find_elements(By.TAG_NAME, "h4")] == [
        f"baseline · DailyDialog · bert · T{number}, seed 1" for number in range(1, 15, 2)
    ]


def test_pointing_at_a_task_shows_its_card(page: Any) -> None:
    ActionChains(page).move_to_element(header(page, "row", C)).perform()
    text = page.find_element(By.ID, "detail").text
    card = get_task("DailyDialog", C)
    assert card.description in text
    assert card.citation in text
    assert ", ".join(card.labels[:3]) in text
    ActionChains(page).move_to_element(cell(page, A, B)).perform()
    assert card.description not in page.find_element(By.ID, "detail").text


def test_what_is_missing_is_hatched_and_says_why(page: Any) -> None:
    choose(page, "choose-algorithm", "Multitask")
    gone, partial, absent = cell(page, A, B), cell(page, C, B), cell(page, f"{A}+{B}", D)
    assert [one.get_attribute("data-state") for one in (gone, partial, absent)] == [
        *("missing", "transfer", "absent")
    ]
    hatches = [one.value_of_css_property("background-image") for one in (gone, absent)]
    assert all("repeating-linear-gradient" in hatch for hatch in hatches)
    assert hatches[0] != hatches[1]
    assert partial.text.endswith("*")
    gone.click()
    panel = page.find_element(By.ID, "detail").text
    assert f"seed 0: failed: loss is not a number {NASTY}" in panel
    assert "No records yet." in page.find_element(By.ID, "records").text
    partial.click()
    assert "seed 1: running" in page.find_element(By.ID, "detail").text
    assert len(page.find_elements(By.CSS_SELECTOR, "#records tbody tr")) == 1
    absent.click()
    assert "Not in the study" in page.find_element(By.ID, "detail").text


def test_significant_cells_are_marked(page: Any, results: Frames) -> None:
    known = the_cells(results, "DailyDialog", "bert", "pretrain_finetune")
    marked = {key for key, row in known.items() if row.significant}
    assert marked
    assert len(marked) < len(known)
    for key in known:
        one = cell(page, *key)
        assert ("significant" in one.get_attribute("aria-label")) == (key in marked)
        assert ("inset" in one.value_of_css_property("box-shadow")) == (key in marked)


def test_cells_of_one_seed_are_of_one_training_and_numbers_beyond_are_marked(
    browser: Any, tmp_path: Path
) -> None:
    results = make_results(Asked(tasks={"DailyDialog": (A, B, C, D)}, models=("bert",), seeds=(0,)))
    out = write_report(results, tmp_path, tmp_path / "report.html")
    open_page(browser, out)
    known = the_cells(results, "DailyDialog", "bert", "pretrain_finetune")
    limit = browser.execute_script("return model.data.datasets[0].limits.points")
    for key, row in known.items():
        one = cell(browser, *key)
        label, classes = one.get_attribute("aria-label"), one.get_attribute("class").split()
        assert "significant" not in label
        assert "significant" not in classes
        assert "only one training run" in label
        assert "one-training" in classes
        assert "faded" in classes
        assert ("beyond" in classes) == (abs(row.delta) > limit)
    browser.execute_script("arguments[0].focus()", cell(browser, *next(iter(known))))
    shown = detail(browser)
    assert shown["significant"] == (
        "not tested: with one run, the variation between seeds is unknown"
    )
    assert shown["seeds"] == "1 (number 0)"


def test_sources_and_targets_are_sorted(page: Any, results: Frames) -> None:
    tasks = list(ASKED.tasks["DailyDialog"])
    assert orders(page) == (tasks, tasks)
    choose(page, "order-rows", "mean as source")
    assert orders(page) == (list(square(results, "source").index), tasks)
    choose(page, "order-rows", "mean as target")
    choose(page, "order-columns", "mean as target")
    by_target = list(square(results, "target").index)
    assert orders(page) == (by_target, by_target)
    choose(page, "order-columns", "name")
    assert orders(page) == (by_target, sorted(tasks))


def test_a_click_on_a_name_sorts_by_it(page: Any, results: Frames) -> None:
    known = the_cells(results, "DailyDialog", "bert", "pretrain_finetune")
    tasks = list(ASKED.tasks["DailyDialog"])
    column = sorted((t for t in tasks if t != B), key=lambda t: -known[t, B].delta)
    header(page, "column", B).click()
    assert orders(page) == ([*column, B], tasks)
    parent = header(page, "column", B).find_element(By.XPATH, "..")
    assert parent.get_attribute("aria-sort") == "descending"
    assert focused(page) == (None, B)
    header(page, "column", B).click()
    assert orders(page) == ([*reversed(column), B], tasks)
    row = sorted((t for t in tasks if t != A), key=lambda t: -known[A, t].delta)
    header(page, "row", A).click()
    assert orders(page)[1] == [*row, A]
    header(page, "column", B).click()
    assert orders(page)[0] == tasks


def test_models_that_are_asked_stand_below_the_matrix(page: Any) -> None:
    rows = page.find_elements(By.CSS_SELECTOR, "#heatmap .asked tr")
    assert [row.text.split() for row in rows] == [
        ["smol,", "0", "shots", "11.0", "–", "–", "–"],
        ["smol,", "4", "shots", "22.0", "33.0", "–", "–"],
    ]
    assert page.find_element(By.ID, "key-asked").is_displayed()
    choose(page, "choose-dataset", "Friends")
    assert not page.find_elements(By.CSS_SELECTOR, "#heatmap .asked")
    assert not page.find_element(By.ID, "key-asked").is_displayed()


def test_a_keyboard_is_enough(page: Any) -> None:
    grid = page.find_element(By.ID, "heatmap")
    assert grid.get_attribute("role") == "grid"
    assert len(grid.find_elements(By.CSS_SELECTOR, "button[tabindex='0']")) == 1
    page.execute_script("document.getElementById('order-columns').focus()")
    press(page, Keys.TAB)
    assert focused(page) == (A, A)
    press(page, Keys.ARROW_RIGHT)
    assert focused(page) == (A, B)
    press(page, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert focused(page) == (C, C)
    assert detail(page)["title"].startswith(f"baseline of {C}")
    press(page, Keys.END)
    assert focused(page) == (C, D)
    press(page, Keys.ARROW_RIGHT)
    assert focused(page) == (C, D)
    outline = page.switch_to.active_element.value_of_css_property("outline-style")
    assert outline == "solid"
    press(page, Keys.ENTER)
    assert f"Records of {C} → {D}" in page.find_element(By.ID, "records").text
    assert focused(page) == (C, D)
    press(page, Keys.HOME)
    assert focused(page) == (C, None)
    press(page, Keys.SPACE)
    assert focused(page) == (C, None)
    assert orders(page)[1] != list(ASKED.tasks["DailyDialog"])
    ActionChains(page).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL).perform()
    assert focused(page)[0] is None
    press(page, Keys.TAB)
    assert focused(page) == (None, None)
    assert len(grid.find_elements(By.CSS_SELECTOR, "button[tabindex='0']")) == 1


def test_every_control_has_a_name_and_the_rest_prints(page: Any) -> None:
    for select in page.find_elements(By.TAG_NAME, "select"):
        assert select.accessible_name
    names = page.execute_script(
        "return [...document.querySelectorAll('#heatmap button')].map((one) => one.ariaLabel)"
    )
    assert len(set(names)) == len(names)
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 10_000


def test_nothing_is_cut_on_paper(page: Any) -> None:
    """Collapsed parts are printed expanded, except long ones, and paper is white in dark mode."""
    with shown_at(page, PAPER, "print"):
        shown = (
            "return [...document.querySelectorAll(arguments[0])].map((one) => "
            "one.checkVisibility() && one.getBoundingClientRect().height > 0)"
        )
        opened = "details:not(.target, .long) > :nth-child(2)"
        assert all(page.execute_script(shown, opened))
        folded = ":is(.target, .long):not([open]) > :nth-child(2)"
        assert not any(page.execute_script(shown, folded))
        heights = page.execute_script(
            "return [...document.querySelectorAll('figure img')].map((one) => one.height)"
        )
        assert max(heights, default=0) <= 135 / 25.4 * 96 + 1
        assert page.execute_script("return document.querySelectorAll('table').length") > 5
        assert page.execute_script(CUT, PAPER) == []
        script = "return getComputedStyle(arguments[0]).backgroundColor"
        grounds = [
            page.find_element(By.TAG_NAME, "body"),
            *page.find_elements(By.CLASS_NAME, "synthetic"),
        ]
        colours = [page.execute_script(script, one) for one in grounds]
        assert all(min(map(int, re.findall(r"\d+", colour)[:3])) > 200 for colour in colours), (
            colours
        )
        hidden = page.find_elements(By.CSS_SELECTOR, "nav, .controls, #detail")
        assert not [one.tag_name for one in hidden if one.is_displayed()]
