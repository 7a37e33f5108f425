"""A plugin's design with its own recipe, learner and measure, computed node by node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
import yaml

from bringing_design import TASK
from empathetic_study import make
from tasktransfer.core.identity import VERSIONS
from tasktransfer.data.cache import read_instances
from tasktransfer.designs import DESIGNS, open_study
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows

STUDY: dict[str, Any] = {
    "study": "bringing",
    "design": "bringing",
    "plugins": [str(Path(__file__).parents[1] / "bringing_design.py")],
    "data": {"tiny_world": {"dialogues": 120}},
    "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny", "max_length": 64}],
    "seeds": 1,
}


@pytest.fixture(autouse=True)
def _gone_again() -> Iterator[None]:
    """Remove afterwards what a plugin adds."""
    registries: tuple[dict[Any, Any], ...] = (DESIGNS, MEASURES, VERSIONS)
    before = [dict(registry) for registry in registries]
    yield
    for registry, was in zip(registries, before, strict=True):
        registry.clear()
        registry.update(was)


def test_what_a_design_brings_makes_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    study = open_study("study.yaml")
    make(study)
    (derived,), (fit,), (judged,) = study.plan.derived, study.plan.fits, study.plan.evaluations
    data, fitted, found = (
        read_record(Path(study.get_record_path(node))) for node in (derived, fit, judged)
    )
    whole = read_instances(Path(study.get_cache_folder(judged.data)), TASK, "train")
    assert fit.identity["versions"] == {"frequent": 2}
    assert "versions" not in {*judged.identity, *derived.identity["derived"]}
    assert data["sizes"][TASK]["train"] == (len(whole) + 1) // 2
    assert 0 < fitted["results"][TASK]["measures"]["micro_f1"] < 100
    rows = read_record_rows(Path(study.get_record_path(judged)))
    assert len(set(map(tuple, rows["prediction"].to_pylist()))) == 1
    gaps = pc.subtract(rows["predicted_value"], rows["gold_value"])
    squared = pc.mean(pc.multiply(gaps, gaps)).as_py()
    assert found["results"][TASK]["measures"] == {"squared_gap": pytest.approx(squared)}
