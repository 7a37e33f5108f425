#!/usr/bin/env python3
"""Pack what a demo left into the fixture that its tables are held to.

    make demo-panel && python tests/pack_demo.py panel-demo

Writes ``tests/fixtures/<preset>.zip``: the records as ``tasktransfer pack --with-text`` has them,
and every table. A table that has changed is a change of the product, to be said in CHANGELOG.md.
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
    """The fixture of a preset in ``workflow/presets``, whose results are there.

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
