"""Truncation of inputs that are too long, and the positions of labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encode import count_long_answers, list_truncation_warnings
from tasktransfer.encoding.encoded import IGNORED_LABEL, Example, read_split, write_split
from tasktransfer.encoding.encoder_examples import build_encoder_examples, measure_longest_span
from tasktransfer.encoding.text import build_text_to_text_examples
from tasktransfer.errors import ModelError
from tasktransfer.tasks.card import Instance, Task, find_mentions
from tasktransfer.training.tiny import create_tokenizer

OLD = " ".join(f"speaker{1 + i % 2}: old words number {i}" for i in range(40))
TARGET = "speaker1: the target utterance is here"
TEXTS = [OLD, TARGET, "context: emotion: question: answer: Which option is the best response?"]


@pytest.fixture(scope="module")
def tokenizers() -> dict[Family, Any]:
    made = {family: create_tokenizer(family, TEXTS * 20) for family in FAMILIES}
    for tokenizer in made.values():
        tokenizer.truncation_side = "left"
    return made


def instance(task: Task, *target: str, question: str = "", **fields: Any) -> Instance:
    query = {"question": question} if question else {}
    usual = Instance("i1", "d1", task.name, f"{OLD} {TARGET}", len(OLD) + 1, query, (), target)
    return replace(usual, **fields)


def encoder_example(
    tokenizers: dict[Family, Any], task: Task, row: Instance, longest: int
) -> Example:
    return next(build_encoder_examples(tokenizers["encoder"], task, [row], longest))


def test_an_encoder_keeps_the_target_utterance_and_loses_the_oldest_turns(
    tokenizers: dict[Family, Any],
) -> None:
    task = get_task("DailyDialog", "emotion_recognition")
    example = encoder_example(tokenizers, task, instance(task, "anger"), 32)
    text = tokenizers["encoder"].decode(example.sequences[0], skip_special_tokens=True)
    assert len(example.sequences[0]) == 32
    assert text.endswith("the target utterance is here")
    assert "number 0" not in text
    assert example.labels == [task.labels.index("anger")]


@pytest.mark.parametrize(
    ("dataset", "name", "query"),
    [
        ("DailyDialog", "emotion_recognition", {}),
        ("Friends", "character_identification", {"mention": "words"}),
    ],
)
@pytest.mark.parametrize("keeps", ["end", "both"])
@pytest.mark.parametrize("longest", [8, 48, 1000])
def test_the_first_token_of_the_labelled_turn_is_located(
    tokenizers: dict[Family, Any],
    dataset: str,
    name: str,
    query: dict[str, str],
    keeps: Any,
    longest: int,
) -> None:
    card = get_task(dataset, name)
    task = replace(card, keeps=keeps, query=card.query and "{mention}")
    row = instance(task, card.labels[0], query=query)
    example = encoder_example(tokenizers, task, row, longest)
    (start,) = example.turn_starts
    turn = tokenizers["encoder"].decode(example.sequences[0][start:], skip_special_tokens=True)
    expected = TARGET.replace(" ", "")
    assert turn.replace(" ", "") == expected if longest > 8 else expected.endswith(turn[-4:])


def test_tasks_that_label_dialogues_have_no_labelled_turn(tokenizers: dict[Family, Any]) -> None:
    task = get_task("DailyDialog", "dialogue_nli")
    row = instance(task, "entailment", query={"hypothesis": "old"}, focus=len(f"{OLD} {TARGET}"))
    assert encoder_example(tokenizers, task, row, 48).turn_starts == []


def test_a_turn_that_truncation_removes_has_no_tokens(tokenizers: dict[Family, Any]) -> None:
    task = replace(get_task("DailyDialog", "emotion_recognition"), keeps="beginning")
    assert encoder_example(tokenizers, task, instance(task, "anger"), 32).turn_starts == [0]


def test_an_encoder_keeps_question_and_options_whole(tokenizers: dict[Family, Any]) -> None:
    task = get_task("DailyDialog", "adversarial_response_selection")
    options = ("old words", "the target utterance", "here is the best option")
    row = instance(task, "2", question="Which option is the best response?", options=options)
    example = encoder_example(tokenizers, task, row, 40)
    for option, ids, second in zip(options, example.sequences, example.second_starts, strict=True):
        query = tokenizers["encoder"].decode(ids[:second], skip_special_tokens=True)
        assert query.replace(" ", "") == f"whichoptionisthebestresponse?{option}".replace(" ", "")
        assert len(ids) == 40
    assert example.labels == [2]


def test_a_query_longer_than_the_model_is_cut_only_then(tokenizers: dict[Family, Any]) -> None:
    task = get_task("DailyDialog", "dialogue_nli")
    rows = [instance(task, "entailment", query={"hypothesis": h}) for h in ("old words", OLD)]
    examples = list(build_encoder_examples(tokenizers["encoder"], task, rows, 24))
    assert [len(example.sequences[0]) for example in examples] == [24, 24]


@pytest.mark.parametrize("longest", [24, 400])
def test_span_labels_point_at_the_answer_in_the_original_text(
    tokenizers: dict[Family, Any], longest: int
) -> None:
    task = get_task("DailyDialog", "dialogue_reasoning_span_extraction")
    context = f"{OLD} {TARGET}"
    start = context.index("target utterance")
    row = instance(task, "target utterance", question="Which?", starts=(start,))
    example = encoder_example(tokenizers, task, row, longest)
    first, last = example.labels
    assert context[example.offsets[2 * first] : example.offsets[2 * last + 1]] == "target utterance"


@pytest.mark.parametrize(
    ("answer", "start", "label"), [("old words", 10, IGNORED_LABEL), ("Impossible answer", -1, 0)]
)
def test_an_answer_that_was_cut_away_or_is_missing(
    tokenizers: dict[Family, Any], answer: str, start: int, label: int
) -> None:
    """The first is not trained on. An unanswerable question points at the first token."""
    task = get_task("DailyDialog", "causal_emotion_span_extraction")
    row = instance(task, answer, question="Why?", starts=(start,))
    assert encoder_example(tokenizers, task, row, 24).labels == [label, label]


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_text_to_text_keeps_prompt_and_target_utterance(
    tokenizers: dict[Family, Any], family: Family
) -> None:
    task = get_task("DailyDialog", "emotion_recognition")
    tokenizer = tokenizers[family]
    row = instance(task, "anger")
    example = next(build_text_to_text_examples(tokenizer, task, [row], 60, family, 8))
    text = tokenizer.decode(example.sequences[0], skip_special_tokens=True)
    assert text.startswith("context: ")
    assert text.endswith("the target utterance is here emotion:")
    assert "number 0" not in text
    assert len(example.sequences[0]) == (52 if family == "decoder" else 60)
    assert example.labels[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(example.labels[:-1]).strip() == "anger"


def test_a_prompt_that_cannot_fit_is_refused(tokenizers: dict[Family, Any]) -> None:
    task = get_task("DailyDialog", "dialogue_reasoning_span_extraction")
    row = instance(task, "old", question=OLD, starts=(10,))
    with pytest.raises(ModelError, match=r"i1.*Raise the model's max_length"):
        next(build_text_to_text_examples(tokenizers["decoder"], task, [row], 40, "decoder", 8))


def test_traits_are_asked_one_by_one_of_text_to_text_models(tokenizers: dict[Family, Any]) -> None:
    task = get_task("Friends", "personality_detection")
    row = instance(task, *"10101", query={"speaker": "Ross"})
    examples = list(
        build_text_to_text_examples(tokenizers["decoder"], task, [row], 200, "decoder", 12)
    )
    assert [example.output for example in examples] == [0, 1, 2, 3, 4]
    answers = [tokenizers["decoder"].decode(example.labels[:-1]).strip() for example in examples]
    assert answers == ["true", "false", "true", "false", "true"]
    encoder = encoder_example(tokenizers, task, row, 64)
    assert encoder.labels == [1, 0, 1, 0, 1]


def test_a_split_keeps_the_dialogues_of_its_instances(tmp_path: Path) -> None:
    examples = [Example(i, 0, [[1]], [1], [0], []) for i in range(3)]
    instances = [(f"i{i}", f"d{i // 2}", ("anger",), "") for i in range(3)]
    write_split(tmp_path, "emotion_recognition", "test", examples, instances)
    split = read_split(tmp_path, "emotion_recognition", "test")
    assert split.dialogue_ids == ["d0", "d0", "d1"]
    kept = split.limit_instances(2)
    assert kept.dialogue_ids == [f"d{int(name[1:]) // 2}" for name in kept.ids]


def test_a_split_encoded_before_dialogues_were_kept_is_read(tmp_path: Path) -> None:
    example = Example(0, 0, [[1]], [1], [0], [])
    write_split(tmp_path, "emotion_recognition", "test", [example], [("i", "d", ("anger",), "")])
    file = tmp_path / "emotion_recognition-test.instances.arrow"
    rows = pa.ipc.open_stream(file.read_bytes()).read_all().drop_columns(["dialogue_id"])
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    assert read_split(tmp_path, "emotion_recognition", "test").dialogue_ids == [None]


# --- kept and lost answers ------------------------------------------------------------------------


def test_any_mention_that_the_input_holds_is_the_label(tokenizers: dict[Family, Any]) -> None:
    """Reading comprehension: the first mention is truncated, but a later one is an answer too."""
    task = get_task("Friends", "reading_comprehension")
    context = f"Words: the target {OLD} utterance: is here Words"
    query = {"query": "Which?", "entities": "words"}
    where = {"context": context, "focus": len(context), "starts": (0,)}
    row = instance(task, "words", query=query, **where)
    example = encoder_example(tokenizers, task, row, 40)
    first, last = example.labels
    start, end = example.offsets[2 * first], example.offsets[2 * last + 1]
    assert context[start:end].lower() == "words"
    assert start == next(m for m in find_mentions("words", context) if m >= kept_from(example))


def kept_from(example: Example) -> int:
    """Return the first character of the context that the input contains."""
    return min(edge for edge in example.offsets[::2] if edge >= 0)


def test_a_name_is_mentioned_as_whole_words_only() -> None:
    assert find_mentions("ross", "Ross: Rossi and ross. crossing ROSS") == [0, 16, 31]
    assert find_mentions("a.b", "axb a.b") == [4]


@pytest.mark.parametrize("family", FAMILIES)
def test_question_answering_keeps_the_beginning(
    tokenizers: dict[Family, Any], family: Family
) -> None:
    task = get_task("Friends", "question_answering")
    row = instance(task, "speaker1", question="Which option?", focus=len(OLD), starts=(0,))
    if family == "encoder":
        example = encoder_example(tokenizers, task, row, 40)
    else:
        example = next(build_text_to_text_examples(tokenizers[family], task, [row], 60, family, 8))
    text = tokenizers[family].decode(example.sequences[0], skip_special_tokens=True)
    assert "number 0" in text
    assert "the target utterance" not in text
    assert "Which option?".casefold() in text.casefold()


def test_the_input_of_a_decoder_depends_on_no_answer(tokenizers: dict[Family, Any]) -> None:
    task = get_task("DailyDialog", "dialogue_reasoning_span_extraction")
    rows = [instance(task, text, question="Which?", starts=(0,)) for text in ("here", OLD)]
    short, long = build_text_to_text_examples(tokenizers["decoder"], task, rows, 60, "decoder", 8)
    assert short.sequences == long.sequences
    assert len(short.sequences[0]) == 52
    assert len(long.labels) == 8
    eos = tokenizers["decoder"].eos_token_id
    assert count_long_answers([short, long], 8, eos) == 1
    assert count_long_answers([short], 1, eos) == 1


def test_answers_that_do_not_fit_are_reported() -> None:
    manifest = {
        "max_length": 256,
        "max_answer_tokens": {"a-task": 64, "b": 9},
        "examples": {"a-task-train": 2000, "a-task-test": 30, "b-test": 5},
        "lost_answers": {"a-task-train": 1200, "a-task-test": 0, "b-test": 0},
        "longer_answers": {"a-task-test": 3},
    }
    lost, longer = list_truncation_warnings(manifest)
    assert "a-task-train: 1,200 of 2,000 gold answers are removed" in lost
    assert "max_length 256" in lost
    assert "a-task-test: 3 of 30 gold answers are longer than the limit of 64" in longer


def test_spans_are_as_long_as_in_training() -> None:
    def labelled(first: int, last: int) -> Example:
        return Example(0, 0, [[1]], [1], [first, last], [])

    lost = labelled(IGNORED_LABEL, IGNORED_LABEL)
    assert measure_longest_span([labelled(3, 9), labelled(4, 4), lost]) == 7
    assert measure_longest_span([]) == 1
