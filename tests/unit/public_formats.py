"""Small files in the formats of public corpora, annotation tools and chat programs.

The dialogues are invented. Each file has the declaration that should be guessed for it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]
TOPICS = ("billing", "login", "shipping")
MOODS = ("calm", "angry", "glad")


def said(number: int, turn: int) -> str:
    """Return a text that no other dialogue has."""
    texts = ("my parcel {} has not come yet", "let me look for number {}", "thank you, it is {}")
    return texts[turn % 3].format(10 * number + turn)


def topic(number: int) -> str:
    return TOPICS[number % 3]


def mood(number: int, turn: int) -> str:
    return MOODS[(number + turn) % 3]


def speaker(turn: int) -> str:
    return ("user", "assistant")[turn % 2]


def turns(number: int, make: Callable[[int, int], Json], count: int = 4) -> list[Json]:
    return [make(number, turn) for turn in range(count)]


def as_lines(row: Callable[[int], Json], count: int = 24) -> str:
    return "".join(json.dumps(row(number)) + "\n" for number in range(count))


def as_list(row: Callable[[int], Json], count: int = 24) -> str:
    return json.dumps([row(number) for number in range(count)], indent=1)


def as_csv(rows: list[Json]) -> str:
    stream = io.StringIO()
    table = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return stream.getvalue()


def utterances(make: Callable[[int, int], Json], count: int = 24) -> list[Json]:
    """Return one row per utterance."""
    return [make(number, turn) for number in range(count) for turn in range(4)]


class Format(NamedTuple):
    """A public format and its expected guess.

    ``dialogue`` and ``labels`` (task → path, or kind and path) are the guess; ``turns`` are those
    of the first dialogue; ``notes`` are words of the messages.
    """

    file: str
    content: str
    dialogue: Json
    labels: Json
    turns: int = 4
    notes: tuple[str, ...] = ()


def chat(number: int, turn: int) -> Json:
    return {"role": speaker(turn), "content": said(number, turn)}


CHAT = {"turns": "messages", "text": "content", "speaker": "role"}


def with_tools(number: int) -> Json:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    first, *rest = turns(number, chat)
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    found = {"role": "tool", "content": f"found {number}"}
    tool = {"type": "function", "function": {"name": "find", "description": "finds a parcel"}}
    made = [first, *([called, found] if number % 9 == 1 else []), *rest]
    return {"messages": made, "tools": [tool], "intent": topic(number)}


def in_parts(number: int) -> Json:
    made = [
        {"role": speaker(turn), "content": [{"type": "text", "text": said(number, turn)}]}
        for turn in range(4)
    ]
    made[2]["content"] += [{"type": "image_url", "image_url": {"url": "x.png"}}]
    return {
        "messages": [{"role": "system", "content": "You help."}, *made],
        "intent": topic(number),
    }


def label_studio(number: int) -> Json:
    result = {
        "id": f"r{number}",
        "type": "choices",
        "from_name": "intent",
        "to_name": "text",
        "value": {"choices": [topic(number)]},
    }
    annotation = {"id": number, "completed_by": 1, "result": [result], "was_cancelled": False}
    return {
        "id": number,
        "annotations": [annotation],
        "drafts": [],
        "data": {"text": said(number, 0)},
        "meta": {},
        "project": 1,
    }


def label_studio_dialogue(number: int) -> Json:
    made = turns(number, lambda n, t: {"author": speaker(t), "text": said(n, t)})
    return label_studio(number) | {"data": {"dialogue": made}}


def prodigy(number: int, several: bool = False) -> Json:
    accept = [topic(number)] + ([topic(number + 1)] if several and number % 2 else [])
    return {
        "text": said(number, 0),
        "_input_hash": 1000 + number,
        "_task_hash": -1000 - number,
        "options": [{"id": label, "text": f"It is about {label} I think"} for label in TOPICS],
        "_view_id": "choice",
        "accept": accept,
        "answer": "accept",
    }


def emory(number: int) -> Json:
    def make(n: int, t: int) -> Json:
        return {
            "utterance_id": f"s01_e{number:02}_c{n:02}_u{t:03}",
            "speakers": [speaker(t)],
            "transcript": said(n, t),
            "tokens": [said(n, t).split()],
            "emotion": mood(n, t),
        }

    scenes = [
        {"scene_id": f"s01_e{number:02}_c{n:02}", "utterances": turns(n, make)}
        for n in range(4 * number, 4 * number + 4)
    ]
    return {"episode_id": f"s01_e{number:02}", "scenes": scenes}


def multiwoz(number: int) -> Json:
    def make(n: int, t: int) -> Json:
        frames = [{"service": topic(n), "slots": [], "state": {"active_intent": "find"}}]
        return {
            "speaker": ("USER", "SYSTEM")[t % 2],
            "turn_id": str(t),
            "utterance": said(n, t),
            "frames": frames,
        }

    services = [topic(number)] + (["taxi"] if number % 2 else [])
    return {"dialogue_id": f"D{number}.json", "services": services, "turns": turns(number, make)}


def parlai(number: int) -> Json:
    pairs = [
        [{"id": f"speaker_{turn % 2 + 1}", "text": said(number, turn)} for turn in pair]
        for pair in ((0, 1), (2, 3))
    ]
    return {"dialog": pairs, "topic": topic(number), "start_time": number}


def parlai_episode(number: int) -> Json:
    made = [
        {"text": said(number, t), "labels": [said(number, t + 1)], "episode_done": t == 2}
        for t in (0, 2)
    ]
    return {"dialog": made, "topic": topic(number)}


def wizard(number: int) -> Json:
    def make(n: int, t: int) -> Json:
        passages = [
            {"Trains": ["Trains run on rails and carry people and goods.", "They are fast."]}
        ]
        return {"speaker": f"{t % 2}_Wizard", "text": said(n, t), "retrieved_passages": passages}

    persona = f"i like number {number} very much"
    return {"chosen_topic": topic(number), "persona": persona, "dialog": turns(number, make)}


def dstc(number: int) -> Json:
    made = [{"speaker": f"participant_{t % 2}", "utterance": said(number, t)} for t in range(4)]
    options = [
        {"candidate-id": f"c{n}", "utterance": said(n, 2)} for n in range(number, number + 3)
    ]
    return {
        "data-split": "train",
        "example-id": 50000 + number,
        "messages-so-far": made,
        "options-for-next": options,
        "scenario": topic(number),
    }


def rasa(number: int) -> Json:
    """Return a tracker of Rasa: messages of users and bots among actions without text."""
    events: list[Json] = []
    for turn in range(4):
        intent = {"intent": {"name": mood(number, turn), "confidence": 0.9}}
        parsed = {"parse_data": intent} if turn % 2 == 0 else {}
        event = ("user", "bot")[turn % 2]
        events += [
            {"event": "action", "name": "action_listen", "timestamp": 10.0 * turn},
            {"event": event, "text": said(number, turn), "timestamp": 10.0 * turn + 1, **parsed},
        ]
    return {"sender_id": f"u{number}", "events": events}


def light_tag(number: int) -> Json:
    return {
        "content": said(number, 0),
        "metadata": {},
        "example_id": f"e{number}",
        "annotations": [],
        "classifications": [{"classname": topic(number), "classification_id": f"c{number % 3}"}],
    }


def telegram_like(number: int) -> Json:
    link = {"type": "link", "text": "example.org"}
    made = turns(number, lambda n, t: {"from": speaker(t), "text": said(n, t)})
    made[1]["text"] = ["see ", link, " for more"]
    return {"id": number, "messages": made, "topic": topic(number)}


FORMATS: dict[str, Format] = {
    "chat messages": Format(
        "chat.jsonl",
        as_lines(lambda n: {"messages": turns(n, chat), "intent": topic(n)}),
        CHAT,
        {"intent": "intent"},
    ),
    "chat messages with a system prompt and an id": Format(
        "chat.jsonl",
        as_lines(
            lambda n: {
                "prompt_id": f"p{n:04}",
                "messages": [{"role": "system", "content": "You help."}, *turns(n, chat)],
                "category": topic(n),
            }
        ),
        CHAT | {"id": "prompt_id"},
        {"category": "category"},
        turns=5,
    ),
    "content parts": Format(
        "parts.jsonl",
        as_lines(in_parts),
        CHAT | {"text": "content[].text"},
        {"intent": "intent"},
        turns=5,
    ),
    "calls of tools": Format(
        "tools.jsonl",
        as_lines(with_tools),
        CHAT | {"skip": "empty"},
        {"intent": "intent"},
        notes=("turns of 3 dialogues have no text",),
    ),
    "ShareGPT": Format(
        "sharegpt.json",
        as_list(
            lambda n: {
                "id": f"x{n}",
                "conversations": turns(
                    n, lambda n, t: {"from": ("human", "gpt")[t % 2], "value": said(n, t)}
                ),
                "label": topic(n),
            }
        ),
        {"turns": "conversations", "text": "value", "speaker": "from", "id": "id"},
        {"label": "label"},
    ),
    "pairs of human and assistant": Format(
        "pairs.jsonl",
        as_lines(
            lambda n: {
                "conversation_id": n,
                "conversation": [
                    {"human": said(n, t), "assistant": said(n, t + 1)} for t in (0, 2)
                ],
                "category": topic(n),
            }
        ),
        {"turns": "conversation", "text": ["human", "assistant"], "id": "conversation_id"},
        {"category": "category"},
    ),
    "a history of pairs": Format(
        "alpaca.json",
        as_list(
            lambda n: {
                "history": [[said(n, t), said(n, t + 1)] for t in (0, 2)],
                "category": topic(n),
            }
        ),
        {"turns": "history", "text": ["0", "1"]},
        {"category": "category"},
    ),
    "prompt and response": Format(
        "pairs.csv",
        as_csv(
            [{"prompt": said(n, 0), "response": said(n, 1), "label": topic(n)} for n in range(24)]
        ),
        {"text": ["prompt", "response"]},
        {"label": "label"},
        turns=2,
    ),
    "ParlAI conversations": Format(
        "parlai.jsonl",
        as_lines(parlai),
        {"turns": "dialog[]", "text": "text", "speaker": "id"},
        {"topic": "topic"},
    ),
    "ParlAI text and labels": Format(
        "parlai.jsonl",
        as_lines(parlai_episode),
        {"turns": "dialog", "text": ["text", "labels.0"]},
        {"episode_done": "dialog[].episode_done", "topic": "topic"},
    ),
    "Wizard of Wikipedia": Format(
        "wizard.json",
        as_list(wizard),
        {"turns": "dialog", "text": "text", "speaker": "speaker"},
        {"chosen_topic": "chosen_topic"},
        notes=("unused text fields: persona",),
    ),
    "questions and answers in two lists": Format(
        "own.jsonl",
        as_lines(
            lambda n: {
                "id": f"q{n}",
                "source": topic(n),
                "questions": turns(n, lambda n, t: {"input_text": f"{said(n, t)}?", "turn_id": t}),
                "answers": turns(n, lambda n, t: {"input_text": said(n, t), "turn_id": t}),
            }
        ),
        {"turns": "questions", "text": "input_text", "id": "id"},
        {"source": "source"},
        notes=("unused text fields: answers",),
    ),
    "threads of Slack": Format(
        "own.json",
        json.dumps(
            utterances(
                lambda n, t: {
                    "type": "message",
                    "text": said(n, t),
                    "user": f"U{n % 7}{t % 2}",
                    "ts": f"17000{n:02}{t}00.000000",
                    "thread_ts": f"17000{n:02}000.000000",
                    "topic": topic(n),
                }
            )
        ),
        {"text": "text", "speaker": "user", "id": "thread_ts"},
        {"topic": "topic"},
    ),
    "several sessions": Format(
        "msc.jsonl",
        as_lines(
            lambda n: {
                "sessions": [
                    {"dialog": [{"id": f"Speaker {t % 2 + 1}", "text": said(n, t)} for t in ts]}
                    for ts in ((0, 1), (2, 3))
                ],
                "topic": topic(n),
            }
        ),
        {"turns": "sessions[].dialog", "text": "text", "speaker": "id"},
        {"topic": "topic"},
    ),
    "Emory NLP": Format(
        "emory.json",
        json.dumps({"season_id": "s01", "episodes": [emory(n) for n in range(8)]}),
        {
            "rows": "scenes",
            "turns": "utterances",
            "text": "transcript",
            "speaker": "speakers",
            "id": "scene_id",
        },
        {"emotion": "utterances[].emotion"},
        notes=("A row contains several dialogues",),
    ),
    "MultiWOZ 2.2": Format(
        "multiwoz.json",
        as_list(multiwoz),
        {"turns": "turns", "text": "utterance", "speaker": "speaker", "id": "dialogue_id"},
        {"services": ("multi_label", "services")},
    ),
    "MultiWOZ 2.1": Format(
        "data.json",
        json.dumps(
            {
                f"MUL{n}.json": {
                    "goal": {"message": ["You want a taxi to the station tonight"]},
                    "log": [
                        {"text": said(n, t), "metadata": {}, "mood": mood(n, t)} for t in range(4)
                    ],
                }
                for n in range(24)
            }
        ),
        {"turns": "log", "text": "text", "id": "id"},
        {"mood": "log[].mood"},
    ),
    "DSTC 7": Format(
        "dstc.json",
        as_list(dstc),
        {"turns": "messages-so-far", "text": "utterance", "speaker": "speaker", "id": "example-id"},
        {"scenario": "scenario"},
    ),
    "Rasa trackers": Format(
        "trackers.jsonl",
        as_lines(rasa),
        {"turns": "events", "text": "text", "speaker": "event", "id": "sender_id", "skip": "empty"},
        {"parse_data_intent_name": "events[].parse_data.intent.name"},
    ),
    "ConvoKit utterances": Format(
        "utterances.jsonl",
        as_lines(
            lambda i: {
                "id": f"u{i}",
                "conversation_id": f"c{i // 4}",
                "speaker": speaker(i),
                "text": said(i // 4, i % 4),
                "reply-to": f"u{i - 1}" if i % 4 else None,
                "timestamp": 1000 + i,
                "meta": {"mood": mood(i // 4, i % 4), "parsed": [{"rt": 0}], "score": i},
            },
            96,
        ),
        {"text": "text", "speaker": "speaker", "id": "conversation_id"},
        {"meta_mood": "meta.mood"},
    ),
    "Label Studio": Format(
        "export.json",
        as_list(label_studio),
        {"text": "data.text"},
        {"annotations_0_result_0_value_choices": "annotations.0.result.0.value.choices"},
        turns=1,
    ),
    "Label Studio with dialogues": Format(
        "export.json",
        as_list(label_studio_dialogue),
        {"turns": "data.dialogue", "text": "text", "speaker": "author", "id": "id"},
        {"annotations_0_result_0_value_choices": "annotations.0.result.0.value.choices"},
    ),
    "Label Studio, the small export": Format(
        "export.csv",
        as_csv(
            [
                {
                    "text": said(n, 0),
                    "id": n,
                    "sentiment": mood(n, 0),
                    "annotator": n % 2,
                    "annotation_id": n,
                    "lead_time": 3.5 + n,
                }
                for n in range(24)
            ]
        ),
        {"text": "text"},
        {"sentiment": "sentiment"},
        turns=1,
    ),
    "Prodigy, one choice": Format(
        "prodigy.jsonl",
        as_lines(prodigy),
        {"text": "text"},
        {"accept": ("dialogue_classification", "accept")},
        turns=1,
    ),
    "Prodigy, several choices": Format(
        "prodigy.jsonl",
        as_lines(lambda n: prodigy(n, several=True)),
        {"text": "text"},
        {"accept": ("multi_label", "accept")},
        turns=1,
    ),
    "Doccano": Format(
        "doccano.jsonl",
        as_lines(lambda n: {"id": n, "text": said(n, 0), "label": [topic(n)], "Comments": []}),
        {"text": "text"},
        {"label": ("dialogue_classification", "label")},
        turns=1,
    ),
    "LightTag": Format(
        "lighttag.json",
        json.dumps({"examples": [light_tag(n) for n in range(24)], "relations": [], "schema": {}}),
        {"text": "content"},
        {"classifications_0_classname": "classifications.0.classname"},
        turns=1,
    ),
    "spans in a text": Format(
        "spans.jsonl",
        as_lines(
            lambda n: {
                "text": said(n, 0),
                "spans": [{"start": 0, "end": 9, "text": "my parcel", "label": "THING"}],
                "intent": topic(n),
            }
        ),
        {"text": "text"},
        {"intent": "intent"},
        turns=1,
    ),
    "texts with links": Format(
        "telegram.jsonl",
        as_lines(telegram_like),
        {"turns": "messages", "text": "text[].text", "speaker": "from", "id": "id"},
        {"topic": "topic"},
    ),
    "MELD": Format(
        "meld.csv",
        as_csv(
            utterances(
                lambda n, t: {
                    "Sr No.": 4 * n + t,
                    "Utterance": said(n, t),
                    "Speaker": speaker(t),
                    "Emotion": mood(n, t),
                    "Dialogue_ID": n,
                    "Utterance_ID": t,
                }
            )
        ),
        {"text": "Utterance", "speaker": "Speaker", "id": "Dialogue_ID"},
        {"Emotion": "Emotion"},
    ),
    "EmpatheticDialogues": Format(
        "empathetic.csv",
        as_csv(
            utterances(
                lambda n, t: {
                    "conv_id": f"hit:{n}_conv:{n}",
                    "utterance_idx": t + 1,
                    "context": topic(n),
                    "prompt": said(n, 2),
                    "speaker_idx": t % 2,
                    "utterance": said(n, t),
                    "selfeval": "5|5|5_2|2|5",
                }
            )
        ),
        {"text": "utterance", "speaker": "speaker_idx", "id": "conv_id"},
        {"context": "context"},
        notes=("unused text fields: prompt",),
    ),
    "turns out of order": Format(
        "shuffled.csv",
        as_csv(
            [
                {"conversation": f"c{n}", "position": t, "text": said(n, t), "mood": mood(n, t)}
                for n in range(24)
                for t in (2, 0, 3, 1)
            ]
        ),
        {"text": "text", "id": "conversation", "order": "position"},
        {"mood": "mood"},
        notes=("position looks like the order of turns, but is 2, 0, 3, 1",),
    ),
    "the newest first": Format(
        "newest.jsonl",
        as_lines(
            lambda n: {
                "messages": [
                    chat(n, t) | {"created_at": f"2024-05-0{t + 1}T10:00:00Z"} for t in (3, 2, 1, 0)
                ],
                "topic": topic(n),
            }
        ),
        CHAT | {"order": "created_at"},
        {"topic": "topic"},
        notes=("created_at looks like the order of turns",),
    ),
    "Python lists in a CSV": Format(
        "pandas.csv",
        as_csv([{"chat": str(turns(n, chat)), "topic": topic(n)} for n in range(24)]),
        {"turns": "chat", "text": "content", "speaker": "role"},
        {"topic": "topic"},
        notes=("chat has lists or objects as text (in Python",),
    ),
    "numpy arrays in a CSV": Format(
        "dailydialog.csv",
        as_csv(
            [
                {
                    "dialog": "[" + "\n ".join(repr(said(n, t)) for t in range(4)) + "]",
                    "act": "[" + " ".join(str((n + t) % 3 + 1) for t in range(4)) + "]",
                    "emotion": "[" + " ".join(str((n * t) % 2) for t in range(4)) + "]",
                }
                for n in range(24)
            ]
        ),
        {"turns": "dialog"},
        {"act": "act[]", "emotion": "emotion[]"},
        notes=("dialog has lists",),
    ),
    "lists of labels in a CSV": Format(
        "goemotions.csv",
        as_csv(
            [
                {"text": said(n, 0), "emotions": str([mood(n, 0), mood(n, 1)][: n % 2 + 1])}
                for n in range(24)
            ]
        ),
        {"text": "text"},
        {"emotions": ("multi_label", "emotions")},
        turns=1,
        notes=("emotions has lists",),
    ),
    "numbers of labels in lists": Format(
        "goemotions.jsonl",
        as_lines(lambda n: {"text": said(n, 0), "labels": [n % 3, 3 + n % 2][: n % 2 + 1]}),
        {"text": "text"},
        {"labels": ("multi_label", "labels")},
        turns=1,
    ),
    "objects in a CSV": Format(
        "convokit.csv",
        as_csv(
            utterances(
                lambda n, t: {
                    "conversation_id": f"c{n}",
                    "text": said(n, t),
                    "speaker": speaker(t),
                    "meta": str({"mood": mood(n, t), "score": t}),
                }
            )
        ),
        {"text": "text", "speaker": "speaker", "id": "conversation_id"},
        {"meta_mood": "meta.mood"},
    ),
    "labels of each turn in lists": Format(
        "acts.jsonl",
        as_lines(
            lambda n: {
                "id": f"d{n}",
                "turns": turns(
                    n,
                    lambda n, t: {
                        "speaker": speaker(t),
                        "text": said(n, t),
                        "acts": [mood(n, t), mood(n, t + 1)][: t % 2 + 1],
                    },
                ),
            }
        ),
        {"turns": "turns", "text": "text", "speaker": "speaker", "id": "id"},
        {"acts": ("multi_label", "turns[].acts")},
    ),
    "speakers as objects": Format(
        "slack.json",
        as_list(
            lambda n: {
                "thread_id": f"t{n}",
                "replies": turns(
                    n,
                    lambda n, t: {"author": {"name": speaker(t), "bot": False}, "body": said(n, t)},
                ),
                "label": topic(n),
            }
        ),
        {"turns": "replies", "text": "body", "speaker": "author.name", "id": "thread_id"},
        {"label": "label"},
    ),
    "ids that are floats": Format(
        "floats.jsonl",
        as_lines(
            lambda i: {
                "dialogue_id": float(i // 4),
                "text": said(i // 4, i % 4),
                "mood": mood(i, 1),
            },
            96,
        ),
        {"text": "text", "id": "dialogue_id"},
        {"mood": "mood"},
    ),
    "a label that few rows have": Format(
        "few.jsonl",
        as_lines(lambda n: {"text": said(n, 0)} | ({} if n % 3 else {"topic": topic(n // 3)}), 60),
        {"text": "text"},
        {"topic": "topic"},
        turns=1,
        notes=("topic: 40 items without an answer are skipped (missing: skip)",),
    ),
    "a list of one row": Format(
        "one.jsonl",
        as_lines(
            lambda n: (
                {"text": said(n, 0), "topic": topic(n)}
                | ({"members": ["Ann Lee", "Bob Ray"]} if n == 0 else {})
            )
        ),
        {"text": "text"},
        {"topic": "topic"},
        turns=1,
    ),
    "CLINC150, one split": Format(
        "train.json",
        as_list(lambda n: [said(n, 0), topic(n)]),
        {"text": "items.0"},
        {"items_1": "items.1"},
        turns=1,
    ),
    "EmotionLines": Format(
        "friends.json",
        as_list(
            lambda n: turns(
                n,
                lambda n, t: {
                    "speaker": speaker(t),
                    "utterance": said(n, t),
                    "emotion": mood(n, t),
                },
            )
        ),
        {"turns": "items", "text": "utterance", "speaker": "speaker"},
        {"emotion": "items[].emotion"},
    ),
    "ChatGPT's parts": Format(
        "parts.jsonl",
        as_lines(
            lambda n: {
                "id": f"c{n}",
                "messages": turns(
                    n,
                    lambda n, t: {
                        "author": {"role": speaker(t)},
                        "content": {"content_type": "text", "parts": [said(n, t)]},
                    },
                ),
                "topic": topic(n),
            }
        ),
        {"turns": "messages", "text": "content.parts[]", "speaker": "author.role", "id": "id"},
        {"topic": "topic"},
    ),
}
