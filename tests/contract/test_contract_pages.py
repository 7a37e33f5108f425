"""Each design's report in a real browser: at two widths, on paper, and without other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from contract_studies import STUDIES

from tasktransfer.cli import main
from tasktransfer.results.study import Study

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By

from report_reader import CUT, INSIDE, PAPER, open_page, requested, running_browser, shown_at

SECTIONS = [
    "Answer",
    "Matrix",
    "Targets: best source, state of the baseline",
    "Figures",
    "Tables",
    "Uncertainty",
    "Missing results",
    "Cost",
    "Provenance",
]


def sections_of(study: Study) -> list[str]:
    """Return the sections in order; the toy design declares nothing on uncertainty."""
    design = study.config.design
    left_out = {"Uncertainty"} if design == "toy" else set[str]()
    if design != "transfer":
        left_out |= {"Matrix", "Targets: best source, state of the baseline"}
    return [name for name in SECTIONS if name not in left_out]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as driver:
        yield driver


@cases([(design,) for design in STUDIES])
def test_its_report_reads_on_a_desk_a_phone_and_paper(study: Study, browser: Any) -> None:
    assert main(["report", "--config", "study.yaml"]) == 0
    page = Path("results", "report.html").resolve()
    browser.get("about:blank")  # or the driver reloads a page and may answer halfway through
    browser.get_log("performance")
    for width in (1400, 390):
        with shown_at(browser, width):
            open_page(browser, page)
            assert browser.execute_script("return window.innerWidth") == width
            assert browser.execute_script(INSIDE), width
            headings = [one.text for one in browser.find_elements(By.TAG_NAME, "h2")]
            assert headings == sections_of(study)
            images = browser.find_elements(By.CSS_SELECTOR, "figure img")
            assert all(one.get_attribute("alt") for one in images)
    with shown_at(browser, PAPER, "print"):
        assert browser.execute_script("return document.querySelectorAll('table').length") > 1
        assert browser.execute_script(CUT, PAPER) == []
    assert browser.get_log("browser") == []
    assert requested(browser) == {page.as_uri()}
