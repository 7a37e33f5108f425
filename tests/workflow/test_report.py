"""The report in a browser: width, learning curves, names of controls, and print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from report_results import Asked, make_results
from report_study import A, B, C
from shown_results import write_report

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from report_reader import (
    CUT,
    INSIDE,
    PAPER,
    find_violations,
    open_page,
    shown_at,
)

pytestmark = pytest.mark.slow


def test_the_page_opens_and_fits_the_window(page: Any, tmp_path: Path) -> None:
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


def test_learning_curves_are_loaded_in_parts_and_filtered(page: Any) -> None:
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


def test_targets_are_filtered_by_keyboard(browser: Any, tmp_path: Path) -> None:
    """By significance, by learned baselines, and by both."""
    results = make_results(Asked({"DailyDialog": (A, B, C)}, models=("bert",)))
    states = pd.DataFrame(
        [(A, "learned"), (B, "not better"), (C, "collapsed")], columns=["target", "state"]
    ).assign(dataset="DailyDialog", model="bert", reference="tfidf_logistic")
    references = states.assign(
        reference_score=50.0, score=40.0, delta=-10.0, low=-20.0, high=-1.0, q=0.1, is_best=True
    )
    cells = results["cells"].assign(significant=lambda rows: rows["target"].isin((A, B)))
    changed = results.replace({"references": references, "cells": cells})
    open_page(browser, write_report(changed, tmp_path, tmp_path / "report.html"))
    script = """return [...document.querySelectorAll('.targets .target')]
        .filter((one) => one.checkVisibility()).length"""
    assert browser.execute_script(script) == 3
    significant, learned = (
        browser.find_element(By.ID, name) for name in ("only-significant", "only-learned")
    )
    assert learned.accessible_name.startswith("only targets whose baseline has learned (1 of 3)")
    for box, count in ((significant, 2), (learned, 1), (significant, 1), (learned, 3)):
        box.send_keys(Keys.SPACE)
        assert browser.execute_script(script) == count
    assert find_violations(browser) == []


def test_every_control_has_a_name(page: Any) -> None:
    for select in page.find_elements(By.TAG_NAME, "select"):
        assert select.accessible_name
    names = page.execute_script(
        "return [...document.querySelectorAll('#heatmap button')].map((one) => one.ariaLabel)"
    )
    assert len(set(names)) == len(names)
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 10_000


def test_the_printed_page_is_complete(page: Any) -> None:
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
