"""Marks of limits and substitutes, and the placement of published values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from cases import cases
from contract_studies import CITED, STUDIES, design_name

from printed_intervals import list_intervals, list_wrong_intervals
from tasktransfer.designs import get_design
from tasktransfer.designs.commands import read_frames
from tasktransfer.present.tables import build_printed_tables
from tasktransfer.results.study import Study

pytestmark = pytest.mark.slow

SHOWN = [design for design in STUDIES if design != "toy"]  # the toy design prints no table
SPLITS = {
    "limit_train": "training",
    "limit_dev": "dev",
    "limit_test": "test",
    "limit": "test instances",
    "limit_pool": "candidates per dataset",
}
"""Limit → its words in captions."""
WITH_SUBSTITUTES = ("empathetic", "panel-real", "probes-real")


def limits(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the name and value of every limit in a config."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from limits(value)
        elif key.startswith("limit") or key == "part":
            yield key, value


def footers(study: Study) -> dict[str, dict[str, Any]]:
    """Return the facts about the study in the footer of each table."""
    files = sorted(Path(study.tables).glob("*.parquet"))
    return {f.name: json.loads(pq.read_schema(f).metadata[b"tasktransfer"]) for f in files}


def captions(study: Study, design: str) -> dict[str, str]:
    """Return the caption of every printed table with numbers from the study's records."""
    files = sorted(Path(study.figures).glob("*.md"))
    return {
        file.name: file.read_text().partition("\n|")[0]
        for file in files
        if file.stem not in CITED[design_name(design)] and file.with_suffix(".csv").exists()
    }


@cases([(design,) for design in STUDIES])
def test_every_table_says_what_was_cut(study: Study, design: str) -> None:
    for name, footer in footers(study).items():
        for limit, value in limits(STUDIES[design]):
            assert f"{limit} {value}" in footer["cuts"], name


@cases([(design,) for design in SHOWN])
def test_every_caption_says_what_was_cut(study: Study, design: str) -> None:
    told = captions(study, design)
    assert told
    for name, caption in told.items():
        assert "SUBSAMPLED" in caption, name
        for limit, value in limits(STUDIES[design]):
            words = f"{value:,} {SPLITS.get(limit, limit)}"
            assert f"{limit} {value}" in caption or words in caption, name


@cases([(name,) for name in (*WITH_SUBSTITUTES, "toy")])
def test_every_table_says_what_stands_in(study: Study) -> None:
    wanted = get_design(study.config).substitutes(study.config)
    assert wanted
    for name, footer in footers(study).items():
        for one, instead in wanted.items():
            assert footer["facts"].get(f"substitute: {one}") == instead, name


@cases([(name,) for name in WITH_SUBSTITUTES])
def test_every_caption_says_what_stands_in(study: Study, design: str) -> None:
    wanted = get_design(study.config).substitutes(study.config)
    assert wanted
    for name, caption in captions(study, design).items():
        for one, instead in wanted.items():
            assert one in caption, name
            assert instead in caption, name


@cases([(design,) for design in SHOWN])
def test_no_published_value_is_shown_next_to_a_generated_world(study: Study, design: str) -> None:
    for file in sorted(Path(study.figures).glob("*.csv")):
        if file.stem not in CITED[design]:
            beside = published_beside(pd.read_csv(file))
            assert beside.empty, f"{file.name}: {beside.to_dict('records')[:3]}"


def published_beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have both a published value and a number from the study."""
    published = [name for name in table if name.startswith("published")]
    numbers = [
        name
        for name in table.select_dtypes("number")
        if name not in published and not name.startswith("difference_")
    ]
    both = table[published].notna().any(axis=1) & table[numbers].notna().any(axis=1)
    return table[both] if published else table.iloc[:0]


def test_a_row_with_both_is_found() -> None:
    table = pd.DataFrame({"set": ["a", "b"], "value": [1.0, None], "published": [2.0, 3.0]})
    assert published_beside(table)["set"].to_list() == ["a"]
    with pytest.raises(KeyError):
        published_beside(table.drop(columns="value"))["value"]


@cases([(design,) for design in SHOWN])
def test_every_printed_interval_ends_where_the_scale_does(study: Study, design: str) -> None:
    analysis = get_design(study.config).analysis(study)
    tables = build_printed_tables(analysis, read_frames(study, analysis))
    assert [*list_intervals(tables)]
    correlations = design_name(design) == "panel"
    assert list_wrong_intervals(tables, correlations=correlations) == []
