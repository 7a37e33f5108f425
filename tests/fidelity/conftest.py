"""The shipped matrix, whose tables several files read."""

from __future__ import annotations

import pytest

from shipped_records import merged
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study
from transfer_frames import write_collected_tables, write_statistics


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("matrix")
    return merged("minilm-matrix.parquet", "minilm-matrix.yaml", folder / "results")


@pytest.fixture(scope="session")
def frames(matrix: Study) -> Frames:
    """Build the matrix's tables and statistics from its records."""
    write_collected_tables(matrix, complete=False)
    return write_statistics(matrix)
