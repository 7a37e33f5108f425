"""The report's interactive heatmap in a browser: numbers, records, order and keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from report_results import Asked, RunName, digest_of_run, make_results, path_of, score_of
from report_study import ALGORITHMS, ASKED, MODELS, NASTY, A, B, C, D
from shown_results import write_report
from tasktransfer.datasets import get_task
from tasktransfer.designs.transfer.runs import get_algorithm_label
from tasktransfer.present.kit.style import format_signed
from tasktransfer.results.frames import Frames

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from report_reader import (
    cell,
    choose,
    detail,
    focused,
    header,
    open_page,
    orders,
    press,
    texts,
)

pytestmark = pytest.mark.slow


def select_cells(
    results: Frames, dataset: str, model: str, algorithm: str
) -> dict[tuple[str, str], Any]:
    cells = results["cells"]
    shown = cells[
        (cells["dataset"] == dataset)
        & (cells["model"] == model)
        & (cells["algorithm"] == algorithm)
    ]
    return {(row.source, row.target): row for row in shown.itertuples()}


def format_number(value: float, *, sign: bool = False) -> str:
    return format(value, "+.2f" if sign else ".2f").replace("-", "−")


def order_by_mean_delta(results: Frames, axis: str) -> pd.Series[float]:
    """Return the mean delta by task as source or target in the first heatmap."""
    cells = results["cells"]
    here = cells[
        (cells["dataset"] == "DailyDialog")
        & (cells["model"] == "bert")
        & (cells["algorithm"] == "pretrain_finetune")
        & (cells["n_sources"] == 1)
    ]
    return here.groupby(axis)["delta"].mean().sort_values(ascending=False)


def test_every_heatmap_shows_its_numbers(page: Any, report_results: Frames) -> None:
    seen = 0
    for dataset, tasks in ASKED.tasks.items():
        choose(page, "choose-dataset", dataset)
        for model in MODELS:
            choose(page, "choose-model", model)
            for algorithm in ALGORITHMS:
                choose(page, "choose-algorithm", get_algorithm_label(algorithm))
                known = select_cells(report_results, dataset, model, algorithm)
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
    assert seen == len(report_results["cells"])


def test_hovering_or_focusing_a_cell_shows_its_numbers(page: Any, report_results: Frames) -> None:
    known = select_cells(report_results, "DailyDialog", "bert", "pretrain_finetune")
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
    assert shown["delta"] == f"{format_number(row.delta, sign=True)} points"
    low, high = (min(max(end, -100), 100) for end in (row.low, row.high))
    assert (
        shown["95 % interval"]
        == f"{format_number(low, sign=True)} to {format_number(high, sign=True)}"
    )
    assert shown["improvement"] == f"{format_signed(row.improvement)} %"
    assert shown["score"] == format_number(row.score)
    assert shown["baseline score"] == format_number(row.baseline_score)
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
            format_number(score_of(run)),
            format_number(score_of(base)),
            format_number(score_of(run) - score_of(base), sign=True),
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


def test_records_show_their_learning_curves_with_the_baselines(page: Any) -> None:
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


def test_hovering_a_task_name_shows_its_card(page: Any) -> None:
    ActionChains(page).move_to_element(header(page, "row", C)).perform()
    text = page.find_element(By.ID, "detail").text
    card = get_task("DailyDialog", C)
    assert card.description in text
    assert card.citation in text
    assert ", ".join(card.labels[:3]) in text
    ActionChains(page).move_to_element(cell(page, A, B)).perform()
    assert card.description not in page.find_element(By.ID, "detail").text


def test_missing_cells_are_hatched_and_give_the_reason(page: Any) -> None:
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


def test_significant_cells_are_marked(page: Any, report_results: Frames) -> None:
    known = select_cells(report_results, "DailyDialog", "bert", "pretrain_finetune")
    marked = {key for key, row in known.items() if row.significant}
    assert marked
    assert len(marked) < len(known)
    for key in known:
        one = cell(page, *key)
        assert ("significant" in one.get_attribute("aria-label")) == (key in marked)
        assert ("inset" in one.value_of_css_property("box-shadow")) == (key in marked)


def test_cells_with_one_training_run_or_beyond_the_colour_scale_are_marked(
    browser: Any, tmp_path: Path
) -> None:
    results = make_results(Asked(tasks={"DailyDialog": (A, B, C, D)}, models=("bert",), seeds=(0,)))
    out = write_report(results, tmp_path, tmp_path / "report.html")
    open_page(browser, out)
    known = select_cells(results, "DailyDialog", "bert", "pretrain_finetune")
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


def test_sources_and_targets_are_sorted(page: Any, report_results: Frames) -> None:
    tasks = list(ASKED.tasks["DailyDialog"])
    assert orders(page) == (tasks, tasks)
    choose(page, "order-rows", "mean as source")
    assert orders(page) == (list(order_by_mean_delta(report_results, "source").index), tasks)
    choose(page, "order-rows", "mean as target")
    choose(page, "order-columns", "mean as target")
    by_target = list(order_by_mean_delta(report_results, "target").index)
    assert orders(page) == (by_target, by_target)
    choose(page, "order-columns", "name")
    assert orders(page) == (by_target, sorted(tasks))


def test_clicking_a_task_name_sorts_by_it(page: Any, report_results: Frames) -> None:
    known = select_cells(report_results, "DailyDialog", "bert", "pretrain_finetune")
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


def test_prompted_models_are_below_the_matrix(page: Any) -> None:
    rows = page.find_elements(By.CSS_SELECTOR, "#heatmap .asked tr")
    assert [row.text.split() for row in rows] == [
        ["smol,", "0", "shots", "11.0", "–", "–", "–"],
        ["smol,", "4", "shots", "22.0", "33.0", "–", "–"],
    ]
    assert page.find_element(By.ID, "key-asked").is_displayed()
    choose(page, "choose-dataset", "Friends")
    assert not page.find_elements(By.CSS_SELECTOR, "#heatmap .asked")
    assert not page.find_element(By.ID, "key-asked").is_displayed()


def test_the_heatmap_can_be_used_with_the_keyboard(page: Any) -> None:
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
