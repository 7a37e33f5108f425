"""Formats of chat logs and public corpora, with the guess that is expected for each."""

from __future__ import annotations

import json

from public_formats import (
    CHAT,
    Format,
    Json,
    as_lines,
    as_list,
    as_table,
    chat,
    mood,
    said,
    speaker,
    topic,
    turns,
    utterances,
)


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


CORPORA: dict[str, Format] = {
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
        as_table(lambda n: {"prompt": said(n, 0), "response": said(n, 1), "label": topic(n)}),
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
}
