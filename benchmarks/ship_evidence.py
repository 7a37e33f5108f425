"""Write the transfer results of MiniLM that the package ships for ``tasktransfer recommend``.

    python -m benchmarks.ship_evidence results/minilm-matrix/tables

Run it after ``make figures``, if the numbers of the shipped matrix have changed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from tasktransfer.designs.transfer.recommend import read_tables_evidence
from tasktransfer.errors import RecordError
from tasktransfer.selection.evidence import SHIPPED


def build_shipped_evidence(tables: Path) -> pd.DataFrame:
    """Return the evidence in a folder of tables. Raises an error if there is none."""
    evidence = read_tables_evidence(tables)
    if evidence is None:
        raise RecordError(
            f"{tables}: The folder has no deltas.parquet. Set a folder of collected tables."
        )
    return evidence


def main() -> None:
    """Read the tables of the shipped matrix and write the package's file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", type=Path, help="tables of the shipped matrix")
    evidence = build_shipped_evidence(parser.parse_args().tables)
    evidence.to_parquet(SHIPPED, index=False, compression="zstd")
    print(f"{SHIPPED}: {len(evidence)} rows, {SHIPPED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
