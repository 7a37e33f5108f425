#!/usr/bin/env python3
"""Pack the results of a demo into the fixture with which its tables are compared.

    make demo-panel && python tests/pack_demo.py panel-demo

Writes ``tests/fixtures/<preset>.zip`` with the records in the form of ``tasktransfer pack
--with-text``, and every table. A changed table is a change of the product: describe it in
CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path

import yaml

from tasktransfer.cli import main as tasktransfer

ROOT = Path(__file__).resolve().parents[1]


def pack_demo(preset: str) -> Path:
    """Write the fixture of a preset in ``workflow/presets`` whose results exist.

    Raises:
        SystemExit: nothing could be packed.
    """
    config = ROOT / "workflow" / "presets" / f"{preset}.yaml"
    results = ROOT / yaml.safe_load(config.read_text(encoding="utf-8"))["results"]
    out = ROOT / "tests" / "fixtures" / f"{preset}.zip"
    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder, "demo.parquet")
        words = ["pack", "--with-text", "--out", str(pack), "--config", str(config)]
        if code := tasktransfer(words):
            raise SystemExit(code)
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(pack, pack.name)
            for table in sorted((results / "tables").glob("*.parquet")):
                archive.write(table, f"tables/{table.name}")
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", help="of workflow/presets: demo, panel-demo, ...")
    print(pack_demo(parser.parse_args().preset))
