"""Take the numbered screenshots of the demo's report for docs/tutorials/first-study.md.

    make demo && .venv/bin/python docs/screenshots.py

Needs Chromium and its driver (tests/system-packages.sh installs them) and selenium, which `make`
installs for the tests of the report.
"""

from __future__ import annotations

import base64
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from selenium import webdriver

REPORT = Path("results/demo/report.html")
IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 1000

ANSWER = ("p.synthetic", "nav", ".answer > p", ".answer figure", ".sentences")
HEATMAP = (".controls", "#heatmap tbody th", "#heatmap thead th:last-of-type", ".legend", "#detail")
"""Elements of the page, which get the numbers from 1."""

MARK = """
const [query, number] = arguments;
const target = document.querySelector(query), right = query.includes('thead');
const box = target.getBoundingClientRect(), mark = document.createElement('div');
mark.textContent = number;
Object.assign(mark.style, {position: 'absolute', zIndex: 9, width: '26px', height: '26px',
    left: (right ? box.right + 6 : Math.max(box.left - 30, 2)) + 'px',
    top: (box.top + scrollY + (right ? box.height / 2 - 13 : 0)) + 'px',
    borderRadius: '50%', background: '#b3261e', color: 'white', textAlign: 'center',
    font: 'bold 16px/26px sans-serif'});
document.body.append(mark);
"""
"""Put a numbered mark to the left of an element, or to the right of the table's head."""

PREPARE = """
document.body.style.paddingLeft = '34px';
const choose = (id, word) => {
    const list = document.getElementById(id);
    list.value = [...list.options].find((option) => option.text === word).value;
    list.dispatchEvent(new Event('change'));
};
choose('choose-model', 'tiny-bert');
choose('choose-algorithm', 'Pre-train → fine-tune');
[...document.querySelectorAll('#heatmap td button')]
    .find((cell) => cell.dataset.source && cell.textContent.includes('+')).focus();
document.querySelector('.sentences').open = true;
"""
"""Show the first cell with a gain in the heatmap of the encoder."""

EDGES = """
const ends = [...arguments].map((query) => document.querySelector(query));
const [first, last] = ends.map((element) => element.getBoundingClientRect());
return [first.top + scrollY, last.bottom + scrollY];
"""


def main() -> int:
    """Write the two images."""
    browser = start_browser()
    try:
        browser.get(REPORT.resolve().as_uri())
        browser.execute_script(PREPARE)
        add_marks(browser, ANSWER)
        save(browser, "demo-report-answer.png", "header", ".sentences")
        add_marks(browser, HEATMAP)
        save(browser, "demo-report-heatmap.png", "#interactive-title", ".view")
    finally:
        browser.quit()
    return 0


def start_browser() -> Any:
    """Start headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument(f"--window-size={WIDTH},1000")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium does not support it for root
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def add_marks(browser: Any, queries: tuple[str, ...]) -> None:
    """Number elements of the page."""
    for number, query in enumerate(queries, 1):
        browser.execute_script(MARK, query, number)


def save(browser: Any, name: str, first: str, last: str) -> None:
    """Save the part of the page from one element to another."""
    top, bottom = browser.execute_script(EDGES, first, last)
    clip = {"x": 0, "y": max(top - 8, 0), "width": WIDTH, "height": bottom - top + 20, "scale": 1}
    command = {"clip": clip, "captureBeyondViewport": True}
    data = browser.execute_cdp_cmd("Page.captureScreenshot", command)["data"]
    (IMAGES / name).write_bytes(base64.b64decode(data))
    print(IMAGES / name)


if __name__ == "__main__":
    sys.exit(main())
