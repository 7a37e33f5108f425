"""A tiny valid release of each dataset, for tests to write, pack and damage."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.datasets import DATASETS, PACKAGE_DATASETS, TINY_PARTS, dailydialog, friends
from tasktransfer.datasets.feta import release
from tasktransfer.datasets.feta.archive import FEW_SAMPLE_ID_FILES, ID_FILES, get_json_file_name
from tasktransfer.datasets.feta.release import ParsedRelease
from tasktransfer.tasks.card import Instance

PAPER_TASKS = [
    card
    for dataset in PACKAGE_DATASETS
    for card in dataset.cards
    if card.name in TINY_PARTS[card.dataset].sizes
]
"""The 17 tasks of the paper and of the tiny world; the package may have more."""


def load_release(path: Path | str, dataset: str) -> ParsedRelease:
    """Parse a release of one of the package's datasets with its reader."""
    tasks = {"DailyDialog": dailydialog.TASKS, "Friends": friends.TASKS}[dataset]
    return release.parse_release(path, dataset, tasks)


def read_instances(
    parsed: ParsedRelease, task: str, split: str, few_sample: bool
) -> list[Instance]:
    """Read the instances of a task on a split."""
    return list(release.read_instances(parsed, task, split, few_sample))


@dataclass
class TinyRelease:
    """A release in memory: content of the JSON file, and id files by official name."""

    dataset: str
    content: dict[str, Any]
    ids: dict[str, list[str]]

    @property
    def dialogue(self) -> dict[str, Any]:
        """First dialogue, which is in the few-sample training set."""
        return self.content["data"][0]

    @property
    def files(self) -> dict[str, bytes]:
        """Return the bytes of the official files."""
        lists = {name: "\n".join(ids).encode() + b"\n" for name, ids in self.ids.items()}
        return {get_json_file_name(self.dataset): json.dumps(self.content).encode(), **lists}

    def write(self, parent: Path) -> Path:
        """Write the folder ``TLiDB_<dataset>`` under ``parent`` and return it."""
        folder = parent / f"TLiDB_{self.dataset}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder

    def pack(self, parent: Path) -> Path:
        """Write ``TLiDB_<dataset>.zip`` under ``parent``, with the layout of the real archives."""
        file = parent / f"TLiDB_{self.dataset}.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"TLiDB_{self.dataset}/", b"")
            for name, data in self.files.items():
                archive.writestr(f"TLiDB_{self.dataset}/{name}", data)
        return file


def tiny_release(dataset: str) -> TinyRelease:
    """Build a release of five dialogues: a, b (train), c (dev), d, e (test).

    Each is annotated for every task of the tiny world. The few-sample sets contain a and c.
    """
    make = {"DailyDialog": _daily_dialogue, "Friends": _friends_dialogue}[dataset]
    cards = {name: DATASETS[dataset].tasks[name] for name in TINY_PARTS[dataset].sizes}
    metadata = {
        "dataset_name": dataset,
        "tasks": list(cards),
        "task_metadata": {
            name: {"labels": list(card.labels)} if card.labels else {}
            for name, card in cards.items()
        },
    }
    ids = {
        ID_FILES["train"]: ["a", "b"],
        ID_FILES["dev"]: ["c"],
        ID_FILES["test"]: ["d", "e"],
        FEW_SAMPLE_ID_FILES["train"]: ["a"],
        FEW_SAMPLE_ID_FILES["dev"]: ["c"],
    }
    data = [make(name) for name in "abcde"]
    return TinyRelease(dataset, {"metadata": metadata, "data": data, "extra": 1}, ids)


