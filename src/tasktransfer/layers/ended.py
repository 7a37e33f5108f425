"""The end of generation."""

from __future__ import annotations

from torch import Tensor

CHECK_INTERVAL = 8
"""Number of steps on a device between checks whether all answers have ended.

The host waits for the device at each check, and a few extra steps cost less. Tokens after an
answer's end are removed."""


def have_all_ended(ended: Tensor, step: int) -> bool:
    """Return whether all answers have ended at a step (counted from 0).

    On a GPU this is checked every ``CHECK_INTERVAL`` steps only.
    """
    looks = ended.device.type == "cpu" or step % CHECK_INTERVAL == CHECK_INTERVAL - 1
    return looks and bool(ended.all())
