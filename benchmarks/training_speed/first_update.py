"""A plugin for the measured study that records the time of the training's first forward pass."""

import os
import time
from pathlib import Path

from torch.nn.modules.module import register_module_forward_pre_hook

VARIABLE = "TASKTRANSFER_FIRST_UPDATE"
"""Environment variable with the file for ``time.monotonic()``, a clock shared by all processes."""


def note(*_: object) -> None:
    handle.remove()
    Path(os.environ[VARIABLE]).write_text(repr(time.monotonic()))


handle = register_module_forward_pre_hook(note)
