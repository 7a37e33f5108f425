"""The statistics that docs/extending.md adds as examples, each by one item of ``FRAMES``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tasktransfer.designs.panel import frames as panel
from tasktransfer.designs.transfer import frames as transfer
from tasktransfer.results.common_frames import build_common_columns
from tasktransfer.results.frame_files import read_frames, write_statistic_frames
from tasktransfer.results.frames import Frame, list_column_names
from tasktransfer.results.store import Metadata, build_frame, write_frame

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
ROWS = {
    "deltas": {
        "dataset": ["D", "D", "D", "E"],
        "algorithm": ["multitask", "multitask", "pretrain_finetune", "multitask"],
        "delta": [1.0, 4.0, -2.0, 3.0],
    },
    "ratings": {
        "method": ["panel", "panel", "length", "panel"],
        "set": ["A", "A", "A", "B"],
        "value": [0.25, 0.75, 0.5, 1.0],
    },
}
MEDIANS = {
    "median_deltas": [
        ("D", "multitask", 2.5),
        ("D", "pretrain_finetune", -2.0),
        ("E", "multitask", 3.0),
    ],
    "median_ratings": [("length", "A", 0.5), ("panel", "A", 0.5), ("panel", "B", 1.0)],
}


def read_declared(module: ModuleType, number: int) -> Frame:
    """Return the frame that an example of the page declares with the names of a module."""
    text = PAGE.read_text(encoding="utf-8").partition("## Add a statistic")[2]
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]
    frame = eval(example, dict(vars(module)))
    assert isinstance(frame, Frame)
    return frame


@pytest.mark.parametrize(("module", "number"), [(transfer, 0), (panel, 1)])
def test_one_item_adds_a_statistic(module: Any, number: int, tmp_path: Path) -> None:
    frame = read_declared(module, number)
    assert frame.name not in {each.name for each in module.FRAMES}
    (needed,) = (each for each in module.FRAMES if each.name in frame.needs)
    names, given = list_column_names(needed.columns), ROWS[needed.name]
    values = [given.get(name, [None] * len(given[frame.columns[-1][0]])) for name in names]
    stored = replace(needed, needs=())  # The test writes it instead of ``collect``.
    common = build_common_columns(module.ABOUT)
    metadata = Metadata("study", "digest", synthetic=True, records=1)
    for name, declared in {**common, stored.name: stored.columns}.items():
        rows = zip(*values, strict=True) if name == stored.name else ()
        write_frame(tmp_path / f"{name}.parquet", build_frame(rows, declared), declared, metadata)
    study: Any = SimpleNamespace(tables=str(tmp_path), format_arguments=str)
    write_statistic_frames(study, (stored, frame), module.ABOUT)
    found = read_frames(study, (stored, frame), module.ABOUT)[frame.name]
    assert list(found.itertuples(index=False, name=None)) == MEDIANS[frame.name]
