"""Marks, published values, printed tables and sentences of small frames.

Also every declaration of the package's designs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tasktransfer.present.columns import make_number_column, make_published_column, make_text_column
from tasktransfer.present.declared import Analysis, FlatTable, PivotTable, Table
from tasktransfer.present.marks import (
    describe_setting_differences,
    format_badges,
    format_notes,
    list_marks,
)
from tasktransfer.present.numbers import (
    excludes_zero,
    format_fraction,
    format_value_with_interval,
    is_significantly_negative,
    is_significantly_positive,
    join_names,
)
from tasktransfer.present.published import (
    PublishedValues,
    add_published_columns,
    list_published_notes,
)
from tasktransfer.present.tables import (
    AbsentOutput,
    PrintedTable,
    build_printed_table,
    to_html,
    write_tables,
)
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata

REAL = Metadata("s", "0" * 64, False, 1, order={"set": ["A", "B"]})
GENERATED = replace(REAL, synthetic=True)
CUT = replace(REAL, cuts="limit_test 10")
STOOD_IN = replace(REAL, facts={"substitute: the encoder": "a smaller one"})
OURS = pd.DataFrame({"method": ["m", "m", "n"], "set": ["B", "A", "A"], "value": [1.0, 2.0, 4.0]})
PAPER = PublishedValues(
    pd.DataFrame({"set": ["A", "B"], "value": [3.0, 5.0]}),
    "value",
    {"set": lambda row: row["set"] if row["method"] == "m" else None},
    differs=lambda row: "other pairs" if row["set"] == "B" else "",
)

VALUE = make_number_column("value", "Value", ".1f")


def view(metadata: Metadata = REAL, frame: pd.DataFrame = OURS) -> Frames:
    study: Any = SimpleNamespace(config_file="s.yaml", plan=SimpleNamespace(runs=()))
    return Frames(study, {"ours": frame}, metadata)


def presentation(*tables: Table) -> Analysis:
    return Analysis("?", lambda study: ({}, REAL), lambda frames: [], tables=tables)


def table(**changes: Any) -> Table:
    given: dict[str, Any] = {
        "make": lambda frames: frames["ours"],
        "shape": FlatTable(
            (make_text_column("method", "Method"), make_text_column("set", "Set"), VALUE)
        ),
        "keys": ("method", "set"),
        "caption": "Values.",
        **changes,
    }  # fmt: skip
    return Table("table1", "Table 1", **given)


def made(metadata: Metadata = REAL, frame: pd.DataFrame = OURS, **changes: Any) -> PrintedTable:
    one = table(**changes)
    told = build_printed_table(presentation(one), one, view(metadata, frame))
    assert isinstance(told, PrintedTable)
    return told


# --- published values -----------------------------------------------------------------------------


def test_nothing_is_shown_next_to_generated_dialogues() -> None:
    assert add_published_columns(OURS, PAPER, GENERATED) is OURS
    mixed = replace(GENERATED, real=["Real"])
    both = OURS.assign(dataset=["Made", "Made", "Real"], method="m")
    assert add_published_columns(both, PAPER, mixed)["published"].fillna(0).tolist() == [0, 0, 3]


def test_over_other_members_there_is_a_reason_and_no_value() -> None:
    told = add_published_columns(OURS, PAPER, REAL)
    assert told["differs"].tolist() == ["other pairs", "", ""]
    assert told["published"].fillna(0).tolist() == [0, 3, 0]  # the paper has no method n
    assert told["difference"].fillna(0).tolist() == [0, -1, 0]
    assert [make_published_column(".1f").show(row) for row in told.to_dict("records")] == [
        "‡", "3.0", "–",
    ]  # fmt: skip
    assert list_published_notes(told, REAL, "Table 1 of X") == [
        "Published: Table 1 of X.",
        "‡ Published value not comparable: other pairs.",
    ]


@pytest.mark.parametrize("metadata", [CUT, STOOD_IN])
def test_in_another_setting_there_is_no_difference(metadata: Metadata) -> None:
    told = add_published_columns(OURS, PAPER, metadata)
    assert told["published"].fillna(0).tolist() == [0, 3, 0]
    assert "difference" not in told
    assert "No differences are shown" in list_published_notes(told, metadata, "Table 1 of X")[0]
    assert describe_setting_differences(metadata)


def test_a_paper_with_two_values_for_a_row_has_none() -> None:
    twice = replace(PAPER, values=pd.concat([PAPER.values, PAPER.values]))
    assert add_published_columns(OURS, twice, REAL) is OURS


# --- marks ----------------------------------------------------------------------------------------


def test_badges_are_numbered_as_their_notes() -> None:
    every = replace(GENERATED, cuts="limit_test 10", facts={**STOOD_IN.facts, "ratings": "kept"})
    marks = list_marks(every)
    assert format_badges(marks) == "SYNTHETIC¹ · SUBSAMPLED² · 1 SUBSTITUTE³"
    told = format_notes(marks, ["More."])
    assert [note.split()[0] for note in told] == ["1", "2", "3", "4"]
    assert (
        "at most 10 test instances" in told[1]
        and "a smaller one (instead of the encoder)" in told[2]
    )
    assert "ratings" not in " ".join(told)
    assert (
        list_marks(REAL) == []
        and format_badges([]) == ""
        and describe_setting_differences(REAL) == ""
    )


# --- tables ---------------------------------------------------------------------------------------


def test_a_listed_table_has_a_line_a_row() -> None:
    told = made()
    (block,) = told.layout.blocks
    assert [line for (line,) in block] == [("m", "B", "1.0"), ("m", "A", "2.0"), ("n", "A", "4.0")]
    assert (told.layout.head, told.layout.numbers) == (("Method", "Set", "Value"), 2)
    assert made(GENERATED).text.startswith("SYNTHETIC¹ Values. 1 SYNTHETIC (tiny world)")


CROSSED = PivotTable(
    (make_text_column("method", "Method"),),
    "set",
    make_number_column("value", "Value", ".1f"),
    make_published_column(".1f"),
)


def test_a_crossed_table_has_the_papers_line_below_ours() -> None:
    told = made(shape=CROSSED, make=lambda v: add_published_columns(v["ours"], PAPER, v.metadata))
    assert told.layout.head[-2:] == ("A", "B")  # the study's order
    lines = [line for block in told.layout.blocks for entry in block for line in entry]
    assert lines[:2] == [("m", "ours", "2.0", "1.0"), ("", "published", "3.0", "‡")]
    without = made(
        GENERATED, shape=CROSSED, make=lambda v: add_published_columns(v["ours"], PAPER, v.metadata)
    )
    lines = [line for block in without.layout.blocks for entry in block for line in entry]
    assert lines == [("m", "2.0", "1.0"), ("n", "4.0", "–")]


@pytest.mark.parametrize("shape", [table().shape, CROSSED])
def test_words_of_a_cell_name_its_row_alone(shape: Any) -> None:
    told = made(shape=shape, make=lambda v: add_published_columns(v["ours"], PAPER, v.metadata))
    commands = to_html(told).explain
    assert commands is not None and commands[0][-1] == "table1 m B"
    cells = {words[-1] for words in told.words} | {words[-2] for words in told.words}
    rows = set(zip(OURS["method"], OURS["set"], strict=True))
    assert {words for words in cells if len(words) == 2} >= rows
    assert {words[0] for words in cells if words} == {"m", "n"}


def test_a_table_without_rows_leaves_no_file_and_a_sentence(tmp_path: Path) -> None:
    assert len(write_tables([made()], tmp_path)) == 5
    empty = table(nothing="has no value")
    told = build_printed_table(presentation(empty), empty, view(frame=OURS.iloc[:0]))
    assert isinstance(told, AbsentOutput)
    assert told.why == "The table “Table 1” is not shown, because the study has no value."
    assert write_tables([told], tmp_path) == [] and not list(tmp_path.iterdir())
    unplanned = table(planned=lambda study: False)
    assert isinstance(build_printed_table(presentation(unplanned), unplanned, view()), AbsentOutput)


# --- sentences ------------------------------------------------------------------------------------


def test_only_what_tests_bear_is_sure() -> None:
    frame = pd.DataFrame({"value": [1.0, -1.0, 1.0, 1.0], "q": [0.05, 0.01, 0.051, float("nan")]})
    assert is_significantly_positive(frame).tolist() == [True, False, False, False]
    assert is_significantly_negative(frame).tolist() == [False, True, False, False]
    assert excludes_zero(0.1, 2) and excludes_zero(-2, -0.1)
    assert not excludes_zero(-0.1, 2) and not excludes_zero(float("nan"), 2)


def test_words_of_sentences() -> None:
    assert format_value_with_interval(1.25, 0.4, 2.0, "+.1f") == "+1.2 [+0.4, +2.0]"
    assert format_value_with_interval(1.0, None, None, ".1f") == "1.0"
    assert [join_names(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "", "a", "a and b", "a, b and c",
    ]  # fmt: skip
    assert join_names(list("abcdef")) == "a, b, c, d and 2 more"
    assert format_fraction(0, 3, "cells") == "none of 3 cells"
