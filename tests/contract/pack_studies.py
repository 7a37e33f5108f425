#!/usr/bin/env python3
"""Compute the contract's studies, and pack their records (see ``packed_results``).

python tests/contract/pack_studies.py [STUDY ...]
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from contract_studies import STUDIES, compute_study
from real_worlds import REAL

from packed_results import write_pack

if __name__ == "__main__":
    for name in sys.argv[1:] or [*STUDIES, *REAL]:
        with tempfile.TemporaryDirectory() as folder:
            study = compute_study(name, Path(folder), packed=False)
            with chdir(folder):
                print(write_pack(study, name))
