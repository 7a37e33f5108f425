"""Figures, tables and reports of transfer results without a study on disk, using a substitute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd

from tasktransfer.designs.transfer.figures.one_dataset import list_datasets
from tasktransfer.designs.transfer.shown import FIGURES, declare_analysis
from tasktransfer.present.declared import Analysis
from tasktransfer.present.figures import DrawingResult, FigureStyle, draw_figures
from tasktransfer.present.page import page
from tasktransfer.present.tables import (
    AbsentOutput,
    PrintedTable,
    build_printed_tables,
    write_tables,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.study import Study


def runs_of(results: Frames) -> list[Any]:
    """Return the existing and missing runs, with the attributes that declarations need."""
    frame = pd.concat([results["transfer_runs"], results["missing_runs"]])
    named = frame[["dataset", "algorithm", "source", "target"]].drop_duplicates()
    return [
        SimpleNamespace(
            method=method,
            about={
                "dataset": dataset,
                "sources": tuple(source.split("+")) if source else (),
                "target": target,
            },
        )
        for dataset, method, source, target in named.itertuples(index=False, name=None)
    ]


def view_of(results: Frames, arguments: str = "") -> Frames:
    """Return the results with a study; ``arguments``: command-line arguments that open it."""
    config = SimpleNamespace(
        study=results.metadata.study,
        design="transfer",
        dataset_names=list_datasets(results),
        seeds=(0,),
        results=Path("nowhere"),
    )
    study = SimpleNamespace(
        config=config,
        config_file="study.yaml",
        plan=SimpleNamespace(runs=runs_of(results), stages=()),
        format_arguments=lambda: arguments,
    )
    return Frames(cast(Study, study), results, results.metadata)


def shown_of(results: Frames, kinds: Sequence[str] = tuple(FIGURES)) -> Analysis:
    """Return the analysis declared for the datasets of the results."""
    return declare_analysis(dict.fromkeys(list_datasets(results), kinds))


def drawn(
    results: Frames, out: Path, kinds: Sequence[str] = tuple(FIGURES), style: FigureStyle = "screen"
) -> DrawingResult:
    """Draw the changed figures of datasets into a folder."""
    shown = shown_of(results, kinds)
    of_datasets = tuple(figure for figure in shown.figures if figure.text in kinds)
    return draw_figures(replace(shown, figures=of_datasets), view_of(results), out, style)


def printed(results: Frames) -> Mapping[str, PrintedTable | AbsentOutput]:
    """Return every printed table by name, or the reason why there is none."""
    tables = build_printed_tables(shown_of(results), view_of(results))
    return {table.name: table for table in tables}


def write_all_tables(results: Frames, out: Path) -> list[Path]:
    """Write every printed table."""
    return write_tables(printed(results).values(), out)


def write_table_text(results: Frames, out: Path, name: str) -> str:
    """Write every printed table, and return the Markdown text of one of them."""
    write_all_tables(results, out)
    return (out / f"{name}.md").read_text()


def render(results: Frames, figures: Path, folder: Path, *, arguments: str = "") -> str:
    """Return the text of the report page."""
    return page.render_page(shown_of(results), view_of(results, arguments), figures, folder)


def write_report(results: Frames, figures: Path, out: Path, *, arguments: str = "") -> Path:
    """Write the report page."""
    return page.write_page(shown_of(results), view_of(results, arguments), figures, out)
