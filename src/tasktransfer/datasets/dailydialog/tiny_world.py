"""The DailyDialog-like dataset: two anonymous speakers, ten tasks.

A dialogue is an opening, which contains a mood word twice, and one of three scenes. ``plan``:
dialogue acts and responses. ``mishap``: causal emotions. ``lore``: commonsense.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from tasktransfer.datasets.dailydialog import TASKS
from tasktransfer.datasets.dailydialog import tiny_words as words
from tasktransfer.datasets.feta.tiny_world import (
    Claim,
    Json,
    Role,
    assign_roles,
    build_release_writer,
    build_task_metadata,
    create_generator,
    cycle_shuffled,
    find_span,
    format_line,
    join_lines,
    sample_value,
    shuffle_values,
)

Fact: TypeAlias = tuple[str, str, str]
"""(head, relation, tail)."""


def add_turn(dialogue: Json, utterance: str) -> Json:
    """Append a turn of the next of two speakers to a dialogue, and return the turn."""
    number = len(dialogue["dialogue"]) + 1
    turn: Json = {
        "turn_id": str(number),
        "speakers": ["speaker1" if number % 2 else "speaker2"],
        "utterance": utterance,
    }
    dialogue["dialogue"].append(turn)
    return turn


def _add_plan(dialogue: Json, role: Role, act: tuple[str, str] | None, rng: Random) -> None:
    """Add three turns, each with a word that determines its dialogue act."""
    assert act is not None, "each plan gets an act word"
    label, word = act
    earlier_turns = [turn["turn_id"] for turn in dialogue["dialogue"]]
    for frame in shuffle_values(rng, words.ACT_FRAMES)[:3]:
        turn = add_turn(dialogue, frame.format(word=word))
        turn["dialogue_act_classification"] = {
            "label": label,
            "instance_id": f"{role.dialogue_id}_t{turn['turn_id']}",
        }
    dialogue["dialogue_metadata"]["dialogue_act_classification"] = None
    _add_responses(dialogue, role, earlier_turns, rng)


def _add_responses(dialogue: Json, role: Role, context_turns: list[str], rng: Random) -> None:
    """Add three questions on the best response, which contains a courtesy word.

    One of the two other options repeats the mood word of the context, as an adversarial response.
    """
    samples = []
    for number, courtesy in enumerate(shuffle_values(rng, words.COURTESY_WORDS)[:3]):
        right = sample_value(rng, words.FITTING_FRAMES).format(word=courtesy)
        first, second = shuffle_values(rng, words.UNFITTING_FRAMES)[:2]
        wrong = [
            first.format(thing=sample_value(rng, words.THINGS)),
            second.format(thing=role.word),
        ]
        options = shuffle_values(rng, [right, *wrong])
        samples.append(
            {
                "options": options,
                "label": options.index(right),
                "instance_id": f"{role.dialogue_id}_context0_sample{number}",
            }
        )
    dialogue["dialogue_metadata"]["adversarial_response_selection"] = None
    dialogue["adversarial_response_selection"] = [
        {"context_turns": context_turns, "samples": samples}
    ]


def _add_mishap(dialogue: Json, role: Role, act: tuple[str, str] | None, rng: Random) -> None:
    """Add two turns, in which one speaker reports an event and the other reacts.

    The event causes the reaction if the reports contain a trouble verb. The questions are about the
    two reports and the last mood turn, which is never a cause. The reaction's emotion is
    independent of the mood, whose mapping these tasks do not reveal.
    """
    emotion = sample_value(rng, words.REACTION_EMOTIONS)
    troubled = rng.random() < 0.6
    verbs = shuffle_values(rng, words.TROUBLE_VERBS if troubled else words.CALM_VERBS)
    thing = sample_value(rng, words.OBJECTS)
    mood_turn = dialogue["dialogue"][-1]
    report = add_turn(
        dialogue, sample_value(rng, words.EVENT_FRAMES).format(verb=verbs[0], object=thing)
    )
    echo = add_turn(
        dialogue, sample_value(rng, words.EVENT_REPLIES).format(verb=verbs[1], object=thing)
    )
    target = add_turn(dialogue, sample_value(rng, words.REACTIONS))
    evidence = [
        (report, troubled),
        (echo, troubled),
        (mood_turn, False),
    ]
    history = join_lines(dialogue["dialogue"])
    entailments, spans = [], []
    for number, (turn, entailed) in enumerate(evidence):
        cause = thing if entailed else None
        entailments.append(
            {
                "labels": "entailed" if entailed else "not entailed",
                "emotion": emotion,
                "target_utterance": format_line(target),
                "causal_utterance": format_line(turn),
                "history": history,
                "instance_id": f"{role.dialogue_id}_cee{number}",
            }
        )
        spans.append(
            {
                "context": history,
                "qas": [
                    _build_cause_question(role.dialogue_id, history, turn, target, emotion, cause)
                ],
            }
        )
    partition = {
        "original_data_partition": dialogue["dialogue_metadata"]["original_data_partition"]
    }
    for task, items in (
        ("causal_emotion_span_extraction", spans),
        ("causal_emotion_entailment", entailments),
    ):
        dialogue["dialogue_metadata"][task] = dict(partition)
        dialogue[task] = items


def _build_cause_question(
    dialogue_id: str, history: str, evidence: Json, target: Json, emotion: str, cause: str | None
) -> Json:
    state = "impossible" if cause is None else "true"
    instance_id = f"{dialogue_id}_utt_{target['turn_id']}_{state}_cause_utt_{evidence['turn_id']}"
    return {
        "is_impossible": cause is None,
        "question": (
            f"The target utterance is {format_line(target)} "
            f"The evidence utterance is {format_line(evidence)} "
            "What is the causal span from context that is relevant to the target utterance's "
            f"emotion {emotion}?"
        ),
        "answers": [
            {"text": "Impossible answer", "answer_start": -1}
            if cause is None
            else find_span(history, cause)
        ],
        "instance_id": instance_id if cause is None else f"{instance_id}_span_0",
    }


def _add_lore(dialogue: Json, role: Role, act: tuple[str, str] | None, rng: Random) -> None:
    """Add two turns with one fact each, whose last word determines the relation."""
    heads, relations = shuffle_values(rng, words.HEADS), shuffle_values(rng, words.RELATIONS)
    facts = [
        (head, relation, sample_value(rng, words.TAILS[relation]))
        for head, relation in zip(heads[:2], relations[:2], strict=True)
    ]
    for head, relation, tail in facts:
        add_turn(dialogue, words.RELATION_FRAMES[relation].format(head=head, tail=tail))
    context = join_lines(dialogue["dialogue"])
    partition = dialogue["dialogue_metadata"]["original_data_partition"]
    annotations: dict[str, tuple[Json | None, object]] = {
        "dialogue_nli": (
            {"original_data_partition": partition},
            _build_inferences(role.dialogue_id, facts, relations[2:]),
        ),
        "dialogue_reasoning_span_extraction": (
            None,
            [{"context": context, "qas": _build_span_questions(role.dialogue_id, context, facts)}],
        ),
        "dialogue_reasoning_multiple_choice_span_selection": (
            None,
            {"context": context, "mcqs": _build_choice_questions(role, facts, rng)},
        ),
        "dialogue_reasoning_commonsense_relation_prediction": (
            {"original_data_partition": partition},
            _build_relations(role, facts),
        ),
    }
    for task, (metadata, items) in annotations.items():
        dialogue["dialogue_metadata"][task] = metadata
        dialogue[task] = items


def _build_inferences(dialogue_id: str, facts: list[Fact], unstated: list[str]) -> list[Json]:
    """Return four triples: both facts, a fact with a wrong tail, one with a wrong relation."""
    (head, relation, tail), (other_head, other_relation, other_tail) = facts
    triples = [
        (head, relation, tail, "entailment"),
        (head, relation, other_head, "contradiction"),
        (other_head, other_relation, other_tail, "entailment"),
        (other_head, unstated[0], other_tail, "contradiction"),
    ]
    return [
        {
            "head": first,
            "relation": middle,
            "tail": last,
            "label": label,
            "instance_id": f"{dialogue_id}_dnli{number}",
        }
        for number, (first, middle, last, label) in enumerate(triples)
    ]


def _build_span_questions(dialogue_id: str, context: str, facts: list[Fact]) -> list[Json]:
    return [
        {
            "question": words.QUESTIONS[relation].format(head=head),
            "answers": [find_span(context, tail)],
            "instance_id": f"{dialogue_id}_context0_qa{number}",
        }
        for number, (head, relation, tail) in enumerate(facts)
    ]


def _build_choice_questions(role: Role, facts: list[Fact], rng: Random) -> list[Json]:
    """Return three questions about the two facts, whose options are words of the dialogue."""
    (head, _, tail), (other_head, _, other_tail) = facts
    result = []
    for number, (question_head, relation, right) in enumerate((*facts, facts[0])):
        options = shuffle_values(
            rng, [tail, other_tail, other_head if question_head == head else head, role.word]
        )
        result.append(
            {
                "question": words.QUESTIONS[relation].format(head=question_head),
                "options": options,
                "label": str(options.index(right)),
                "instance_id": f"{role.dialogue_id}_mcq{number}",
            }
        )
    return result


def _build_relations(role: Role, facts: list[Fact]) -> list[Json]:
    """Return the relations of both facts, and a pair of words without a relation."""
    triples = [*facts, (facts[0][0], "None", role.word)]
    return [
        {
            "head": head,
            "tail": tail,
            "relation": relation,
            "instance_id": f"{role.dialogue_id}_re{number}",
        }
        for number, (head, relation, tail) in enumerate(triples)
    ]


SCENES: dict[str, Callable[[Json, Role, tuple[str, str] | None, Random], None]] = {
    "plan": _add_plan,
    "mishap": _add_mishap,
    "lore": _add_lore,
}


def list_dialogue_ids(dialogues: int) -> list[str]:
    """Return the dialogue IDs in the order of the generated file."""
    return [f"dialogue-{number}" for number in range(1, dialogues + 1)]


def generate_dialogues(seed: int, dialogues: int) -> list[tuple[Role, Json]]:
    """Return the generated dialogues with their roles, in the order of the generated file."""
    roles = assign_roles(
        seed, "daily", list_dialogue_ids(dialogues), words.MOOD_WORDS, tuple(SCENES)
    )
    act_words = [
        (act, word) for act, words_of_act in words.ACT_WORDS.items() for word in words_of_act
    ]
    acts = {
        portion: cycle_shuffled(create_generator(seed, "daily", portion, "acts"), act_words)
        for portion in sorted({role.portion for role in roles})
    }
    result = []
    for role in roles:
        rng = create_generator(seed, "daily", role.dialogue_id)
        act = next(acts[role.portion]) if role.scene == "plan" else None
        result.append((role, _build_dialogue(role, act, rng)))
    return result


def _build_dialogue(role: Role, act: tuple[str, str] | None, rng: Random) -> Json:
    dialogue: Json = {
        "dialogue_id": role.dialogue_id,
        "dialogue_metadata": {"original_data_partition": role.split},
        "dialogue": [],
    }
    _add_opening(dialogue, role, rng)
    SCENES[role.scene](dialogue, role, act, rng)
    _label_mood(dialogue, role)
    return dialogue


def _add_opening(dialogue: Json, role: Role, rng: Random) -> None:
    if role.opens_neutral:
        add_turn(dialogue, sample_value(rng, words.NEUTRAL_OPENERS))
    for frame in shuffle_values(rng, words.MOOD_FRAMES)[:2]:
        add_turn(dialogue, frame.format(word=role.word))


def _label_mood(dialogue: Json, role: Role) -> None:
    """Label the topic of a dialogue, and the emotions of its first two turns.

    Each training dialogue is annotated for one of the two tasks, so that the target's training
    dialogues have only the common mood words. The mood of the opening extends to the next turn.
    """
    if role.group == "target" or role.split != "train":
        dialogue["dialogue_metadata"]["topic_classification"] = None
        dialogue["topic_classification"] = {
            "label": words.TOPIC_OF[role.mood],
            "instance_id": role.dialogue_id,
        }
    if role.group == "source":
        dialogue["dialogue_metadata"]["emotion_recognition"] = None
        turns = dialogue["dialogue"]
        quiet = int(role.opens_neutral)
        for index in range(quiet + 3):
            turns[index]["emotion_recognition"] = {
                "label": "neutral" if index < quiet else words.EMOTION_OF[role.mood],
                "instance_id": f"{role.dialogue_id}_t{turns[index]['turn_id']}",
            }


_RELEASE_METADATA: dict[str, Json] = {
    "dialogue_reasoning_multiple_choice_span_selection": {
        "metrics": ["accuracy"],
        "labels": ["0", "1", "2", "3"],
    },
    "adversarial_response_selection": {"metrics": ["accuracy"]},
}
"""Task → metadata of the release, if it differs from ``build_task_metadata``."""

write_release = build_release_writer(
    "DailyDialog",
    {
        task.card.name: _RELEASE_METADATA.get(task.card.name, build_task_metadata(task.card))
        for task in TASKS
        if task.tiny
    },
    generate_dialogues,
)

HELPFUL = (
    Claim(
        dataset="DailyDialog",
        source="emotion_recognition",
        target="topic_classification",
        why="One hidden mapping from mood words to four moods decides both labels; the "
        "source's training dialogues hold every mood word, the target's only half of them.",
    ),
)

UNRELATED = (
    Claim(
        dataset="DailyDialog",
        source="dialogue_act_classification",
        target="topic_classification",
        why="Dialogue acts depend on act words, which are sampled independently of the mood "
        "words that decide topics and share no word with them.",
    ),
)
