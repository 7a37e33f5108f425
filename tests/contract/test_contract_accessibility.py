"""Each design's report, checked by axe-core at two widths and in dark mode."""

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
from report_reader import find_violations, open_page, running_browser, shown_at

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as driver:
        yield driver


@cases([(design,) for design in STUDIES])
def test_its_report_is_accessible(study: Study, browser: Any) -> None:
    assert main(["report", "--config", "study.yaml"]) == 0
    page = Path("results", "report.html").resolve()
    for width, media in ((1400, ""), (1400, "screen"), (390, "")):  # a medium sets dark mode
        with shown_at(browser, width, media):
            open_page(browser, page)
            assert find_violations(browser) == [], (width, media)


def test_a_page_that_is_not_accessible_is_found(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html lang=en><title>A page</title><main><h1>A</h1><img src=data:></main>")
    open_page(browser, page)
    assert [rule.partition(":")[0] for rule in find_violations(browser)] == ["image-alt"]
