"""Output of a panel study: published values next to the same members only.

The answer claims no more than the tables support.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tasktransfer.designs.panel.answer import write_answer
from tasktransfer.designs.panel.frames import AVERAGES, CORRELATIONS, EXPERTS, FEW, HITS
from tasktransfer.designs.panel.names import OWN_MINUS_OTHERS
from tasktransfer.designs.panel.printed import (
    compute_table3,
    compute_table8,
    join_experts,
)
from tasktransfer.designs.panel.printed_transfer import compute_table5, compute_table7
from tasktransfer.designs.panel.shown_columns import mark_uncertain
from tasktransfer.designs.panel.source_runs import (
    is_correlation_source,
    is_difference_source,
    is_transfer_source,
)
from tasktransfer.present.columns import make_estimate_column
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, build_frame

PERSONA = ("Persona_USR", "Persona_Zhao", "Persona_DSTC10", "ConvAI2_GRADE")


def view_of(*, synthetic: bool = False, **frames: pd.DataFrame) -> Frames:
    """Return frames of a study that trained ConvAI2 and TopicalChat."""
    order = {"set": [*PERSONA, "Topical_USR", "FED_Turn"], "domain": ["ConvAI2", "TopicalChat"]}
    metadata = Metadata("s", "0" * 64, synthetic, 1, order=order)
    study: Any = SimpleNamespace(config=SimpleNamespace(seeds=(3, 4)))
    return Frames(study, frames, metadata)


def correlations(*rows: tuple[str, str, bool, float]) -> pd.DataFrame:
    """Return rows of (method, set, in domain, value) with an interval of ±10."""
    empty = dict.fromkeys(name for name, _, _ in CORRELATIONS)
    values = [
        {**empty, "method": method, "set": name, "in_domain": inside, "seeds": 2, "value": value,
         "low": value - 10, "high": value + 10, "q": 0.01}
        for method, name, inside, value in rows
    ]  # fmt: skip
    return pd.DataFrame(values)


def averages(*rows: tuple[str, str, float, float, float]) -> pd.DataFrame:
    """Return rows of (method, over, value, low, high) for three sets and two seeds."""
    values = [(m, over, 3, 2, value, low, high, 0.5) for m, over, value, low, high in rows]
    return build_frame(values, AVERAGES)


# --- published values -----------------------------------------------------------------------------


def test_table_3_has_the_papers_rows_and_columns_and_averages_over_the_same_sets_alone() -> None:
    own = correlations(
        *(("panel", name, True, 50.0) for name in (*PERSONA, "Topical_USR")),
        *(("cosine-last", name, True, 20.0) for name in (*PERSONA, "Topical_USR")),
    )
    means = averages(
        ("panel", "ConvAI2", 50, 40, 60), ("panel", "TopicalChat", 50, 40, 60),
        ("panel", "in-domain", 50, 40, 60),
    )  # fmt: skip
    shown = compute_table3(view_of(correlations=own, averages=means)).set_index(["set", "method"])
    assert shown.loc[("Persona_USR", "panel"), "published"] == 63.23
    assert shown.loc[("Persona_USR", "panel"), "difference"] == pytest.approx(50 - 63.23)
    assert shown.loc[("Persona_USR", "USR*"), "published"] == 56.25
    assert pd.isna(shown.loc[("Persona_USR", "USR*"), "value"])
    assert pd.isna(shown.loc[("Persona_USR", "cosine-last"), "published"])
    assert shown.loc[("average of 4: ConvAI2", "panel"), "published"] == 58.39
    topical = shown.loc[("average of 1: TopicalChat", "panel")]
    assert pd.isna(topical["published"])
    assert topical["differs"] == "Average (TopicalChat) of 2 sets, here of 1 set"
    assert [*dict.fromkeys(shown.index.get_level_values("set"))][:2] == [*PERSONA[:2]]
    assert pd.isna(shown.loc[("average of 5: in-domain", "panel"), "published"])


def test_merged_experts_stand_in_table_8_and_the_mean_in_table_3_too() -> None:
    methods = ("panel", "panel-mean", "panel-max")
    own = correlations(*((method, "Persona_USR", True, 1.0) for method in methods))
    frames = view_of(correlations=own, averages=averages())
    assert {*compute_table8(frames)["method"]} == {"panel-mean", "panel-max"}
    assert {"panel", "panel-mean"} <= {*compute_table3(frames)["method"]}
    assert "panel-max" not in {*compute_table3(frames)["method"]}


def few_of(sets: tuple[str, ...], values: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        ("panel-mean", name, "items", 40, 2, value, 1.0, value - 1, 1.0)
        for name, value in zip(sets, values, strict=True)
    ]
    rows += [("length", name, "", 0, 1, 7.0, None, 7.0, None) for name in sets]
    return build_frame(rows, FEW)


def transferred(few: pd.DataFrame, *, out: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return Table 5 by set, evaluated items, and column."""
    own = pd.DataFrame({"set": few["set"].unique()})
    own["in_domain"] = ~own["set"].isin(out)
    shown = compute_table5(view_of(few=few, correlations=own))
    return shown.set_index(["set", "scored", "start"])


