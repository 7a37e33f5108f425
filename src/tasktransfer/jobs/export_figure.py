"""Picture of an exported model's calibration: reliability diagram and coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasktransfer.files import replace_file
from tasktransfer.results.exported import ExportedModel

PICTURE = "calibration.png"
_SPLITS = {"dev": 0, "test": 1}


def write_calibration_figure(folder: Path, exported: ExportedModel) -> None:
    """Write the figure of an exported model's reliability and coverage into its folder."""
    from tasktransfer.present.kit.panels import create_panels, make_line_entry, set_panel_title  # noqa: PLC0415
    from tasktransfer.present.kit.style import (  # noqa: PLC0415
        DPI,
        INK,
        add_legend_below,
        fix_layout,
        get_series_look,
    )

    figure, (diagram, curve) = create_panels(2, 3.0, 2.6, shared="none")
    reliability, coverage = (exported.calibration[key] for key in ("reliability", "coverage"))
    for split, rank in _SPLITS.items():
        look = get_series_look(rank)
        for when, alpha in (("before", 0.35), ("after", 1.0)):
            _draw_bins(diagram, reliability[split][when], look, alpha)
        known = [row for row in coverage[split] if row["accuracy"] is not None]
        xs, ys = ([row[key] for row in known] for key in ("coverage", "accuracy"))
        curve.plot(xs, ys, color=look.colour, marker=look.marker, ls=look.line, ms=4)
    diagram.plot([0, 100], [0, 100], color=INK, lw=0.8, ls=":")
    set_panel_title(diagram, "Reliability (number: instances of test)")
    set_panel_title(curve, "Inputs above a threshold")
    diagram.set_xlabel("probability, percent", fontsize=9)
    curve.set_xlabel("labelled, percent", fontsize=9)
    for axes in (diagram, curve):
        axes.set_ylabel("accuracy, percent", fontsize=9)
        axes.set_ylim(-4, 104)
    for row in reliability["test"]["after"]:
        place = (row["confidence"], row["accuracy"])
        label = f"{row['instances']}"
        diagram.annotate(label, place, (3, -9), textcoords="offset points", fontsize=6.5)
    entries = [
        make_line_entry(f"{split}, {when} temperature", get_series_look(rank), alpha=alpha)
        for split, rank in _SPLITS.items()
        for when, alpha in (("without", 0.35), ("with", 1.0))
    ]
    add_legend_below(figure, entries)
    fix_layout(figure)
    with replace_file(folder / PICTURE) as part:
        figure.savefig(part, format="png", dpi=DPI, metadata={"Software": None})


def _draw_bins(axes: Any, rows: list[dict[str, float]], look: Any, alpha: float) -> None:
    xs, ys = ([row[key] for row in rows] for key in ("confidence", "accuracy"))
    axes.plot(xs, ys, color=look.colour, marker=look.marker, ls=look.line, ms=4, alpha=alpha)
