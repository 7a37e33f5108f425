"""The panel's data: pairs, labels, leaks, and messages about refusals."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasktransfer import datasets
from tasktransfer.data.cache import cache_dataset
from tasktransfer.data.recipes import Ingredients
from tasktransfer.designs.panel import leaks, pairs, ratings, selection
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.designs.panel.sources.cards import TINY_RATED
from tasktransfer.designs.panel.sources.dataset import PANEL_TINY, TINY_WORLD
from tasktransfer.designs.panel.sources.pair_instances import FITS, FITS_NOT, make_instance
from tasktransfer.designs.panel.sources.rated import read_rated_set
from tasktransfer.designs.panel.sources.texts import join_utterances, normalise_text, split_context
from tasktransfer.errors import DataError
from tasktransfer.tasks.card import SPLITS, Instance

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def known() -> None:
    datasets.add_dataset(PANEL_TINY)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    tiny.write_release(tmp_path / "world", 0, 120)
    return tmp_path / "world"


def rows_of(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text().splitlines()]


def changed(file: Path, change: Callable[[Rows], None]) -> None:
    rows = rows_of(file)
    change(rows)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def ingredients(world: Path, judge: Any = None, **settings: Any) -> Ingredients:
    cache = world.parent / "cache"
    cache_dataset("PanelTiny", world, False, cache)
    told = {
        "domains": ["Harbour", "Orchard"], "train": 40, "dev": 10, "made": 2.0, "sure": 0.9,
        "seed": 0, "labels": "labeller" if judge else "made", "everything": "tiny_everything",
        "labeller": "tiny_labeller", "given": "tiny_given_labels",
    }  # fmt: skip
    judges = (judge,) if judge else ()
    return Ingredients((cache,), (), (), (), {**told, **settings}, judges)


FIRST = tuple(text.split()[0] for text in tiny.REPLIES)


def by_order(task: str, instances: Sequence[Instance]) -> list[float]:
    """Label pairs by the first word only."""
    return [0.95 if one.query["response"].startswith(FIRST) else 0.04 for one in instances]


# --- texts --------------------------------------------------------------------------------------


def test_texts_are_compared_without_case_and_marks() -> None:
    assert normalise_text("I'm SO glad -- really_!") == normalise_text("i 'm so glad really")


def test_a_context_is_its_utterances_again() -> None:
    said = ("How are you?", "Fine.", "And you?")
    assert split_context(*join_utterances(said)) == said


# --- perturbations ------------------------------------------------------------------------------


@pytest.fixture
def given() -> pairs.PerturbationInput:
    others = [
        make_instance("d", f"{n}", f"dialogue {n}", ["a strange thing"], f"reply {n}", FITS)
        for n in range(5)
    ]
    return pairs.PerturbationInput(("one two three",), "a b c d e f g h i j", others, "dialogue 0")


def test_perturbations_by_their_rules(given: pairs.PerturbationInput) -> None:
    for seed in range(200):
        chance = random.Random(seed)
        words = given.response.split()
        assert 5 <= len(pairs.drop_response_words(given, chance).split()) <= 9
        assert sorted(pairs.shuffle_response_words(given, chance).split()) == words
        repeated = pairs.repeat_response_words(given, chance).split()
        assert 11 <= len(repeated) <= 15
        assert list(dict.fromkeys(repeated)) == words
        assert pairs.sample_response(given, chance) in {f"reply {n}" for n in range(1, 5)}
        assert {*pairs.perturb_context_utterance(given, chance).split()} <= {"one", "two", "three"}
        filled = pairs.mask_and_fill(given, chance).split()
        changed = [new for old, new in zip(words, filled, strict=True) if old != new]
        assert len(changed) == 1  # 15 % of ten words
        short = replace(given, response="a b c d e f")  # of six words it is less than one
        assert pairs.mask_and_fill(short, chance) == short.response
        assert changed[0] in {"a", "strange", "thing"}


def test_pairs_carry_how_they_were_made_and_are_balanced(world: Path) -> None:
    derived = pairs.build_training_pairs(ingredients(world))
    for domain in ("Harbour", "Orchard"):
        made = derived[domain, "train"]
        assert len(made) == 40
        assert sum(one.target == (FITS,) for one in made) == 20
        hows = {one.query["how"] for one in made}
        assert hows <= {"true", *pairs.PERTURBATIONS}
        assert len(hows) > 4
    together = derived["tiny_everything", "train"]
    assert len(together) == 80
    assert {one.task for one in together} == {"tiny_everything"}


def test_pairs_are_the_same_for_the_same_seed_alone(world: Path) -> None:
    one, same = (pairs.build_training_pairs(ingredients(world)) for _ in range(2))
    other = pairs.build_training_pairs(ingredients(world, seed=1))
    assert one == same
    assert one["Harbour", "train"] != other["Harbour", "train"]


def test_the_report_counts_what_was_made_kept_and_relabelled(world: Path) -> None:
    told = ingredients(world, by_order)
    pairs.build_training_pairs(told)
    report = told.report
    assert report["Harbour train true"]["made"] == 40
    assert report["Harbour train random_utterance"]["relabelled"] > 0  # they begin as true ones do
    assert report["Harbour train true"]["relabelled"] == 0
    every = sum(of["made"] for name, of in report.items() if name.startswith("Harbour train "))
    assert 70 < every < 75  # of five words none is 15 %, so that nothing is masked there


def test_a_pair_without_a_confident_label_is_dropped() -> None:
    one = make_instance("d", "1", "1", ["context"], "reply", FITS)
    kept = pairs.label_pairs([one] * 4, [0.95, 0.5, 0.05, 0.89], 0.9)
    assert [each.target if each else None for each in kept] == [(FITS,), None, (FITS_NOT,), None]


def test_labels_that_are_given_take_the_labellers_place(world: Path) -> None:
    asked = ingredients(world)
    (world / "probabilities").mkdir()
    for domain in ("Harbour", "Orchard"):
        rows = [
            {
                "context": list(split_context(one.context, one.turns)),
                "response": one.query["response"],
                "probability": by_order("", [one])[0],
            }
            for split in ("train", "dev")
            for one in pairs.build_pairs(asked.caches[0], domain, split, asked.settings)[0]
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (world / "probabilities" / f"{domain}.jsonl").write_text(lines)
    given = pairs.build_training_pairs(ingredients(world, labels="given"))
    assert given == pairs.build_training_pairs(ingredients(world, by_order))
    changed(world / "probabilities" / "Orchard.jsonl", lambda rows: rows.clear())
    with pytest.raises(DataError, match=r"probabilities/Orchard\.jsonl: The file lacks .* pairs"):
        pairs.build_training_pairs(ingredients(world, labels="given"))


def test_no_perturbed_response_is_the_true_one() -> None:
    short = [make_instance("d", f"{n}", f"{n}", ["Really?"], "Yes.", FITS) for n in range(20)]
    made = pairs.generate_candidates(short, 40, random.Random(0))
    assert {one.query["response"] for one in made if one.target == (FITS_NOT,)} <= {
        "Yes. Yes.", "Really? Really?", "Really?",
    }  # fmt: skip


# --- bad pairs and labels -----------------------------------------------------------------------


def test_a_domain_with_fewer_pairs_than_requested_is_reported(world: Path) -> None:
    told = ingredients(world, train=10_000)
    made = pairs.build_training_pairs(told)
    assert told.report["Harbour train"]["requested"] == 10_000
    assert told.report["Harbour train"]["pairs"] == len(made["Harbour", "train"]) < 200


@pytest.mark.parametrize(
    ("probability", "told"),
    [
        (
            lambda one: 0.99,
            r"Harbour, train: All \d+ remaining pairs have.*Raise pairs",
        ),
        (
            lambda one: 0.6,
            r"Harbour, train: No label reaches the probability pairs\.min_prob.*Lower pairs\.min_",
        ),
        (
            lambda one: 0.01 if one.target == (FITS,) else 0.99,
            r"Harbour, train: All \d+ labels are the opposite of the labels.*Correct",
        ),
    ],
)
def test_labels_that_are_of_no_use(
    world: Path, probability: Callable[[Instance], float], told: str
) -> None:
    def judge(task: str, instances: Sequence[Instance]) -> list[float]:
        return [probability(one) for one in instances]

    with pytest.raises(DataError, match=told):
        pairs.build_training_pairs(ingredients(world, judge))


# --- bad ratings --------------------------------------------------------------------------------

SET = "ratings/Harbour_Tiny.jsonl"


def rated(world: Path) -> None:
    files = TINY_WORLD.find_release_files(world)
    read_rated_set(TINY_RATED["Harbour_Tiny"], files)


def put(key: str, value: Any) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[3][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            put("ratings", [3, "good"]),
            ":4: Rating 'good' is not a number. Write a number, or remove",
        ),
        (put("ratings", [3, float("nan")]), ":4: Rating nan is not a number"),
        (put("ratings", []), ":4: The row has no rating. Add a rating, or remove"),
        (
            put("ratings", [7]),
            ":4: The rating 7 is not on the scale from 1 to 5. Correct the rating",
        ),
        (put("response", "  "), ":4: The response is empty. Write the response, or remove"),
        (put("context", [" "]), ":4: The context is empty"),
        (put("context_id", ""), ":4: The context has no ID, but confidence intervals"),
        (lambda rows: rows[3].pop("context_id"), ":4: The key .context_id. is missing"),
        (
            lambda rows: rows.append(rows[3]),
            r"same context, response and ratings as .*\.jsonl:4. Keep",
        ),
    ],
)
def test_ratings_that_cannot_be(world: Path, change: Callable[[Rows], None], told: str) -> None:
    rated(world)
    changed(world / SET, change)
    with pytest.raises(DataError, match=rf"Harbour_Tiny\.jsonl.*{told}"):
        rated(world)


def test_a_line_that_is_not_json_is_named(world: Path) -> None:
    with (world / SET).open("a") as file:
        file.write("{oops\n")
    with pytest.raises(DataError, match=r"Harbour_Tiny\.jsonl:\d+: The text is not valid JSON"):
        rated(world)


def test_constant_ratings_are_refused_since_nothing_correlates_with_them(world: Path) -> None:
    def constant(rows: Rows) -> None:
        for row in rows:
            row["ratings"] = [3]

    changed(world / SET, constant)
    told = ingredients(world, sets=["Harbour_Tiny"], task="tiny_all_ratings")
    with pytest.raises(
        DataError, match=r"Harbour_Tiny\.jsonl: All \d+ .* rating 3.*from rated_sets"
    ):
        ratings.join_rated_sets(told)


def test_too_few_ratings_to_learn_from(world: Path) -> None:
    changed(world / SET, lambda rows: rows.__delitem__(slice(20, None)))
    told = ingredients(world, task="Harbour_Tiny", percent=10, by="items", draw=0)
    with pytest.raises(
        DataError, match=r"10 % of 20 items gives two halves of 1.*few_shot\.percentages"
    ):
        ratings.sample_few_ratings(told)


# --- few ratings, choices -----------------------------------------------------------------------


def test_few_ratings_are_halved_and_marked(world: Path) -> None:
    told = ingredients(world, task="Harbour_Tiny", percent=40, by="items", draw=1)
    derived = ratings.sample_few_ratings(told)
    train, dev, test = (derived["Harbour_Tiny", split] for split in SPLITS)
    every = len(test)
    assert len(train) == len(dev) == round(0.2 * every)
    drawn = {one.id for one in (*train, *dev)}
    assert len(drawn) == len(train) + len(dev)
    assert {
        one.id.removesuffix(ratings.DRAWN) for one in test if one.id.endswith(ratings.DRAWN)
    } == drawn
    asked = {"task": "Harbour_Tiny", "percent": 40, "by": "items", "draw": 2}
    again = ratings.sample_few_ratings(ingredients(world, **asked))
    assert again["Harbour_Tiny", "train"] != train


def test_items_that_are_not_drawn_share_no_context_with_those_that_are(world: Path) -> None:
    asked = {"task": "Harbour_Tiny", "percent": 40, "draw": 1}
    shared = {}
    for by in ("contexts", "items"):
        derived = ratings.sample_few_ratings(ingredients(world, **asked, by=by))
        train, dev, test = (derived["Harbour_Tiny", split] for split in SPLITS)
        every = len(test)
        assert round(0.2 * every) <= len(train) < round(0.2 * every) + tiny.RESPONSES
        contexts = {one.dialogue_id for one in (*train, *dev)}
        held = [one for one in test if not one.id.endswith(ratings.DRAWN)]
        shared[by] = sum(one.dialogue_id in contexts for one in held)
    assert shared["contexts"] == 0
    assert shared["items"] > 0.5 * every * 0.6


def test_the_true_response_is_among_others_of_its_split(world: Path) -> None:
    settings: Mapping[str, Any] = {
        "domain": "Harbour", "candidates": 10, "limit_train": 10, "limit_test": None,
        "task": "tiny_response_selection",
    }  # fmt: skip
    by_persona = {
        name: selection.build_selection_choices(ingredients(world, persona=name, **settings))
        for name in ("none", "original")
    }
    test = by_persona["none"]["tiny_response_selection", "test"]
    groups: dict[str, list[Instance]] = {}
    for one in test:
        groups.setdefault(one.dialogue_id, []).append(one)
    assert len(groups) == 18  # of 120 dialogues' test split, one reply each
    for some in groups.values():
        assert [one.target for one in some] == [(FITS,)] + [(FITS_NOT,)] * 9
        assert len({one.query["response"] for one in some}) == 10
    told = by_persona["original"]["tiny_response_selection", "test"]
    assert all("." in one.context.split(" I ")[0] for one in told)
    assert [one.query["response"] for one in told] == [one.query["response"] for one in test]
    settings = {**settings, "domain": "Orchard", "persona": "original"}
    with pytest.raises(DataError, match=r"Orchard, train: No dialogue has a persona .*personas"):
        selection.build_selection_choices(ingredients(world, **settings))


# --- leaks --------------------------------------------------------------------------------------

LONG = "we always leave the old violin at home"


def test_a_planted_leak_is_found_and_dropped(world: Path) -> None:
    settings = {
        "tasks": ["Harbour", "tiny_labeller"],
        "against": ["Harbour_Tiny", "Market_Tiny"],
        "words": 6,
    }
    changed(world / "Harbour" / "train.jsonl", lambda rows: rows[5]["utterances"].append(LONG))
    changed(world / "ratings" / "Market_Tiny.jsonl", put("response", f"{LONG.upper()}!"))
    told = ingredients(world, **settings)
    derived = leaks.filter_leaks(told)
    assert "Harbour-train-5" not in {one.dialogue_id for one in derived["Harbour", "train"]}
    assert told.report["Harbour train"] == {"dialogues": 84, "kept": 83}
    assert told.report["Harbour against Market_Tiny"] == {"dialogues": 1, "items": 1}
    assert told.report["Harbour against Harbour_Tiny"] == {"dialogues": 0, "items": 0}
    kept = leaks.filter_leaks(ingredients(world, **settings, drop=False))
    assert "Harbour-train-5" in {one.dialogue_id for one in kept["Harbour", "train"]}
    longer = leaks.filter_leaks(ingredients(world, **{**settings, "words": 9}))
    assert longer["Harbour", "train"] == kept["Harbour", "train"]


def test_a_corpus_that_leaks_whole_is_refused(world: Path) -> None:
    def leaky(rows: Rows) -> None:
        for row in rows:
            row["utterances"].append(LONG)

    changed(world / "Harbour" / "dev.jsonl", leaky)
    changed(world / SET, put("response", LONG))
    with pytest.raises(DataError, match=r"Harbour, dev: Every dialogue .*data\.leaks\.min_words"):
        leaks.filter_leaks(ingredients(world, tasks=["Harbour"], against=["Harbour_Tiny"], words=6))
