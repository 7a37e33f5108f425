"""Reading and operating the report in a browser: its grid, its choices and its detail panel."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

METRICS, MEDIA = "Emulation.setDeviceMetricsOverride", "Emulation.setEmulatedMedia"
PAPER = round((297 - 2 * 12) / 25.4 * 96)
"""Width of an A4 page on its side between the margins of page.css, in pixels of CSS."""
CUT = """const beyond = (one) => one.getBoundingClientRect().right > arguments[0] + 1;
    return [...document.querySelectorAll('table, figure img, dl, p')].filter(beyond)
        .map((one) => one.id || one.textContent.slice(0, 60))"""
"""What of a page lies beyond a width."""
DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
INSIDE = "return document.documentElement.scrollWidth <= window.innerWidth"
"""Whether a page is as wide as its window."""


@contextmanager
def running_browser() -> Iterator[Any]:
    """Chromium; the test is skipped where there is none."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    absent = [name for name, path in programs.items() if path is None]
    if absent:
        pytest.skip(f"no {' and no '.join(absent)} here: tests/system-packages.sh installs them")
    driver = start_browser(*map(str, programs.values()))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def shown_at(browser: Any, width: int, media: str = "") -> Iterator[None]:
    """The window of a width, as on a screen or (``print``) on paper, where dark is asked for."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd(METRICS, metrics)
    browser.execute_cdp_cmd(MEDIA, {"media": media, "features": DARK if media else []})
    try:
        yield
    finally:
        browser.execute_cdp_cmd(MEDIA, {"media": "", "features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
