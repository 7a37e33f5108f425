"""The header of a safetensors file, without its tensors."""

from __future__ import annotations

import struct
from pathlib import Path

from tasktransfer.files import json_text
from tasktransfer.files.regular import open_regular

LONGEST_HEADER = 100_000_000
"""Maximum number of bytes of a header, as in the safetensors library."""


def read_tensor_shapes(file: Path) -> dict[str, list[int]] | None:
    """Read the shapes of a safetensors file's tensors, or return None for a damaged file.

    Only the header is read: 8 bytes with the header's length, then JSON with type, shape and
    offsets of every tensor. A file that does not end where its last tensor ends is damaged.
    """
    try:
        with open_regular(file) as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > LONGEST_HEADER:
                return None
            header = json_text.loads(stream.read(length))
        header.pop("__metadata__", None)
        end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        whole = file.stat().st_size == 8 + length + end
        shapes = {name: [int(n) for n in entry["shape"]] for name, entry in header.items()}
        return shapes if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        return None
