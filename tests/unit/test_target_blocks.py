"""The report's section on targets: their sources, the state of the baseline, and the filters."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from tasktransfer.designs.transfer.report.targets import (
    build_target_blocks,
    describe_verdict,
    render_targets,
)
from unlearned_results import RESULTS, UNLEARNED, A, B, C

NAN = float("nan")


@pytest.mark.parametrize(
    ("q", "significant", "seeds", "verdict"),
    [
        (0.01, True, 2, "significant, q = 0.010"),
        (0.535, False, 2, "not significant, q = 0.535"),
        (NAN, False, 1, "not tested"),
    ],
)
def test_a_verdict_has_its_q(q: float, significant: bool, seeds: int, verdict: str) -> None:
    assert describe_verdict({"q": q, "significant": significant, "n_seeds": seeds}) == verdict


def test_ties_at_0_name_no_source() -> None:
    cells = RESULTS["cells"]
    to_a = cells["target"] == A
    for deltas, words in (
        ((0.0, 0.0), "No source changes the score"),
        ((0.0, -1.0), "No source raises the score"),
    ):
        delta = [deltas[0] if source == B else deltas[1] for source in cells.loc[to_a, "source"]]
        changed = cells.copy()
        changed.loc[to_a, "delta"] = delta
        block, *others = build_target_blocks(RESULTS.replace({"cells": changed}))
        assert block.name == A and block.best == words
        assert all(other.best.startswith("The highest change is ") for other in others)


def test_a_target_without_a_learned_baseline_gets_its_advice_first() -> None:
    first, _, third = build_target_blocks(UNLEARNED)
    assert first.advice.startswith(
        "No source is recommended, because the baseline has not learned its task (score"
    )
    assert third.advice == ""


def test_the_source_that_is_best_on_dev_comes_from_the_table_of_methods() -> None:
    methods = pd.DataFrame(
        {
            "dataset": "DailyDialog",
            "target": A,
            "method": ["transfer", "frozen_logistic"],
            "model": "bert",
            "variant": [f"multitask:{C}", None],
            "score": [49.4, 47.5],
            "low": [38.8, 44.0],
            "high": [60.1, 50.0],
            "recommended": [False, True],
            "delta": [1.9, NAN],
            "delta_low": [-8.8, NAN],
            "delta_high": [12.6, NAN],
            "q": [0.333, NAN],
        }
    )
    block, other, _ = build_target_blocks(RESULTS.replace({"methods": methods}))
    assert block.chosen == (
        "The source with the best dev score is TC (Multitask), which has a test score of 49.4 "
        "[38.8, 60.1]. The score of TC (Multitask) minus the score of frozen embeddings with "
        "logistic regression, the method that the table “Methods” recommends, is +1.9 [−8.8, "
        "+12.6] points (q = 0.333)."
    )
    assert other.chosen == ""
    block, *_ = build_target_blocks(UNLEARNED.replace({"methods": methods}))
    assert block.advice.startswith("No source is recommended, because the baseline has not learned")
    chosen = methods.assign(recommended=[True, False])
    block, *_ = build_target_blocks(UNLEARNED.replace({"methods": chosen}))
    assert block.advice.startswith(
        "A transfer is the recommended method, although the baseline has not learned its task"
    )
    assert block.chosen.endswith(" and is the recommended method.")


def test_an_empty_filter_has_a_message() -> None:
    cells = RESULTS["cells"]
    message = "No source has a significant effect"
    for is_significant in (False, True):
        changed = cells.assign(significant=is_significant)
        html = render_targets(RESULTS.replace({"cells": changed}))
        assert (message in str(html)) is not is_significant


def test_the_filter_of_learned_baselines_is_there_if_it_hides_a_target() -> None:
    assert "only-learned" not in str(render_targets(RESULTS))
    html = str(render_targets(UNLEARNED))
    blocks = [*build_target_blocks(UNLEARNED)]
    count = sum(block.baseline.has_learned for block in blocks)
    assert 0 < count < len(blocks)
    assert f"only targets whose baseline has learned ({count} of {len(blocks)})" in html
    assert len(re.findall(r'<details class="target[^"]* learned"', html)) == count
    assert "No baseline has learned" not in html
    nothing = UNLEARNED["references"].assign(state="not better")
    assert "No baseline has learned" in str(
        render_targets(UNLEARNED.replace({"references": nothing}))
    )


def test_two_filters_that_hide_all_targets_have_a_message() -> None:
    cells = UNLEARNED["cells"]
    message = "No target has both a significant source and a baseline that has learned"
    for target, is_empty in ((A, True), (C, False)):
        changed = cells.assign(significant=cells["target"] == target)
        html = str(render_targets(UNLEARNED.replace({"cells": changed})))
        assert (message in html) is is_empty
