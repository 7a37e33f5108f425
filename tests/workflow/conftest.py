"""Fixtures: a finished small study, and a report in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from dag_study import Sandbox, sandbox

from report_study import ARGUMENTS, make_report_results
from shown_results import write_report
from tasktransfer.results.frames import Frames


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the small study once to the end."""
    made = sandbox(tmp_path_factory.mktemp("dag") / "finished")
    made.write()
    assert made.run() == {"baseline": 2, "multitask": 1, "finetune": 4, "collect": 1}
    return made.folder


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Iterator[Sandbox]:
    """Copy the finished study, including modification times."""
    shutil.copytree(finished, tmp_path / "study", symlinks=True)
    made = Sandbox(tmp_path / "study")
    made.write()
    yield made


@pytest.fixture(scope="module")
def report_results() -> Frames:
    """Make the constructed results whose report the tests open."""
    return make_report_results()


@pytest.fixture(scope="module")
def report(report_results: Frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of the constructed results."""
    folder = tmp_path_factory.mktemp("report")
    return write_report(report_results, folder, folder / "report.html", arguments=ARGUMENTS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Run a browser."""
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    reader = import_module("report_reader")
    with reader.running_browser() as driver:
        yield driver


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """Load the report, and check after the test that it logged no errors and fetched nothing."""
    reader = import_module("report_reader")
    browser.get("about:blank")  # or the driver reloads the page and may answer halfway through
    browser.get_log("performance")
    reader.open_page(browser, report)
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.injected") is None
    assert reader.requested(browser) == {report.as_uri()}