def test_table_5_has_averages_over_the_sets_that_were_transferred_to() -> None:
    few = few_of(("Persona_USR", "Topical_USR", "FED_Turn"), (50.0, 60.0, 10.0))
    shown = transferred(few, out=("FED_Turn",))
    assert shown.loc[("average of 2: in-domain", "all items", "panel-mean+40%"), "value"] == 55.0
    assert shown.loc[("average of 3: all", "all items", "panel-mean+40%"), "value"] == 40.0
    assert shown.loc[("average of 3: all", "held-out items", "panel-mean+40%"), "value"] == 39.0
    assert shown.loc[("Persona_USR", "all items", "panel-mean+40%"), "published"] == 64.84
    assert pd.isna(shown.loc[("Persona_USR", "held-out items", "panel-mean+40%"), "published"])
    # Untrained raters are shown for each way of sampling, and belong to no sample.
    assert shown.loc[("Persona_USR", "all items", "length+before"), "by"] == "items"
    # The paper's average of PersonaChat covers four sets, so it is not shown next to one.
    average = shown.loc[("average of 1: ConvAI2", "all items", "panel-mean+40%")]
    assert pd.isna(average["published"])
    assert average["differs"] == "Average (PersonaChat) of 4 sets, here of 1 set"
    shown = transferred(few_of(PERSONA, (50.0,) * 4))
    average = shown.loc[("average of 4: ConvAI2", "all items", "panel-mean+40%")]
    assert average["published"] == 65.81  # Average (PersonaChat), 40 %


def test_an_average_has_every_set_or_is_none() -> None:
    few = few_of(PERSONA, (50.0,) * 4)
    shown = transferred(few.drop(index=0))
    assert ("average of 4: ConvAI2", "all items", "length+before") in shown.index
    assert ("average of 4: ConvAI2", "all items", "panel-mean+40%") not in shown.index


@pytest.mark.parametrize(
    ("candidates", "contexts", "same"), [(20, 7512, True), (20, 100, False), (4, 7512, False)]
)
def test_table_7_has_the_published_beside_the_same_choices(
    candidates: int, contexts: int, same: bool
) -> None:
    row = ("selection-direct", "revised", candidates, contexts, 50.0, 40.0, 60.0)
    shown = compute_table7(view_of(hits=build_frame([row], HITS)))
    (ours,) = shown[shown["method"] == "selection-direct"].to_dict("records")
    assert len(shown) == 6 * 3 + 1
    assert ours["published"] == 49.3 if same else pd.isna(ours["published"])
    assert bool(ours["differs"]) != same


# --- source runs ----------------------------------------------------------------------------------


def run(method: str, seed: int = 0, **about: Any) -> Any:
    return SimpleNamespace(method=method, model="encoder", seed=seed, about=about)


def test_the_domains_expert_is_behind_its_set_and_all_are_behind_others() -> None:
    metadata = view_of().metadata
    assert join_experts(["Persona_USR"], metadata) == "ConvAI2"
    assert join_experts(["FED_Turn"], metadata) == "ConvAI2+TopicalChat"
    row = {"method": "panel", "experts": "ConvAI2"}
    assert is_correlation_source(row, run("panel", domain="ConvAI2"))
    assert not is_correlation_source(row, run("panel", domain="TopicalChat"))
    assert not is_correlation_source(row, run("collection", domain="ConvAI2"))
    pair = {"method": "panel", "against": "cosine-last", "experts": "ConvAI2", "seed": "1"}
    assert is_difference_source(pair, run("panel", 1, domain="ConvAI2"))
    assert not is_difference_source(pair, run("panel", 0, domain="ConvAI2"))
    assert is_difference_source(pair, run("cosine-last", 0, domain=""))
    few = {"method": "single", "percent": 0, "seed": 3, "by": "items", "members": "A"}
    assert is_transfer_source(few, run("single", 3, domain=""))
    assert not is_transfer_source(few, run("single", 4, domain=""))


def test_what_is_not_significant_is_marked_by_the_rule_of_the_answer() -> None:
    cell = mark_uncertain(make_estimate_column("value", "", ".1f"))
    row = {"value": 5.0, "low": 1.0, "high": 9.0, "q": 0.04}
    assert cell.show(row) == "5.0 [1.0, 9.0]"
    assert cell.show({**row, "q": 0.06}) == "5.0 [1.0, 9.0]°"
    assert not cell.show({**row, "seeds_low": 1.0, "seeds_high": 9.0}).endswith("°")
    assert cell.show({**row, "seeds_low": -3.0, "seeds_high": 13.0}).endswith("°")


# --- the answer -----------------------------------------------------------------------------------

SETS = ("Persona_USR", "Topical_USR", "FED_Turn")


