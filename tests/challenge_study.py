"""The challenge-demo preset with its records, from a pack or trained in one process.

``python tests/challenge_study.py`` trains them and packs them again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from empathetic_study import make
from packed_results import prepare_data, restore, write_pack
from tasktransfer.designs import open_study
from tasktransfer.results.study import Study

PRESET = Path(__file__).resolve().parent.parent / "workflow" / "presets" / "challenge-demo.yaml"
MODEL = "tiny-bert"


def trained_preset(base: Path, *, packed: bool = True) -> Study:
    """Return the preset's study with the record of every stage, in the folder ``base``.

    Args:
        base: an existing folder.
        packed: whether to take the records from the pack "challenge", if it is current.
    """
    places = {"results": str(base / "results"), "data": {"release": str(base / "world")}}
    study = open_study(PRESET, places, need_inputs=False)
    prepare_data(study)
    study = open_study(PRESET, places)  # now with the revisions of the dialogues
    if not packed or not restore(study, "challenge"):
        make(study)
    return study


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(write_pack(trained_preset(Path(folder), packed=False), "challenge"))
