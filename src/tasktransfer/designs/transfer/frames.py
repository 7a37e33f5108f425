"""Frames of the transfer study, and the functions that make them.

docs/columns.md lists their columns (``collect.columns``), and docs/analysis.md defines each number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.transfer.collect import columns, method_columns
from tasktransfer.designs.transfer.config import transfer_config
from tasktransfer.designs.transfer.runs import is_reference
from tasktransfer.results.frames import Frame
from tasktransfer.results.study import Study
from tasktransfer.selection.columns import REGRET, VALUES

if TYPE_CHECKING:
    from tasktransfer.designs.transfer import selectors
    from tasktransfer.designs.transfer.collect import collect
    from tasktransfer.designs.transfer.statistics import (
        agreement,
        asymmetry,
        cells,
        collapsed,
        control_summary,
        controls,
        methods,
        mixing,
        overlap,
        prompted,
        race,
        references,
        summary,
        top1,
        variance,
    )
else:
    package = LazyPackage("tasktransfer.designs.transfer.statistics")
    agreement, asymmetry, cells = package.agreement, package.asymmetry, package.cells
    collapsed, control_summary = package.collapsed, package.control_summary
    controls, mixing, overlap = package.controls, package.mixing, package.overlap
    methods = package.methods
    prompted, race, references = package.prompted, package.race, package.references
    summary, top1, variance = package.summary, package.top1, package.variance
    collect = LazyPackage("tasktransfer.designs.transfer.collect").collect
    selectors = LazyPackage("tasktransfer.designs.transfer").selectors

ABOUT = ("dataset", "sources", "target", "shots")
"""Keys of ``Run.about`` that identify a run."""


def _has_prompted(study: Study) -> bool:
    return bool(transfer_config(study).prompted)


def has_references(study: Study) -> bool:
    """Return whether the plan has runs of references."""
    return any(map(is_reference, study.plan.runs))


def compares_methods(study: Study) -> bool:
    """Return whether the study has references or prompted models."""
    return has_references(study) or _has_prompted(study)


def _has_controls(study: Study) -> bool:
    return bool(transfer_config(study).planned_controls)


def _has_selectors(study: Study) -> bool:
    return bool(transfer_config(study).selectors)


def _has_race(study: Study) -> bool:
    return transfer_config(study).racing is not None


def _has_mixing(study: Study) -> bool:
    return transfer_config(study).multi_source.mixes


RUNS, DELTAS = "transfer_runs", "deltas"
FRAMES = (
    Frame(RUNS, columns.RUNS, collect.make_transfer_runs),
    Frame("control_runs", columns.RUNS, collect.make_control_runs),
    Frame("prompted", columns.PROMPTED, prompted.make_prompted, planned=_has_prompted),
    Frame("references", columns.REFERENCES, references.make_references, planned=has_references),
    Frame("methods", method_columns.METHODS, methods.make_methods, planned=compares_methods),
    Frame("mixing", columns.MIXING, mixing.make_mixing, planned=_has_mixing),
    # made from the dialogues, by `data stats` and `data reference`
    Frame("lengths", (), None, from_dialogues=True),
    Frame("overlap_data", (), None, from_dialogues=True),
    Frame("reference", columns.REFERENCE, None, from_dialogues=True),
    # made from other frames
    Frame(DELTAS, columns.DELTAS, collect.make_deltas, (RUNS,)),
    Frame("sizes", columns.SIZES, collect.make_sizes, (RUNS,)),
    Frame("missing_runs", columns.MISSING, collect.make_missing_runs, ("missing", RUNS, DELTAS)),
    Frame("cells", columns.CELLS, cells.make_cells, (RUNS, DELTAS)),
    Frame("summary", columns.SUMMARY, summary.make_summary, (RUNS, DELTAS)),
    Frame("variance", columns.VARIANCE, variance.make_variance, (DELTAS,)),
    Frame("asymmetry", columns.ASYMMETRY, asymmetry.make_asymmetry, ("cells", DELTAS)),
    Frame("agreement", columns.AGREEMENT, agreement.make_agreement, (DELTAS,)),
    Frame("overlap", columns.OVERLAP, overlap.make_overlap, (RUNS, "overlap_data")),
    Frame(
        "overlap_effect", columns.OVERLAP_EFFECT, overlap.make_overlap_effect, ("overlap", DELTAS)
    ),
    Frame(
        "control_cells",
        columns.CONTROL_CELLS,
        controls.make_control_cells,
        (RUNS, "control_runs"),
    ),
    Frame("controls", columns.CONTROLS, controls.make_controls, ("control_cells", "cells")),
    Frame(
        "control_summary",
        columns.CONTROL_SUMMARY,
        control_summary.make_control_summary,
        (RUNS, "control_runs"),
        planned=_has_controls,
    ),
    Frame("top1", columns.TOP1, top1.make_top1, (RUNS, DELTAS)),
    Frame("collapsed", columns.COLLAPSED, collapsed.make_collapsed, (RUNS, "control_runs")),
    Frame("race", columns.RACE, race.make_race, (DELTAS,), planned=_has_race),
    Frame(
        "selectors",
        VALUES,
        selectors.make_selectors,
        (RUNS, DELTAS, "sizes"),
        planned=_has_selectors,
    ),
    Frame(
        "regret",
        REGRET,
        selectors.make_regret,
        (RUNS, DELTAS, "selectors", "references"),
        planned=_has_selectors,
    ),
)
