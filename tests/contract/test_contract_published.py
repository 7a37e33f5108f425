"""Published values appear only next to our values over the same members; substitutes are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from cases import cases
from real_worlds import REAL
from test_contract_marks import published_beside

from tasktransfer.designs.probes.published import group_probes_as_used
from tasktransfer.results.study import Study


def over_other_pairs(table: pd.DataFrame) -> pd.Series:
    """Select every row of transfer's Table 2: the paper has 90 pairs, the study two."""
    return table["n_pairs"] < 90


def over_other_sets(table: pd.DataFrame) -> pd.Series:
    """Select panel averages over one ConvAI2 set (the paper has four) and two other sets."""
    return table["set"].str.startswith("average of")


def over_other_probes(table: pd.DataFrame) -> pd.Series:
    """Select the groups in the probes' Table 6 from which a probe is missing."""
    sizes = pd.Series(group_probes_as_used()).value_counts()
    return table["probes"] < table["group"].map(sizes)


AVERAGED: dict[str, dict[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "transfer-real": {"table2": over_other_pairs},
    "panel-real": dict.fromkeys(("table3", "table4", "table8"), over_other_sets),
    "probes-real": {"table6": over_other_probes},
}
"""Study → printed table → function that selects averages over other members than the paper's."""


@cases([(name,) for name in REAL])
def test_published_values_stand_beside_a_real_study(study: Study) -> None:
    """Without this, the next test would be meaningless."""
    tables = [pd.read_csv(file) for file in Path(study.figures).glob("*.csv")]
    assert any(len(published_beside(table)) for table in tables)


@cases([(name,) for name in AVERAGED])
def test_published_averages_stand_beside_averages_over_the_same_members_only(
    study: Study, design: str
) -> None:
    for name, over_others in AVERAGED[design].items():
        table = pd.read_csv(Path(study.figures, f"{name}.csv"))
        others = table[over_others(table)]
        assert len(others), name
        beside = published_beside(others)
        assert beside.empty, f"{name}: {beside.to_dict('records')[:2]}"
