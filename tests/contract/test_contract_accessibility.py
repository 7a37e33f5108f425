"""Reports, a leaderboard and a rating sheet, checked by axe-core at two widths and in dark mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from contract_studies import STUDIES

from tasktransfer.cli import main
from tasktransfer.designs.challenge.leaderboard import InvalidArchive, Leaderboard
from tasktransfer.designs.challenge.leaderboard_pages import as_html
from tasktransfer.designs.empathetic.replies import AnsweredContext
from tasktransfer.designs.empathetic.sheets.write import plan_sheets, write_sheets
from tasktransfer.results.study import Study

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from report_reader import find_violations, open_page, running_browser, shown_at

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as driver:
        yield driver


@cases([(design,) for design in STUDIES])
def test_its_report_is_accessible(study: Study, browser: Any) -> None:
    assert main(["report", "--config", "study.yaml"]) == 0
    check_page(browser, Path("results", "report.html").resolve())


def test_a_leaderboard_is_accessible(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "leaderboard.html"
    invalid = [InvalidArchive("<b>one.zip", "Friends", 2, "predictions.csv:1: '9' is out of range")]
    page.write_text(as_html(Leaderboard("default", [], invalid)), encoding="utf-8")
    check_page(browser, page)


def test_a_rating_sheet_is_accessible(browser: Any, tmp_path: Path) -> None:
    contexts = [
        AnsweredContext(str(n), ("I passed the exam.",), {"Gold": "Well done!", "ret-base": "No."})
        for n in range(2)
    ]
    sheets = plan_sheets(contexts, "ratings", instances=2, raters=1, overlap=1, seed=0)
    page, _ = write_sheets(sheets, tmp_path)
    check_page(browser, page)


def check_page(browser: Any, page: Path) -> None:
    """Check a page at two widths and in dark mode, which a medium sets."""
    for width, media in ((1400, ""), (1400, "screen"), (390, "")):
        with shown_at(browser, width, media):
            open_page(browser, page)
            assert find_violations(browser) == [], (width, media)


def test_a_page_that_is_not_accessible_is_found(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html lang=en><title>A page</title><main><h1>A</h1><img src=data:></main>")
    open_page(browser, page)
    assert [rule.partition(":")[0] for rule in find_violations(browser)] == ["image-alt"]