def compared(**differences: tuple[float, float, float, float]) -> pd.DataFrame:
    """Return differences from each rater on the first set; on the other sets there is none.

    A difference is (difference, q, ends over contexts and seeds).
    """
    rows = []
    for against, (difference, q, low, high) in differences.items():
        for name in SETS:
            first = name == SETS[0]
            some = (difference, q, low, high) if first else (1.0, 0.9, -9.0, 9.0)
            named = {"method": "panel", "against": against, "set": name, "seed": "mean"}
            ends = dict(zip(("difference", "q", "seeds_low", "seeds_high"), some, strict=True))
            rows.append({**named, **ends})
    return pd.DataFrame(rows)


def own_less_others(*, value: float, p: float, low: float, high: float) -> pd.DataFrame:
    rows = [("panel", OWN_MINUS_OTHERS, SETS[0], True, 3, value, low, high, p)]
    return build_frame(rows, EXPERTS)


def planted() -> dict[str, pd.DataFrame]:
    """Return frames in which the panel is above single on one set and below the cosine.

    Its experts are better on their own domains.
    """
    return {
        "correlations": correlations(("panel", SETS[0], True, 40.0)),
        "averages": averages(("panel", "all", 40.0, 30.0, 50.0)),
        "tests": compared(
            single=(20.0, 0.01, 5.0, 35.0), **{"cosine-last": (-9.0, 0.02, -15.0, -3.0)}
        ),
        "experts": own_less_others(value=20.0, p=0.001, low=10.0, high=30.0),
    }


CLAIMS = ("better than", "worse than", "higher than", "lower than", "(95 % interval 30.0")


def test_the_answer_says_what_is_planted() -> None:
    first, second, third = write_answer(view_of(**planted()))
    assert first == (
        "Averaged over 3 rated sets, the method panel has a Spearman correlation (× 100) of 40.0 "
        "with human ratings (95 % interval 30.0 to 50.0)."
    )
    assert second == (
        "The method panel correlates with human ratings significantly better than single on 1 of 3 "
        "rated sets (Persona_USR) and significantly worse than cosine-last on 1 of 3 rated sets "
        "(Persona_USR)."
    )
    assert third == (
        "In the method panel, the expert for a rated set's own domain correlates with human "
        "ratings significantly better than the other experts on average on 1 of 1 rated set in "
        "the trained domains (Persona_USR)."
    )


def test_without_an_effect_the_answer_claims_none() -> None:
    frames = {
        **planted(),
        "averages": averages(("panel", "all", 4.0, -6.0, 14.0)),
        "tests": compared(single=(2.0, 0.8, -5.0, 9.0)),
        "experts": own_less_others(value=2.0, p=0.6, low=-10.0, high=14.0),
    }
    sentences = write_answer(view_of(**frames))
    assert not [word for word in CLAIMS for sentence in sentences if word in sentence]
    assert "does not differ significantly from 0" in sentences[0]
    assert (
        sentences[1]
        == "The method panel does not differ significantly from single on any rated set."
    )
    assert "on any of 1 rated set" in sentences[2]


@pytest.mark.parametrize(
    ("frame", "instead"),
    [
        ("averages", averages(("panel", "all", 40.0, -1.0, 81.0))),
        # Sure of these trainings; others may come out the other way.
        ("tests", compared(single=(20.0, 0.01, -5.0, 45.0))),
        # Contexts and seeds leave out 0, and it is one of many sets.
        ("tests", compared(single=(20.0, 0.06, 5.0, 35.0))),
        ("experts", own_less_others(value=20.0, p=0.001, low=-1.0, high=41.0)),
        ("experts", own_less_others(value=20.0, p=0.06, low=1.0, high=39.0)),
    ],
)
def test_what_an_interval_or_q_does_not_bear_is_not_claimed(
    frame: str, instead: pd.DataFrame
) -> None:
    rank = ["averages", "tests", "experts"].index(frame)
    before = write_answer(view_of(**planted()))[rank]
    after = write_answer(view_of(**{**planted(), frame: instead}))[rank]
    assert [claim for claim in CLAIMS if claim in before]
    assert not [claim for claim in CLAIMS if claim in after]


def test_seeds_of_a_pair_are_not_counted_as_sets() -> None:
    """Only rows of ``tests`` for ratings averaged over seeds support a claim."""
    frames = planted()
    each = frames["tests"].assign(seed="0", q=0.001)
    frames["tests"] = pd.concat([frames["tests"], each])
    assert write_answer(view_of(**frames)) == write_answer(view_of(**planted()))


def test_a_study_without_a_panel_speaks_of_what_it_has() -> None:
    frames = {
        name: frame.assign(method="single") if "method" in frame else frame
        for name, frame in planted().items()
    }
    frames["experts"] = frames["experts"].iloc[:0]
    frames["tests"] = frames["tests"].query("against == 'cosine-last'")
    first, second = write_answer(view_of(**frames))
    assert "single has a Spearman correlation" in first
    assert "single correlates with human ratings significantly worse than cosine-last" in second
