"""Formats of annotation tools and of tables, with the guess that is expected for each."""

from __future__ import annotations

import json

from public_formats import (
    CHAT,
    TOPICS,
    Format,
    Json,
    as_csv,
    as_lines,
    as_list,
    as_table,
    as_turn_table,
    chat,
    mood,
    said,
    speaker,
    topic,
    turns,
)


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


EXPORTS: dict[str, Format] = {
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
        as_table(
            lambda n: {
                "text": said(n, 0),
                "id": n,
                "sentiment": mood(n, 0),
                "annotator": n % 2,
                "annotation_id": n,
                "lead_time": 3.5 + n,
            }
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
        as_turn_table(
            lambda n, t: {
                "Sr No.": 4 * n + t,
                "Utterance": said(n, t),
                "Speaker": speaker(t),
                "Emotion": mood(n, t),
                "Dialogue_ID": n,
                "Utterance_ID": t,
            }
        ),
        {"text": "Utterance", "speaker": "Speaker", "id": "Dialogue_ID"},
        {"Emotion": "Emotion"},
    ),
    "EmpatheticDialogues": Format(
        "empathetic.csv",
        as_turn_table(
            lambda n, t: {
                "conv_id": f"hit:{n}_conv:{n}",
                "utterance_idx": t + 1,
                "context": topic(n),
                "prompt": said(n, 2),
                "speaker_idx": t % 2,
                "utterance": said(n, t),
                "selfeval": "5|5|5_2|2|5",
            }
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
        as_table(lambda n: {"chat": str(turns(n, chat)), "topic": topic(n)}),
        {"turns": "chat", "text": "content", "speaker": "role"},
        {"topic": "topic"},
        notes=("chat has lists or objects as text (in Python",),
    ),
    "numpy arrays in a CSV": Format(
        "dailydialog.csv",
        as_table(
            lambda n: {
                "dialog": "[" + "\n ".join(repr(said(n, t)) for t in range(4)) + "]",
                "act": "[" + " ".join(str((n + t) % 3 + 1) for t in range(4)) + "]",
                "emotion": "[" + " ".join(str((n * t) % 2) for t in range(4)) + "]",
            }
        ),
        {"turns": "dialog"},
        {"act": "act[]", "emotion": "emotion[]"},
        notes=("dialog has lists",),
    ),
    "lists of labels in a CSV": Format(
        "goemotions.csv",
        as_table(
            lambda n: {"text": said(n, 0), "emotions": str([mood(n, 0), mood(n, 1)][: n % 2 + 1])}
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
        as_turn_table(
            lambda n, t: {
                "conversation_id": f"c{n}",
                "text": said(n, t),
                "speaker": speaker(t),
                "meta": str({"mood": mood(n, t), "score": t}),
            }
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
