"""A rating sheet in a real browser: answered by keyboard, kept after a reload, downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.designs.empathetic.replies import AnsweredContext
from tasktransfer.designs.empathetic.sheets.read import read_answers
from tasktransfer.designs.empathetic.sheets.write import plan_sheets, write_sheets

pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from report_reader import INSIDE, open_page, requested, running_browser, shown_at

CONTEXTS = [
    AnsweredContext(str(n), ("I passed the exam.",), {"Gold": "Well done!", "ret-base": reply})
    for n, reply in enumerate(("</script><b>No.", "Oh?" * 40))
]
PROGRESS = "return document.getElementById('told').textContent"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as driver:
        yield driver


def test_a_sheet_is_answered_by_keyboard_and_downloaded(browser: Any, tmp_path: Path) -> None:
    sheets = plan_sheets(CONTEXTS, "ratings", instances=2, raters=1, overlap=1, seed=0)
    page, _ = write_sheets(sheets, tmp_path)
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    open_page(browser, page)
    items = sheets.sheets["rater-1"]
    browser.find_element(By.ID, "next").click()
    browser.find_element(By.ID, "previous").click()
    for number, item in enumerate(items):
        assert browser.switch_to.active_element.text == f"Item {number + 1} of {len(items)}"
        keys = item.meaning.get("check", {"empathy": "2", "relevance": "5", "fluency": "3"})
        for key in keys.values():
            browser.switch_to.active_element.send_keys(key)
        assert browser.execute_script(PROGRESS) == f"{number + 1} of {len(items)} items answered"
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        if number == 1:
            browser.refresh()
            assert browser.execute_script(PROGRESS) == f"2 of {len(items)} items answered"
            assert browser.find_element(By.CSS_SELECTOR, ".item:not([hidden]) h2").text == (
                f"Item 3 of {len(items)}"
            )
            browser.find_element(By.ID, "previous").click()
            browser.find_element(By.ID, "open").click()
    browser.find_element(By.ID, "download").click()
    file = tmp_path / "rater-1.jsonl"
    WebDriverWait(browser, 20).until(lambda _: file.exists() and file.stat().st_size)
    (rater,) = read_answers([file], sheets.key)
    assert (rater.answered, rater.failed, len(rater.rows)) == (len(items), 0, 4)
    assert {row[3:] for row in rater.rows} == {("2", "5", "3")}
    assert {url for url in requested(browser) if not url.startswith("blob:")} == {page.as_uri()}
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("media", ["", "screen"])
def test_a_sheet_fits_a_phone(browser: Any, tmp_path: Path, media: str) -> None:
    page, _ = write_sheets(
        plan_sheets(CONTEXTS, "pairs", instances=2, raters=1, overlap=1, seed=0), tmp_path
    )
    with shown_at(browser, 390, media):
        open_page(browser, page)
        for _ in range(6):
            assert browser.execute_script(INSIDE)
            browser.find_element(By.ID, "next").click()