def _daily_dialogue(name: str) -> dict[str, Any]:
    context = "speaker1: It is raining. speaker2: I hate rain, it spoils the picnic."
    turns = [("speaker1", "It is raining."), ("speaker2", "I hate rain, it spoils the picnic.")]
    start = context.index("spoils")

    def label(label: str, number: int) -> dict[str, Any]:
        return {"label": label, "instance_id": f"{name}_t{number}"}

    def ask(question: str, text: str, at: int, identity: str, **more: Any) -> dict[str, Any]:
        answers = [{"text": text, "answer_start": at}]
        asked = {"question": question, "answers": answers, "instance_id": f"{name}_{identity}"}
        return {"context": context, "qas": [{**asked, **more}]}

    causes = [
        ask(
            "Which span causes disgust?", "spoils the picnic", start, "cause0", is_impossible=False
        ),
        ask(
            "Which other span causes disgust?",
            *("Impossible answer", -1, "cause1"),
            is_impossible=True,
        ),
    ]
    span = ask("What does rain spoil?", "the picnic", start + 7, "qa0")
    span["qas"][0]["answers"] *= 2
    choice = {
        "question": "What does rain spoil?",
        "options": ["hate", "raining", "it", "the picnic"],
        "label": "3",
        "instance_id": f"{name}_mcq0",
    }
    response = {
        "options": ["Take an umbrella.", "It is Monday.", "I like trains."],
        "label": 0,
        "instance_id": f"{name}_context0_sample0",
    }
    entailment = {
        "labels": "entailed",
        "emotion": "disgust",
        "target_utterance": turns[1][1],
        "causal_utterance": turns[0][1],
        "history": context,
        "instance_id": f"{name}_entail0",
    }
    triple = {"head": "rain", "relation": "causes", "tail": "no picnic"}
    return {
        "dialogue_id": name,
        "dialogue_metadata": {"original_data_partition": "train"}
        | dict.fromkeys(DATASETS["DailyDialog"].tasks),
        "dialogue": [
            {
                "turn_id": str(number),
                "speakers": [speaker],
                "utterance": utterance,
                "emotion_recognition": label("disgust", number),
                "dialogue_act_classification": label("inform", number),
            }
            for number, (speaker, utterance) in enumerate(turns, start=1)
        ],
        "topic_classification": {"label": "Ordinary Life", "instance_id": name},
        "causal_emotion_span_extraction": causes,
        "causal_emotion_entailment": [entailment],
        "dialogue_nli": [{**triple, "label": "entailment", "instance_id": f"{name}_dnli0"}],
        "dialogue_reasoning_span_extraction": [span],
        "dialogue_reasoning_multiple_choice_span_selection": {"context": context, "mcqs": [choice]},
        "dialogue_reasoning_commonsense_relation_prediction": [
            {**triple, "instance_id": f"{name}_re0"}
        ],
        "adversarial_response_selection": [{"context_turns": ["1"], "samples": [response]}],
    }


def _friends_dialogue(name: str) -> dict[str, Any]:
    turns: list[tuple[list[str], str]] = [
        ([], f"[ Scene : park {name * 3} ]"),
        (["Ross Geller", "Joey Tribbiani"], "Hi there!"),
        (["Monica Geller"], "Look across, Ross is here with his new dinosaur."),
    ]
    rows: list[dict[str, Any]] = [
        {"turn_id": number, "speakers": speakers, "utterance": utterance}
        for number, (speakers, utterance) in enumerate(turns)
    ]
    rows[2] |= {
        "emory_emotion_recognition": {"label": "joyful", "instance_id": f"{name}_t2"},
        "MELD_emotion_recognition": {"label": "joy", "instance_id": f"{name}_t2"},
        "character_identification": [
            {
                "entity": "Ross Geller",
                "normalized_entity": "ross",
                "start": start,
                "entity_reference": mention,
                "instance_id": f"{name}_t2_mention{number}",
            }
            for number, (mention, start) in enumerate([("Ross", 13), ("his", 31)])
        ],
    }
    queries = [
        ("[PLACEHOLDER] brings a dinosaur.", "ross"),
        ("[PLACEHOLDER] brews coffee.", "gunther"),
    ]
    questions = [
        (
            "What is new?",
            "What",
            [
                _answer(text, start, 2)
                for text, start in (("dinosaur", 39), ("new dinosaur", 35), ("dinosaur", 39))
            ],
        ),
        ("Who sees Ross?", "Who", [_answer("Monica Geller", -1, 2, is_speaker=True)]),
    ]
    traits = {"neurotic": "0", "open": "1", "aggreeable": "1", "conscientious": "0"}
    personality = {
        "turns": [1, 2],
        "focus_speaker": "Ross Geller",
        "personality_characteristics": {**traits, "extroverted": "1"},
        "instance_id": f"{name}_Ross-Geller",
    }
    triple = {
        "head": "Monica Geller",
        "tail": "Ross Geller",
        "relations": ["per:siblings", "per:friends", "per:siblings"],
        "instance_id": f"{name}_Monica-Geller_Ross-Geller",
    }
    return {
        "dialogue_id": name,
        "dialogue_metadata": dict.fromkeys(DATASETS["Friends"].tasks)
        | {"reading_comprehension": {"scene_entities": ["monica", "ross", "gunther"]}},
        "dialogue": rows,
        "reading_comprehension": [
            {"query": query, "answer": answer, "instance_id": f"{name}_qa{number}"}
            for number, (query, answer) in enumerate(queries)
        ],
        "question_answering": [
            {
                "qas": [
                    {"question": question, "answers": answers, "instance_id": f"{name}_{word}"}
                    for question, word, answers in questions
                ]
            }
        ],
        "personality_detection": [personality],
        "relation_extraction": [{"turns": [2, 0], "relation_triples": [triple]}],
    }


def _answer(text: str, start: int, turn: int, is_speaker: bool = False) -> dict[str, Any]:
    return {
        "text": text,
        "answer_start": start,
        "answer_utterance_id": turn,
        "is_speaker": is_speaker,
    }
