"""A plugin for the study that is measured: notes when the training's first forward pass begins."""

import os
import time
from pathlib import Path

from torch.nn.modules.module import register_module_forward_pre_hook

VARIABLE = "TASKTRANSFER_FIRST_UPDATE"
"""Names the file that gets ``time.monotonic()``: a clock that all processes of a machine share."""


def note(*_: object) -> None:
    handle.remove()
    Path(os.environ[VARIABLE]).write_text(repr(time.monotonic()))


handle = register_module_forward_pre_hook(note)
