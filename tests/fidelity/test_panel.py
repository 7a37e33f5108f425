"""The panel study compared with the fact sheet: published numbers, data, statistics, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from transformers import RobertaConfig, RobertaModel

from tasktransfer.core.nodes import Merge, Start
from tasktransfer.datasets.dataset import Release
from tasktransfer.designs.panel import leaks
from tasktransfer.designs.panel.published import (
    find_deviating_averages,
    read_correlations,
    read_table,
)
from tasktransfer.designs.panel.sources.cards import AT_HAND, RATED
from tasktransfer.designs.panel.sources.corpora import CORPORA, is_for_training
from tasktransfer.designs.panel.sources.dataset import PANEL_DIALOGUES, REAL
from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.models.adapters import AdapterBank
from tasktransfer.models.parts import replace_parts
from tasktransfer.stats.clustered import compute_williams_test, resample_spearman
from tasktransfer.tasks.card import SPLITS, Instance, compute_fraction

SHARED = Path(__file__).resolve().parents[3] / "shared"
real = pytest.mark.skipif(not (SHARED / "dialogue").is_dir(), reason=f"no data in {SHARED}")


# --- published numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("table", [3, 8])
def test_averages_of_tables_3_and_8_follow_from_their_rows(table: int) -> None:
    assert find_deviating_averages(table, off=0.0051).empty


def test_averages_that_do_not_follow() -> None:
    (graded,) = find_deviating_averages(4).itertuples()
    assert (graded.rater, graded.printed) == ("GRADE+", 32.38)
    assert graded.of_rows == pytest.approx(32.83, abs=0.005)
    five, six = find_deviating_averages(5), find_deviating_averages(6)
    assert (len(five), len(six)) == (10, 5)
    other = five[(five["average"] == "Average (Other)") & (five["rater"] == "PoE-avg, 0 %")]
    assert other["printed"].item() == 43.0
    assert other["of_rows"].item() == pytest.approx(42.30, abs=0.005)
    (reddit,) = (
        find_deviating_averages(6, off=0.0099).query("average == 'Average (Reddit)'").itertuples()
    )  # of a single set
    assert reddit.printed == pytest.approx(reddit.of_rows - 0.01)


def test_one_checkpoint_is_not_the_mean_of_ten_seeds() -> None:
    """PoE-avg is equal in Tables III and VIII, and in V and VI, but not between these pairs."""
    third, eighth = read_correlations(3)["PoE-avg"], read_correlations(8)["PoE-avg"]
    assert all(third[name] == eighth[name] for name in third.index)
    fifth, sixth = read_correlations(5), read_correlations(6)
    shared = [rater for rater in fifth if rater.startswith("PoE-avg")]
    assert fifth[shared].equals(sixth[shared])
    assert fifth.loc["Persona-USR", "PoE-avg, 0 %"] != eighth["Persona-USR"]


# --- the real data ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> Release:
    return REAL.open(SHARED, False)


@pytest.fixture(scope="module")
def rated(release: Release) -> Mapping[str, list[Instance]]:
    return {name: list(release.instances(name, "test")) for name in AT_HAND}


CONTEXTS = {
    "Persona_USR": 60, "Topical_USR": 60, "ConvAI2_GRADE": 258, "DailyDialog_GRADE": 149,
    "Empathetic_GRADE": 147, "DailyDialog_Gupta": 100, "Persona_Zhao": 149,
    "DailyDialog_Zhao": 100, "FED_Turn": 374,
}  # fmt: skip
"""Numbers of contexts in the fact sheet. ConTurE is omitted: its contexts overlap, so dialogues
are resampled."""


@real
@pytest.mark.parametrize("name", [name for name in AT_HAND if name != "Reddit_DSTC7"])
def test_instances_utterances_and_words_of_table_2(
    rated: Mapping[str, list[Instance]], name: str
) -> None:
    items = rated[name]
    printed = read_table("table2").set_index("dataset").loc[RATED[name].published]
    assert len(items) == printed["instances"]
    assert len({one.dialogue_id for one in items}) == CONTEXTS.get(name, 119)
    utterances = np.mean([len(one.turns) + 1 for one in items])
    context = np.mean([len(one.context.split()) for one in items])
    response = np.mean([len(one.query["response"].split()) for one in items])
    if name == "FED_Turn":  # the paper counts the speaker's name before every utterance
        context, response = context + utterances - 1, response + 1
    assert utterances == pytest.approx(printed["utterances"], abs=0.051)
    assert context == pytest.approx(printed["context_words"], abs=0.051)
    wanted = 22.86 if name == "Topical_USR" else printed["response_words"]  # printed: 22.4
    assert response == pytest.approx(wanted, abs=0.051)


@real
def test_ratings_are_means_of_single_ones_on_the_sets_scale(
    rated: Mapping[str, list[Instance]],
) -> None:
    annotators = {}
    for name, items in rated.items():
        card = PANEL_DIALOGUES.tasks[name]
        counts = [len(one.query["ratings"].split()) for one in items]
        annotators[name] = (min(counts), max(counts))
        assert all(0 <= compute_fraction(card, one.target[0]) <= 1 for one in items)
    assert annotators["Persona_USR"] == (3, 3)
    assert annotators["ConvAI2_GRADE"] == (8, 11)
    assert annotators["ConTurE"] == (1, 1)
    assert annotators["FED_Turn"] == (4, 5)  # one annotation is text


@real
def test_reddit_has_10_000_items_of_1_000_contexts(rated: Mapping[str, list[Instance]]) -> None:
    items = rated["Reddit_DSTC7"]
    assert len(items) == 10_000
    assert len({one.dialogue_id for one in items}) == 1_000
    assert len({one.context for one in items}) == 488  # the grounding paragraph, not the dialogue


@real
def test_reddits_rated_paragraphs_are_not_for_training(rated: Mapping[str, list[Instance]]) -> None:
    learnt = {
        one.utterances[0].strip() for one in CORPORA["Reddit"].read(REAL.find_release_files(SHARED))
    }
    left = [one for one in rated["Reddit_DSTC7"] if not is_for_training(one.context)]
    assert (len(learnt), len(left)) == (265, 4_200)
    assert not learnt & {one.context for one in left}


KEPT = {
    "DailyDialog": {"train": (10_809, 10_330), "dev": (1_000, 965)},
    # Two training dialogues and one validation dialogue have one utterance and give no pair.
    # Including them, 19,325 of 19,541 and 2,762 of 2,769 remain.
    "Empathetic": {"train": (19_541 - 2, 19_325 - 2), "dev": (2_769 - 1, 2_762 - 1)},
    "ConvAI2": {"all": (1_000, 487)},
    "TopicalChat": {"all": (2 * 539, 506 + 528)},
    "labeller": {"train": (7_641, 7_345), "dev": (1_028, 1_002), "test": (1_142, 1_107)},
}
LARGE = ("DailyDialog", "Empathetic", "labeller")
"""Corpora with thousands of dialogues."""


@pytest.fixture(scope="module")
def found(rated: Mapping[str, list[Instance]]) -> leaks.LeakFilter:
    ten = {name: items for name, items in rated.items() if name != "Reddit_DSTC7"}
    return leaks.LeakFilter(ten, 6)


@real
@pytest.mark.parametrize(
    "corpus", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in KEPT]
)
def test_dialogues_left_by_the_leak_filter(
    found: leaks.LeakFilter, release: Release, corpus: str
) -> None:
    assert len(found.utterances) == 8_704
    splits = {split: list(release.instances(corpus, split)) for split in SPLITS}
    kept, counts = found.filter_corpus(splits)
    told = {split: (counts[split]["dialogues"], counts[split]["kept"]) for split in SPLITS}
    told["all"] = tuple(map(sum, zip(*told.values(), strict=True)))
    assert {name: told[name] for name in KEPT[corpus]} == KEPT[corpus]
    said = {
        text
        for some in kept.values()
        for texts in leaks.collect_utterances(some).values()
        for text in texts
    }
    assert not said & found.utterances


# --- statistics ---------------------------------------------------------------------------------


def test_williams_example() -> None:
    t, p = compute_williams_test(0.4, 0.5, 0.1, 103)
    assert t == pytest.approx(-0.891, abs=0.0005)
    assert p == pytest.approx(2 * stats.t.sf(0.891, 100), abs=0.001)


def test_williams_holds_its_level() -> None:
    """For two equally good raters, 3.5 to 6.5 % of 2,000 p values are below 0.05."""
    random = np.random.default_rng(0)
    gold = random.normal(size=(2000, 100))
    common = random.normal(size=gold.shape)
    one, other = (gold + common + 1.5 * random.normal(size=gold.shape) for _ in range(2))
    ps = [
        compute_williams_test(
            compute_spearman(a, g), compute_spearman(b, g), compute_spearman(a, b), 100
        )[1]
        for g, a, b in zip(gold, one, other, strict=True)
    ]
    assert 0.035 <= np.mean(np.array(ps) < 0.05) <= 0.065


def test_spearman_equals_scipys_on_tied_data() -> None:
    random = np.random.default_rng(0)
    for levels in (2, 5, 40):
        x, y = random.integers(levels, size=(2, 50)).astype(float)
        wanted = stats.spearmanr(x, y).statistic
        assert compute_spearman(x, y) == pytest.approx(wanted, abs=1e-12)
        drawn = random.integers(50, size=(20, 50))
        weights = np.stack([np.bincount(one, minlength=50) for one in drawn]).astype(np.float32)
        for value, places in zip(resample_spearman(x, y, weights), drawn, strict=True):
            assert value == pytest.approx(stats.spearmanr(x[places], y[places]).statistic)


# --- sizes --------------------------------------------------------------------------------------


class Held:
    """Parts of weights with recorded values."""

    def __init__(self, **parts: list[float]) -> None:
        self.module = nn.ParameterDict({name: torch.tensor(of) for name, of in parts.items()})

    def get_parts(self) -> dict[str, dict[str, nn.Parameter]]:
        return {f"adapter.{name}": {"up": weights} for name, weights in self.module.items()}


@pytest.mark.parametrize(
    ("merged", "by_hand"),
    [("mean", [2.0, 0.0, 1.0]), ("max", [4.0, 3.0, 1.0]), ("min", [1.0, -3.0, 1.0])],
)
def test_merged_experts_by_hand(merged: Merge, by_hand: list[float]) -> None:
    experts = Held(a=[1.0, -3.0, 1.0], b=[1.0, 0.0, 1.0], c=[4.0, 3.0, 1.0])
    model = Held(own=[9.0, 9.0, 9.0])
    starts = [
        (Start(None, "best", (f"adapter.{name}",), ("adapter.own",), merged), experts)
        for name in "abc"
    ]
    replace_parts(model, starts)  # type: ignore[arg-type]
    assert model.module["own"].tolist() == by_hand


def test_an_adapter_of_roberta_base_has_1_789_056_weights() -> None:
    with torch.device("meta"):
        encoder = RobertaModel(RobertaConfig(), add_pooling_layer=False)
    assert (encoder.config.num_hidden_layers, encoder.config.hidden_size) == (12, 768)
    bank = AdapterBank(encoder, ("a",), 16, 0)
    sizes = [sum(p.numel() for p in place.parameters()) for place in bank.banks["a"]]
    assert sizes == [74_544] * 24
    assert sum(sizes) == 1_789_056
