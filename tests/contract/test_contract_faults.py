"""The code that the faults of ``plant_faults`` replace exists."""

from __future__ import annotations

import pytest
from plant_faults import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_can_be_planted_and_has_its_test(fault: Fault) -> None:
    for file, old, _ in [(fault.file, fault.old, fault.new), *([fault.also] if fault.also else [])]:
        assert (ROOT / "src" / "tasktransfer" / file).read_text().count(old) == 1, (file, old)
    assert (ROOT / "tests" / "contract" / f"test_contract_{fault.test[0]}.py").is_file()
