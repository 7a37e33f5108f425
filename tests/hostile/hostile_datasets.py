"""All hostile datasets: importing the modules adds their cases."""

from __future__ import annotations

import hostile_contents
import hostile_files
import hostile_texts
from hostile_cases import CASES, TOLD, Case

__all__ = ["CASES", "TOLD", "Case", "hostile_contents", "hostile_files", "hostile_texts"]
