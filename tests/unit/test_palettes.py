"""Colours as seen with colour-vision deficiencies, and text on its background.

Simulation: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color
Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15(6), 2009, matrices
of severity 1.0, which multiply linear RGB. Distance: CIE 1976 ΔE in L*a*b* (D65). Contrast: WCAG 2.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tasktransfer.designs.transfer.figures.one_dataset import LOOKS
from tasktransfer.present.kit.style import (
    ALGORITHM_COLOURS,
    DIVERGING,
    MISSING,
    NEUTRAL,
    choose_text_colour,
    get_series_look,
)

ROOT = Path(__file__).resolve().parents[2]
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""Linear sRGB to CIE XYZ, D65 (IEC 61966-2-1)."""


def linear(colour: object) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour: object, vision: str) -> np.ndarray:
    """Return L*, a* and b* of a colour as it is seen."""
    seen = np.clip(VISION[vision] @ linear(colour), 0.0, 1.0)
    white = TO_XYZ @ np.ones(3)
    ratio = (TO_XYZ @ seen) / white
    root = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = root
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: object, other: object, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def contrast(one: object, other: object) -> float:
    """Return the contrast, from 1 (equal) to 21 (black on white)."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISION)
def test_series_are_distinguished(vision: str) -> None:
    """Colours differ by 15, six times the just noticeable difference.

    No two series differ by colour alone.
    """
    for palette in (ALGORITHM_COLOURS, [look.colour for look in LOOKS.values()]):
        pairs = {(a, b): distance(a, b, vision) for a, b in combinations(palette, 2)}
        assert min(pairs.values()) > 15, min(pairs, key=lambda pair: pairs[pair])
    for looks in ([*LOOKS.values()], [get_series_look(rank) for rank in range(6)]):
        assert len({look.marker for look in looks}) == len(looks)


@pytest.mark.parametrize("vision", VISION)
def test_gain_and_loss_are_distinguished(vision: str) -> None:
    scale = mpl.colormaps[DIVERGING]
    for strength in (0.1, 0.2, 0.3, 0.4, 0.5):
        assert distance(scale(0.5 - strength), scale(0.5 + strength), vision) > 15, strength
    steps = np.linspace(0, 1, 101)
    light = np.array([lab(scale(step), vision)[0] for step in steps])
    assert (np.diff(light[:46]) > 0).all() and (np.diff(light[55:]) < 0).all()
    for marked in (NEUTRAL, MISSING["edgecolor"]):
        assert min(distance(marked, scale(step), vision) for step in steps) > 10, marked


def test_numbers_are_read_on_every_colour() -> None:
    scale = mpl.colormaps[DIVERGING]
    grounds = [scale(step) for step in np.linspace(0, 1, 101)]
    for ground in (*grounds, to_rgb(NEUTRAL), *map(to_rgb, ALGORITHM_COLOURS)):
        assert contrast(choose_text_colour(ground), ground[:3]) >= 4.5


def test_the_page_is_read_by_day_and_night() -> None:
    """Every text colour on every background has 4.5 or more; the focus mark has 3 or more."""
    css = (ROOT / "src/tasktransfer/present/page/page.css").read_text()
    day, night = (dict(re.findall(r"--([\w-]+): (#\w+);", part)) for part in _schemes(css))
    assert day["baseline"] == NEUTRAL
    for colours in (day, {**day, **night}):
        grounds = ("paper", "shade", "warn-back", "trouble-back")
        for ground in grounds:
            assert contrast(colours["ink"], colours[ground]) >= 7, ground
        for text in ("soft", "link", "warn", "trouble"):
            for ground in ("paper", "shade"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["focus"], colours["paper"]) >= 3
    assert {*night} >= {"ink", "soft", "paper", "shade", "link", "focus", "warn", "trouble"}


def _schemes(css: str) -> tuple[str, str]:
    day, _, rest = css.partition("@media (prefers-color-scheme: dark)")
    return day, rest.partition("figure img")[0]


def test_the_simulation_is_what_was_published() -> None:
    """White stays white and greys stay grey.

    Red and green become similar for protanopes and deuteranopes.
    """
    for matrix in VISION.values():
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=2e-6)
    for vision in ("protanopia", "deuteranopia"):
        assert distance("#a55a00", "#6b6b00", vision) < distance("#a55a00", "#6b6b00", "normal") / 2
    assert distance("black", "white", "normal") == pytest.approx(100, abs=0.1)
