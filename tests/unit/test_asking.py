"""Prompts for language models: every kind of card, and parsing of answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from declared_files import written

from tasktransfer import metrics
from tasktransfer.core.nodes import Evaluation, Outcome
from tasktransfer.core.specs import ModelSpec
from tasktransfer.datasets import ALL_TASKS, build_data_node, get_task, replace_declared_datasets
from tasktransfer.datasets.declared.reader import build_dataset
from tasktransfer.datasets.declared.section import Declaration
from tasktransfer.evaluation.measures import compute_measures
from tasktransfer.evaluation.prompting.model import Likelihood, Unread, truncate_at_stop
from tasktransfer.evaluation.prompting.prompter import TaskPrompter, build_prompter, sample_examples
from tasktransfer.metrics.measures import convert_answers_to_numbers
from tasktransfer.tasks.asking import (
    InstancePrompt,
    Prompt,
    build_prompts,
    compute_wording_digest,
    format_answer,
    get_wordings,
    has_choices,
    list_choice_answers,
    parse_choice,
    parse_generated_answer,
)
from tasktransfer.tasks.card import Instance, MetricSpec, Task, compute_card_digest
from tasktransfer.tasks.card import Prompt as CardPrompt

FIELDS = ("question", "hypothesis", "head", "tail", "query", "entities", "mention", "phrase")
FIELDS = (*FIELDS, "speaker")
OTHER_KINDS = {
    "rating": ("1", "5"),
    "open_labels": (),
    "reply": (),
    "dialogue_classification": ("yes", "no"),
}


def made_up(task: Task, number: int = 0) -> Instance:
    """Build an instance of any task, whose gold answer is its first label or option."""
    query = {name: f"the {name}" for name in FIELDS}
    options = tuple(f"option {n}" for n in range(len(task.labels)))
    if task.kind in ("span", "reply"):
        target: tuple[str, ...] = ("hello",)
    elif task.kind == "multi_output":
        target = (task.labels[number % 2],) * len(task.outputs)
    elif task.kind == "open_labels":
        target = ("a", "b")
    else:
        target = (task.labels[number % len(task.labels)],)
    kept = options if task.kind == "multiple_choice" else ()
    context = f"A: hello {number}. B: goodbye."
    return Instance(f"i{number}", f"d{number}", task.name, context, 0, query, kept, target)


def other_task(kind: str) -> Task:
    labels = OTHER_KINDS[kind]
    metric = MetricSpec("closeness" if kind == "rating" else "accuracy")
    prompt = CardPrompt("how is it:", 5)
    return Task("own", "O", "Own", kind, labels, (metric,), "", prompt, "", "", "")  # type: ignore[arg-type]


@pytest.mark.parametrize("task", ALL_TASKS, ids=lambda task: task.name)
def test_every_task_is_asked_in_two_ways_at_least(task: Task) -> None:
    assert len(task.wordings) >= 2
    assert len({compute_wording_digest(task, wording) for wording in task.wordings}) == len(
        task.wordings
    )
    for wording in get_wordings(task):
        assert {*wording.labels} <= {*task.labels}, "a slip in a label's name"
        assert {*wording.traits} <= {*task.outputs}
        for one in build_prompts(task, wording, made_up(task), [made_up(task, 1)]):
            first, said, last = one.prompt.turns
            assert first.startswith(wording.instruction.split("{")[0])
            assert "A: hello 1." in first
            assert "A: hello 0." in last
            assert said == format_answer(task, wording, made_up(task, 1), one.output)
            assert "{" not in one.prompt.text
            if has_choices(task):
                assert len({*one.choices}) == len(list_choice_answers(task)) == len(task.labels)
                assert said in one.choices
            else:
                assert one.choices == ()


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_cards_without_wordings_are_prompted_too(kind: str) -> None:
    task = other_task(kind)
    for wording in get_wordings(task):
        (one,) = build_prompts(task, wording, made_up(task), [made_up(task, 1)])
        assert "A: hello 0." in one.prompt.text
        assert "{" not in one.prompt.text
    assert len(get_wordings(task)) >= 2
    if kind == "rating":
        assert one.choices == ("1", "2", "3", "4", "5")
    if kind == "dialogue_classification":
        assert "yes or no" in one.prompt.text


def test_wordings_change_no_digest_of_a_card_and_are_that_of_what_asks() -> None:
    task = get_task("DailyDialog", "emotion_recognition")
    other = replace(task.wordings[0], instruction="Say it.")
    assert compute_card_digest(task) == compute_card_digest(replace(task, wordings=(other,)))
    assert compute_wording_digest(task, other) != compute_wording_digest(task, task.wordings[0])


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Entailed", None),
        ("yes", "entailed"),
        (' "No." ', "not entailed"),
        ("**YES**", "entailed"),
        ("yes, because", None),
        ("no no", None),
        ("", None),
    ],
)
def test_a_written_answer_is_a_choice_or_none(text: str, label: str | None) -> None:
    task = get_task("DailyDialog", "causal_emotion_entailment")
    assert parse_choice(task, ("no", "yes"), text) == label


def test_written_texts_are_read() -> None:
    span = get_task("Friends", "question_answering")
    assert parse_generated_answer(span, ' "the sofa" ') == ("the sofa",)
    labels = other_task("open_labels")
    assert parse_generated_answer(labels, "B, none of these, a, b", ("a", "b")) == ("b", "a")
    assert truncate_at_stop("\n the sofa\nA: next", ("\n",)) == "the sofa"


def test_shots_are_drawn_by_seed_from_training() -> None:
    task = get_task("Friends", "emory_emotion_recognition")
    train = [made_up(task, number) for number in range(40)]
    draws = {seed: sample_examples(task, train, 4, seed) for seed in range(4)}
    assert draws[0] == sample_examples(task, train, 4, 0)
    assert len({tuple(one.id for one in draw) for draw in draws.values()}) == 4
    assert sample_examples(task, train[:2], 4, 0) in (tuple(train[:2]), tuple(train[1::-1]))


class OfWords:
    """A model whose tokens are words; the choices in ``liked`` are the most likely."""

    max_length = 60
    gives_likelihoods = True

    def __init__(self, liked: str = "", said: str = "") -> None:
        self.liked, self.said, self.asked = liked, said, list[InstancePrompt]()

    def count_tokens(self, prompt: Prompt) -> int:
        return len(prompt.text.split())

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        words = text.split()
        return " ".join(words[-most:] if keeps == "end" else words[:most]) if most > 0 else ""

    def compute_likelihoods(self, asked: list[InstancePrompt]) -> list[list[Likelihood]]:
        self.asked += asked
        return [[Likelihood(-float(c != self.liked), 1) for c in one.choices] for one in asked]

    def generate(self, prompts: list[Prompt], most: int, stops: object) -> list[str]:
        return [self.said for _ in prompts]

    def get_counts(self) -> dict[str, float]:
        return {}


def test_a_label_that_no_shot_shows_is_scored() -> None:
    task = get_task("Friends", "emory_emotion_recognition")
    shots = [made_up(task, 0), made_up(task, 0)]  # all of them joyful
    how = TaskPrompter(task, task.wordings[0], tuple(shots), OfWords(liked="scared"))
    how.model.max_length = 200
    given = how.prompt_model([made_up(task, 6), made_up(task, 1)])
    assert given.predictions == [("scared",), ("scared",)]
    assert given.ranks == [1, 3]  # of equal ones the first comes first
    assert given.likelihoods == [-0.0, -1.0]


def test_long_dialogues_are_cut_at_the_end_that_the_card_names() -> None:
    model = OfWords()
    emotions = get_task("Friends", "emory_emotion_recognition")
    long = replace(made_up(emotions), context=" ".join(f"w{n}" for n in range(500)))
    how = build_prompter(emotions, {"wording": 1, "shots": 1, "seed": 0}, [long], model)
    (one,) = how.build_prompts(long)
    assert model.count_tokens(one.prompt) <= model.max_length
    assert "w499" in one.prompt.turns[-1]
    assert "w0 " not in one.prompt.text
    first = one.prompt.turns[0].split()
    assert 0 < len(first) <= model.max_length // 2
    beginning = replace(emotions, keeps="beginning")
    assert (
        "w0 " in how.__class__(beginning, how.wording, (), model).build_prompts(long)[0].prompt.text
    )


def test_a_model_that_only_generates_sees_the_choices() -> None:
    task = get_task("DailyDialog", "causal_emotion_entailment")
    model = OfWords(said="Perhaps.")
    model.gives_likelihoods, model.max_length = False, 200
    how = TaskPrompter(task, task.wordings[0], (), model)
    assert "Write one of: no; yes." in how.build_prompts(made_up(task))[0].prompt.text
    given = how.prompt_model([made_up(task), made_up(task, 1)])
    assert given.predictions == [("Perhaps.",)] * 2
    assert given.unreadable == 2
    model.said = "Yes."
    assert how.prompt_model([made_up(task)]).predictions == [("entailed",)]


class Filtered(OfWords):
    """A model whose answers are all unreadable."""

    def compute_likelihoods(self, asked: list[InstancePrompt]) -> list[Unread]:  # type: ignore[override]
        return [Unread("filtered")] * len(asked)

    def generate(self, prompts: list[Prompt], most: int, stops: object) -> list[Unread]:  # type: ignore[override]
        return [Unread("filtered")] * len(prompts)


@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("task", [*ALL_TASKS, *map(other_task, OTHER_KINDS)], ids=lambda t: t.name)
def test_an_unread_answer_of_any_task_is_wrong(task: Task, scores: bool) -> None:
    model = Filtered()
    model.gives_likelihoods, model.max_length = scores, 5000
    instances = [made_up(task, 0), made_up(task, 1)]
    given = TaskPrompter(task, get_wordings(task)[0], (), model).prompt_model(instances, ("a", "b"))
    assert given.unreadable == given.questions == given.reasons["filtered"] > 0
    assert given.likelihoods == given.ranks == [None, None]
    if task.kind in ("reply", "open_labels"):  # made up, with another kind's metric
        return
    golds = [instance.target for instance in instances]
    scored = metrics.score_instances(task, given.predictions, golds)
    assert len(scored) == 2
    if task.kind != "rating":
        assert scored == [0.0, 0.0]
    compute_measures(task, ["score"], given.predictions, golds, [])
    if task.labels:
        assert len(convert_answers_to_numbers(task, given.predictions)) == 2


def test_an_evaluation_says_how_it_asks() -> None:
    model = ModelSpec("smol", "decoder", "served:smol", 100)
    data = build_data_node("DailyDialog", "r1")

    def node(**asked: object) -> Evaluation:
        said = {"shots": 0, "wording": 0, "prompt": "p", **asked}
        outcome = Outcome((), model=model)
        return Evaluation(outcome, data, "dialogue_nli", ("score",), settings={"asked": said})

    digests = {node().digest, node(shots=4, seed=0).digest, node(shots=4, seed=1).digest}
    assert len({*digests, node(wording=1).digest, node(prompt="q").digest}) == 5
    assert node().model_names == ()  # it reads no token ids
    assert "asked-1-with-4-shots" in node(shots=4, wording=1).path


def test_declared_tasks_are_prompted(tmp_path: Path) -> None:
    dataset = build_dataset(
        "Tickets", Declaration.model_validate(written(tmp_path, "json lines")), None
    )
    release = dataset.reader.open(Path(), False)
    for name in release.tasks:
        card = dataset.tasks[name]
        first, second, *_ = release.instances(name, "train")
        for wording in get_wordings(card):
            for one in build_prompts(card, wording, first, [second]):
                assert first.context in one.prompt.turns[-1]
                assert format_answer(card, wording, second, one.output) == one.prompt.turns[1]
                assert len(one.choices) == (len(card.labels) if has_choices(card) else 0)
    replace_declared_datasets(())
