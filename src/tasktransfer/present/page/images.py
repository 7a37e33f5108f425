"""Figures embedded in the page."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tasktransfer.present.kit.style import DPI

MAX_PIXELS = 4_000_000
"""Maximum size of an embedded figure; no page is wider than 2,000 pixels on a screen."""
CSS_DPI = 96
COLOURS = 256
"""Palette size; figures have few colours, and a palette reduces the file to a third."""


@dataclass(frozen=True, slots=True)
class EmbeddedImage:
    """An embedded image: a data URI, its printed size in pixels of the page, and its own notes."""

    source: str
    width: int
    height: int
    notes: str


def encode_image(path: Path) -> EmbeddedImage:
    """Encode a PNG file as a data URI, after scaling it down to ``MAX_PIXELS``.

    Raises:
        OSError: the file is missing or not an image.
    """
    with Image.open(path) as opened:
        image, size = opened.convert("RGB"), opened.size
        notes = str(opened.info.get("Description", ""))
    if image.width * image.height > MAX_PIXELS:
        scale = math.sqrt(MAX_PIXELS / (image.width * image.height))
        smaller = (round(image.width * scale), round(image.height * scale))
        image = image.resize(smaller, Image.Resampling.LANCZOS)
    flat = image.quantize(COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    flat.save(buffer, "PNG", optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    width, height = (round(pixels * CSS_DPI / DPI) for pixels in size)
    return EmbeddedImage(f"data:image/png;base64,{encoded}", width, height, notes)
