"""The probes' tables and statistics from invented scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planned_presets import PRESETS, plan_preset
from tasktransfer.designs import load_config
from tasktransfer.designs.probes import published
from tasktransfer.designs.probes.claims import correlate_bleu
from tasktransfer.designs.probes.collect import list_probed_rows
from tasktransfer.designs.probes.figures import drop_duplicate_snapshots
from tasktransfer.designs.probes.intervals import build_intervals, gather_classifier_cells
from tasktransfer.designs.probes.printed import (
    average_by_difficulty,
    find_probes_not_above_prior,
    select_snapshots_by_measures,
)
from tasktransfer.designs.probes.substitutes import list_recorded_substitutes, list_substitutes
from tasktransfer.metrics import open_labels
from tasktransfer.metrics.measures import MEASURES
from tasktransfer.results.store import Metadata
from tasktransfer.stats.bootstrap import compute_q_values
from tasktransfer.stats.cells import Scored, score_tallies
from tasktransfer.stats.grouped_correlation import compute_grouped_correlation

PROBES = ("RecentTopic", "AllSlots", "Coin")
REAL = Metadata("s", "0" * 64, False, 1)


def scores(
    snapshots: dict[str, int], models: Iterable[str] = ("LSTM",), seeds: int = 2
) -> pd.DataFrame:
    """Return F1 of 10 times the epoch, and 90 for the coin."""
    return pd.DataFrame(
        [
            ("MultiWOZ", model, name, epoch, seed, probe, 90 if probe == "Coin" else 10 * epoch)
            for (name, epoch), model, seed, probe in itertools.product(
                snapshots.items(), models, range(seeds), PROBES
            )
        ],
        columns=["corpus", "model", "snapshot", "epoch", "seed", "probe", "f1"],
    )


def rounds(values: dict[str, list[float]], models: Iterable[str] = ("LSTM",)) -> pd.DataFrame:
    """Return measure → its value after each epoch, from the untrained model on.

    Both seeds have equal values.
    """
    names = ["bleu2", "bleu2_exchanged", "rouge_l", "meteor", "vectors"]
    count = len(next(iter(values.values())))
    rows = [
        ("MultiWOZ", model, seed, epoch, *(values.get(n, [np.nan] * count)[epoch] for n in names))
        for model, seed, epoch in itertools.product(models, range(2), range(count))
    ]
    return pd.DataFrame(rows, columns=["corpus", "model", "seed", "epoch", *names])


def test_what_the_released_code_selects_by_fills_the_rows_of_bleu() -> None:
    """BLEU-2 is best in epoch 2, which is not probed; the exchanged one is best in epoch 3."""
    told = rounds({"bleu2": [0, 1, 9, 2, 1], "bleu2_exchanged": [0, 1, 2, 9, 1]})
    probed = scores({"untrained": 0, "best": 3, "last": 4})
    chosen = select_snapshots_by_measures(probed, told, "bleu2_exchanged").set_index("probe")
    assert chosen.loc["RecentTopic", "selected_by"] == "BLEU"
    assert chosen.loc["RecentTopic", "f1"] == 30
    assert chosen.loc["RecentTopic", "seeds"] == 2
    groups = average_by_difficulty(chosen.reset_index(), REAL).set_index("groups")["group"]
    assert groups.to_dict() == {"as used": "hard", "as printed": "medium"}


def test_the_published_mean_is_shown_next_to_the_same_probes_only() -> None:
    groups = published.group_probes_as_used()
    every = [("IsMultiTopic" if name == "IsMultiTask" else name) for name in groups]

    def easy(names: list[str]) -> Any:
        chosen = pd.DataFrame({"model": "LSTM", "selected_by": "BLEU", "probe": names, "f1": 50.0})
        table = average_by_difficulty(chosen, REAL).query("groups == 'as used'").set_index("group")
        return table.loc["easy", "published"]

    assert easy(every) == pytest.approx(78.3, abs=5)
    assert pd.isna(easy([name for name in every if name != "RepeatInfo"]))


def test_a_seed_whose_best_epoch_is_the_last_counts_once() -> None:
    frame = scores({"untrained": 0, "best": 4, "last": 4})
    assert len(drop_duplicate_snapshots(frame)) == 2 * 2 * len(PROBES)


def cells(p: list[float], value: float = 5.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "corpus": "MultiWOZ",
            "model": [f"m{n}" for n in range(len(p))],
            "snapshot": "last",
            "probe": "AllSlots",
            "compared_with": "prior",
            "value": value,
            "low": 1.0,
            "high": 9.0,
            "p": p,
        }
    )


@pytest.mark.parametrize(
    ("p", "value", "solved"),
    [
        ([0.04, *[0.9] * 9], 5.0, False),  # the surest of ten by chance
        ([0.004, *[0.9] * 9], 5.0, True),
        ([0.004, *[0.9] * 9], -5.0, False),
        ([float("nan")] * 3, 5.0, False),
    ],
)
def test_the_surest_cell_of_many_has_to_be_surer(
    p: list[float], value: float, solved: bool
) -> None:
    told = find_probes_not_above_prior(cells(p, value))
    assert told.empty == solved
    if not solved:
        assert told["cells"].iloc[0] == len(p)


def test_without_effect_few_probes_are_solved() -> None:
    chance = np.random.default_rng(0)
    frames = [
        cells(chance.uniform(size=10).tolist()).assign(probe=str(n), value=chance.normal(size=10))
        for n in range(2000)
    ]
    share = 1 - len(find_probes_not_above_prior(pd.concat(frames))) / 2000
    assert 0.015 < share < 0.035  # one side of 5 %


# --- intervals ----------------------------------------------------------------------------------


def test_a_difference_says_how_many_seeds_both_have() -> None:
    """Three seeds of the trained model were probed, and one untrained model."""
    frame = scores({"untrained": 0, "last": 1}, seeds=3)
    frame = frame[(frame["probe"] == "AllSlots") & ((frame["epoch"] == 1) | (frame["seed"] == 2))]
    frame["record"] = [f"{row.snapshot}-{row.seed}" for row in frame.itertuples()]
    chance, dialogues = np.random.default_rng(0), [f"d{place // 2}" for place in range(40)]
    of = MEASURES["micro_f1"]

    def scored(share: float) -> Scored:
        right = chance.random(40) < share
        tallies = np.stack([right, np.ones(40), np.ones(40)], axis=1)
        return score_tallies(
            tallies, dialogues, lambda s: 100 * open_labels.compute_micro_f1(s), of
        )

    shares = {"": 0.8, "+prior": 0.2, "+shuffled": 0.4}
    told = {
        record: {f"MultiWOZ_AllSlots{end}": scored(share) for end, share in shares.items()}
        for record in frame["record"]
    }
    found = build_intervals(gather_classifier_cells(told, frame))
    found = found.set_index(["snapshot", "compared_with"])
    assert found["seeds"].to_dict() == {
        ("untrained", "nothing"): 1, ("last", "nothing"): 3,
        ("untrained", "prior"): 1, ("untrained", "shuffled"): 1,
        ("last", "prior"): 3, ("last", "shuffled"): 3, ("last", "untrained"): 1,
    }  # fmt: skip
    one, other = (told[name]["MultiWOZ_AllSlots"].score for name in ("last-2", "untrained-2"))
    assert found.loc[("last", "untrained"), "value"] == pytest.approx(one - other)
    assert found["p"].isna().tolist() == (found.index.get_level_values(1) == "nothing").tolist()
    for against in ("prior", "shuffled", "untrained"):
        some = found.xs(against, level=1)
        several = some[some["seeds"] > 1]
        assert several["q"].tolist() == pytest.approx(compute_q_values(several["p"]).tolist())
        assert some.loc[some["seeds"] < 2, "q"].isna().all(), "one training is not tested"


# --- the claim ----------------------------------------------------------------------------------


def models(within: float, count: int = 5) -> list[list[np.ndarray[Any, Any]]]:
    """Return scores that correlate between models, and within each model as ``within`` sets it."""
    path = np.arange(4) / 100
    return [
        [np.stack([m + path + s / 1e4, m + within * path + s / 1e4], 1) for s in range(3)]
        for m in range(count)
    ]


def test_between_and_within_models_are_distinguished() -> None:
    told = models(-1.0)
    assert compute_grouped_correlation(told, "between").value == pytest.approx(1)
    assert compute_grouped_correlation(told, "within").value < -0.85
    whole = compute_grouped_correlation(told, "all")
    assert whole.points == 60
    assert whole.value > 0.9
    assert np.isnan([whole.low, whole.high]).all()  # without any model it stays the same
    uneven = compute_grouped_correlation([*told[:4], models(-200.0, 9)[8]], "all")
    assert uneven.low < uneven.value < uneven.high < 1
    few = compute_grouped_correlation(told[:3], "all")
    assert np.isnan([few.low, few.high]).all()


def test_models_are_left_out_whole_not_points() -> None:
    """Twenty equal points per model are as informative as one."""
    chance = np.random.default_rng(0)
    means = chance.normal(size=(6, 2))
    once = compute_grouped_correlation([[m[None]] for m in means], "all")
    often = compute_grouped_correlation([[np.repeat(m[None], 20, 0)] for m in means], "all")
    assert (often.low, often.high) == pytest.approx((once.low, once.high), abs=0.05)
    equal = compute_grouped_correlation([[np.array([[n, n]], float)] for n in range(5)], "between")
    assert np.isnan([equal.low, equal.high]).all()


def test_the_interval_of_a_correlation_holds_the_true_value() -> None:
    """Five unrelated models; the points of each are correlated."""
    chance = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        means = chance.normal(size=(5, 1, 1, 2))
        told = compute_grouped_correlation(
            [*(means + 0.3 * chance.normal(size=(5, 2, 3, 2)))], "all"
        )
        held += told.low <= 0 <= told.high
    assert 0.90 < held / 300 < 0.99


def test_the_coin_is_in_no_mean() -> None:
    names = ("a", "b", "c", "d")
    frame = scores({"untrained": 0, "epoch 1": 1, "epoch 2": 2, "last": 3}, names)
    told = rounds({"bleu2": [0, 1, 2, 3]}, names)
    table = pd.DataFrame(correlate_bleu(frame, told))
    means = table[(table[1] == "all")].set_index(2)
    assert means.loc["all", 4] == pytest.approx(1)
    assert np.isnan(table[(table[1] == "Coin") & (table[2] == "all")][4].iloc[0])
    assert means.loc["trained", 3] == 4 * 2 * 3
    assert set(means.index) == {"all", "trained", "between", "within", *names}


# --- snapshots ----------------------------------------------------------------------------------


def chosen_7(stage: Any) -> dict[str, Any]:
    return {"select_on": stage.select_on, "round": 7, "dev_score": 1.0}


def test_where_all_epochs_are_probed_the_best_one_has_its_name_too() -> None:
    """Without a separate fit, because its weights are those of an epoch."""
    every, planned = plan_preset("probes", probes={"snapshots": "all"}, seeds=1)
    names = ("micro_f1", "prior_f1", "shuffled_f1", "selectivity", "minority_f1")
    measures = dict.fromkeys((*names, "classes", "train_rows"), 1.0)
    task = "_".join(AT)
    told: Any = {
        fit.digest: {
            "results": {
                task: {
                    "measures": {**measures, "micro_f1": fit.on.at if fit.on else 0.0},
                    "instances": 1,
                }
            }
        }
        for fit in planned.fits
    }
    rounds = [{"round": n, "dev": {}} for n in range(1, 8)]
    best: Any = {
        stage.digest: {"training": {"rounds": rounds, "selections": [chosen_7(stage)]}}
        for stage in planned.stages
    }
    runs = [run for run in planned.runs if (run.about["corpus"], run.about["probe"]) == AT]
    rows = pd.DataFrame(list_probed_rows(every, runs, {**best, **told}))
    by_model = rows[rows[2] == "best"]
    assert len(by_model) == 5
    assert set(by_model[3]) == set(by_model[6]) == {7}
    assert len(rows) == 5 * (26 + 1) + 1


AT = ("MultiWOZ", "AllSlots")


# --- substitutes --------------------------------------------------------------------------------


def config(release: Path) -> Any:
    return load_config(PRESETS / "probes.yaml", {"data": {"release": str(release)}})


def test_a_training_set_that_is_available_has_no_substitute(tmp_path: Path) -> None:
    for name in ("multiwoz20", "convai2"):
        (tmp_path / name).mkdir()
    assert {"the training set of MultiWOZ", "the training set of PersonaChat"} <= {
        *list_substitutes(config(tmp_path))
    }
    (tmp_path / "multiwoz20" / "train.json.zip").touch()
    (tmp_path / "convai2" / "train_self_original_no_cands.txt").touch()
    assert [*list_substitutes(config(tmp_path))] == ["the authors' labels"]


def test_a_generated_world_has_none(tmp_path: Path) -> None:
    (tmp_path / "multiwoz20").mkdir()
    (tmp_path / "multiwoz20" / "synthetic.json").touch()
    one = load_config(
        PRESETS / "probes.yaml", {"data": {"release": str(tmp_path)}, "corpora": ["MultiWOZ"]}
    )
    assert list_substitutes(one) == {}  # type: ignore[arg-type]


def test_without_the_dialogues_the_records_say_what_stood_in(tmp_path: Path) -> None:
    recorded = [{"the training set of MultiWOZ": "the other sets, split at random"}]
    told = list_recorded_substitutes(
        config(tmp_path / "gone"), recorded, frozenset({"PersonaChat"})
    )
    assert [*told] == ["the training set of MultiWOZ", "the authors' labels"]
