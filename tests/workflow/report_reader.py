"""Reading and operating the report in a browser: its grid, its choices and its detail panel."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait


def start_browser(chromium: str, chromedriver: str) -> Any:
    """Chromium without a window, which logs what pages complain of and fetch."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.add_argument("--headless=new")
    options.add_argument("--disable-gpu")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--window-size=1400,1000")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(chromedriver)
    return webdriver.Chrome(options=options, service=service)


def open_page(browser: Any, path: Path) -> None:
    """Open a file and wait until it is read whole, scripts included."""
    browser.get(path.as_uri())
    script = "return document.readyState === 'complete'"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(script))


def requested(browser: Any) -> set[str]:
    """Every address that the page asked for, its own included; data: addresses hold their data."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return {url for url in asked if not url.startswith("data:")}


def cell(page: Any, source: str, target: str) -> Any:
    """The grid's button of a cell; names may hold anything, so not by a selector."""
    script = """return [...document.querySelectorAll('#heatmap td button')].find(
        (one) => one.dataset.source === arguments[0] && one.dataset.target === arguments[1])"""
    button = page.execute_script(script, source, target)
    assert button is not None, f"no cell {source} -> {target}"
    return button


def header(page: Any, kind: str, name: str) -> Any:
    return next(
        one
        for one in page.find_elements(By.CSS_SELECTOR, f"#heatmap th [data-header={kind}]")
        if one.get_attribute("data-target" if kind == "column" else "data-source") == name
    )


def choose(page: Any, what: str, shown: str) -> None:
    Select(page.find_element(By.ID, what)).select_by_visible_text(shown)


def texts(page: Any) -> dict[tuple[str, str], str]:
    """(source, target) → text of every cell of the grid, in the order of the page."""
    script = """return [...document.querySelectorAll('#heatmap td button')].map(
        (one) => [one.dataset.source, one.dataset.target, one.textContent])"""
    return {(source, target): text for source, target, text in page.execute_script(script)}


def orders(page: Any) -> tuple[list[str], list[str]]:
    """Sources and targets of one source, as the page has them from top and from left."""
    keys = [key for key in texts(page) if "+" not in key[0]]
    return list(dict.fromkeys(s for s, _ in keys)), list(dict.fromkeys(t for _, t in keys))


def detail(page: Any) -> dict[str, str]:
    panel = page.find_element(By.ID, "detail")
    names = [one.text for one in panel.find_elements(By.TAG_NAME, "dt")]
    values = [one.text for one in panel.find_elements(By.TAG_NAME, "dd")]
    return dict(zip(names, values, strict=True)) | {
        "title": panel.find_element(By.TAG_NAME, "h4").text
    }


def focused(page: Any) -> tuple[str | None, str | None]:
    one = page.switch_to.active_element
    return one.get_attribute("data-source"), one.get_attribute("data-target")


def press(page: Any, *keys: str) -> None:
    for key in keys:
        ActionChains(page).send_keys(key).perform()
