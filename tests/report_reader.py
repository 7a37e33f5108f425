"""Reading and operating the report in a browser: its grid, its menus and its detail panel."""

from __future__ import annotations

import json
import os
import shutil
import sys
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
"""Width of a landscape A4 page between the margins of page.css, in CSS pixels."""
CUT = """const beyond = (one) => one.getBoundingClientRect().right > arguments[0] + 1;
    return [...document.querySelectorAll('table, figure img, dl, p')].filter(beyond)
        .map((one) => one.id || one.textContent.slice(0, 60))"""
"""Script that returns the elements of a page beyond a width."""
AXE = Path(sys.prefix, "axe-core", "axe.min.js")
DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
INSIDE = "return document.documentElement.scrollWidth <= window.innerWidth"
"""Script that returns whether a page fits the width of its window."""


@contextmanager
def running_browser() -> Iterator[Any]:
    """Run Chromium; the test is skipped if it is not installed."""
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
    """Emulate a window of a width; with a medium (screen or ``print``), in dark mode."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd(METRICS, metrics)
    browser.execute_cdp_cmd(MEDIA, {"media": media, "features": DARK if media else []})
    try:
        yield
    finally:
        browser.execute_cdp_cmd(MEDIA, {"media": "", "features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def start_browser(chromium: str, chromedriver: str) -> Any:
    """Start headless Chromium, logging the pages' console messages and requests."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.add_argument("--headless=new")
    options.add_argument("--disable-gpu")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--window-size=1400,1000")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium does not support it for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(chromedriver)
    return webdriver.Chrome(options=options, service=service)


def find_violations(browser: Any) -> list[str]:
    """Check an open page with axe-core; the test is skipped if it is not installed.

    Return the rule and the elements of each violation. Collapsed parts are opened first.
    """
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: `make test-slow` installs it if npm is installed")
    browser.execute_script(
        "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
    )
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    browser.set_script_timeout(120)
    found = browser.execute_async_script(
        "axe.run().then((result) => arguments[0](result.violations))"
    )
    return [
        f"{rule['id']}: {', '.join(node['html'][:80] for node in rule['nodes'][:5])}"
        for rule in found
    ]


def open_page(browser: Any, path: Path) -> None:
    """Open a file, and wait until it is loaded completely, including scripts."""
    browser.get(path.as_uri())
    script = "return document.readyState === 'complete'"
    WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(script))


def requested(browser: Any) -> set[str]:
    """Return all addresses that the page requested, including its own; data: URLs are complete."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return {url for url in asked if not url.startswith("data:")}


def cell(page: Any, source: str, target: str) -> Any:
    """Return the grid's button of a cell, without a CSS selector, since names may be any text."""
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
    """Return (source, target) → text of every cell of the grid, in the order of the page."""
    script = """return [...document.querySelectorAll('#heatmap td button')].map(
        (one) => [one.dataset.source, one.dataset.target, one.textContent])"""
    return {(source, target): text for source, target, text in page.execute_script(script)}


def orders(page: Any) -> tuple[list[str], list[str]]:
    """Return the order of sources from the top, and of targets from the left."""
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
