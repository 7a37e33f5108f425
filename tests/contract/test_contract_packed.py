"""The packed records of the contract's studies are those of trainings by the present code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from contract_studies import STUDIES, compute_study
from real_worlds import REAL

from packed_results import is_current
from tasktransfer.designs import open_study
from tasktransfer.results.records import read_record
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.study import Study

NAMES = [*STUDIES, *REAL]
Finished = Callable[[str], Path]


@pytest.mark.parametrize("name", STUDIES)  # the others' models depend on the release of torch
def test_a_pack_has_the_nodes_of_its_study(name: str, recorded: Finished) -> None:
    with chdir(recorded(name)):
        assert is_current(open_study("study.yaml"), name), (
            f"tests/fixtures/results/{name}.zip: The digests of its nodes have changed, so every "
            f"test run trains them. Run python tests/contract/pack_studies.py {name}."
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_training_writes_what_is_packed(name: str, recorded: Finished, tmp_path: Path) -> None:
    compute_study(name, tmp_path, packed=False)
    seen = []
    for folder in (tmp_path, recorded(name)):
        with chdir(folder):
            seen.append(describe_records(open_study("study.yaml")))
    assert seen[0] == seen[1]


def describe_records(study: Study) -> dict[str, Any]:
    """Return label and digest of a node → types in its record, columns and number of its rows."""
    described = {}
    for node in study.plan.nodes:
        record = read_record(Path(study.get_record_path(node)))
        rows = read_record_rows(Path(study.get_record_path(node))) if record.get("rows") else None
        table = None if rows is None else (rows.schema.names, rows.num_rows)
        described[f"{node.label} {node.digest}"] = (list_types(record, "provenance"), table)
    return described


def list_types(value: Any, *keys_only: str) -> Any:
    """Return a record with the type of each value; of some keys' values, only their keys."""
    if isinstance(value, dict):
        return {
            key: sorted(item) if key in keys_only else list_types(item, *keys_only)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [list_types(item, *keys_only) for item in value]
    return type(value).__name__
