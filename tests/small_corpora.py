"""A small valid file of each corpus and rated set, for tests to damage."""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasktransfer.designs.empathetic.sources import tiny
from tasktransfer.designs.empathetic.sources.cards import NEWSGROUP_LABELS

TWELVE = "one two three four five six seven eight nine ten eleven twelve"


def said(number: int, place: int) -> str:
    """Return a unique text of more than twelve words."""
    return f"{TWELVE} dialogue {number} turn {place}"


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def as_lines(rows: Sequence[Any]) -> bytes:
    return b"".join(as_json(row) + b"\n" for row in rows)


def as_csv(*rows: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def as_zip(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        # With the time of writing, equal files would have different checksums.
        archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def as_tgz(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


# --- contents, by file --------------------------------------------------------------------------

USR = [
    {
        "context": f"{said(n, 0)}\n{said(n, 1)}\n",
        "responses": [
            {"response": said(n, 2 + r), "model": f"m{r}", "Maintains Context": [1, 2, 3]}
            for r in range(2)
        ],
    }
    for n in range(3)
]
GRADE = [
    {
        "Dataset": "convai2",
        "ID": n,
        "Context": f"{said(n, 0)} ||| {said(n, 1)}",
        "Response": said(n, 2),
        "DialogModel": "m",
        "HumanScores": "[1, 4, 5]",
    }
    for n in range(3)
]
FED = [
    {
        "context": f"User: {said(n, 0)}\nSystem: {said(n, 1)}",
        "response": f"System: {said(n, 2)}",
        "system": "m",
        "annotations": {"Relevant": [0, 1, 2, "N/A"]},
    }
    for n in range(3)
]
CONTURE = [
    {
        "dialog_id": n,
        "turns": [
            {"user": said(n, t), "chatbot": said(n, t + 5), "overall impression": t % 3}
            for t in range(3)
        ],
    }
    for n in range(3)
]
GUPTA = as_csv(
    ("model", "context_id", "human_average_rating", "response", "context"),
    *(("m", n, 2.5, said(n, 2), f"{said(n, 0)} |||| {said(n, 1)}") for n in range(3)),
)
ZHAO = as_csv(
    ("context", "response", "rating"),
    *((f"{said(n, 0)}\n{said(n, 1)}", said(n, 2), 3) for n in range(3)),
)
PLUS = [
    {
        ("dialog_id" if split == "train" else "id"): n,
        "context": [said(n + 10 * at, 0), said(n + 10 * at, 1)],
        "positive_responses": ["fits"],
        **(
            {}
            if split == "train"
            else {
                "adversarial_negative_responses": ["wrong"],
                "random_negative_responses": ["random"],
            }
        ),
    }
    for at, split in enumerate(("train", "dev", "test"))
    for n in range(3)
]
DAILY = {
    "data": [
        {"dialogue_id": f"d{n}", "dialogue": [{"utterance": said(n, place)} for place in range(3)]}
        for n in range(4)
    ]
}
TOPICAL = {
    part: {
        f"c{n}": {"content": [{"message": said(n + at, p)} for p in range(3)]} for n in range(20)
    }
    for part, at in (("freq", 0), ("rare", 50))
}
MULTIWOZ = {
    split: {
        f"{split}{n}.json": {
            "log": [
                {"text": said(n + at, 0), "metadata": {}, "dialog_act": {}},
                {"text": said(n + at, 1), "metadata": {"hotel": {"semi": {"area": "north"}}}},
            ]
        }
        for n in range(12)
    }
    for split, at in (("train", 0), ("val", 20), ("test", 40))
}


def chats(first: int, count: int) -> bytes:
    """Return dialogues in the format of ConvAI2's files."""
    lines = []
    for n in range(first, first + count):
        lines += [f"1 your persona: i am number {n} .", f"2 {said(n, 0)}\t{said(n, 1)}"]
        lines += [f"3 {said(n, 2)}\t{said(n, 3)}"]
    return "".join(f"{line}\n" for line in lines).encode()


PERSONA, VALID = (
    "convai2/train_self_original_no_cands.txt",
    "convai2/valid_self_original_no_cands.txt",
)
SPLIT_CSV = "dailydialog/split.csv"
DAILY_ZIP = "TLiDB_DailyDialog.zip"
DSTC7 = "evaluation/dstc7/dstc7-task2-human_eval.tgz"
TABLES = {
    "dstc7-task2-context.tsv": "InstanceID\tContext\n1\tparagraph one\n2\tparagraph two\n",
    "dstc7-task2-human-eval-per-judge.tsv": "InstanceID\tSystemID\tRelevance\n1\tA\t3\n2\tA\t4\n",
    "dstc7-task2-system_responses.tsv": "InstanceID\tSystemID\tResponse\n1\tA\tyes\n2\tA\tno\n",
    "dstc7-task2-gold_responses.tsv": "InstanceID\tgold\n1\tyes\n2\tno\n",
}

FILES: dict[str, bytes] = {
    "evaluation/usr/persona_usr.json": as_json(USR),
    "evaluation/grade/human_judgement.json": as_json(GRADE),
    "evaluation/fed/fed_data.json": as_json(FED),
    "evaluation/conture/conture.json": as_json(CONTURE),
    "evaluation/gupta/mturk_rating_processed_output.csv": GUPTA,
    "evaluation/zhao/persona-zhao.csv": ZHAO,
    DSTC7: as_tgz({name: text.encode() for name, text in TABLES.items()}),
    "dailydialog_pp/data_positives.jsonl": as_lines(PLUS[:3]),
    "dailydialog_pp/dev.jsonl": as_lines(PLUS[3:6]),
    "dailydialog_pp/test.jsonl": as_lines(PLUS[6:]),
    DAILY_ZIP: as_zip("TLiDB_DailyDialog/TLiDB_DailyDialog.json", as_json(DAILY)),
    SPLIT_CSV: b"dialogue_id,split\nd0,train\nd1,train\nd2,valid\nd3,test\n",
    "dailydialog/validation/dialogues.txt": b"a b __eou__ c d __eou__\nj __eou__ k __eou__\n",
    "dailydialog/test/dialogues.txt": b"e f __eou__ g h __eou__\n",
    "topical_chat/valid_freq.json": as_json(TOPICAL["freq"]),
    "topical_chat/valid_rare.json": as_json(TOPICAL["rare"]),
    VALID: chats(0, 40),
    PERSONA: chats(100, 10),
    **{f"multiwoz20/{name}.json": as_json(value) for name, value in MULTIWOZ.items()},
    **{
        f"own/{split}.jsonl": as_lines(
            [{"utterances": [said(n + at, 0), said(n + at, 1)]} for n in range(3)]
        )
        for split, at in (("train", 200), ("dev", 210), ("test", 220))
    },
    **{
        f"{split}.tsv": f"{said(n, 0)}\t{said(n, 1)}\n".encode()
        for n, split in enumerate(("train", "dev", "test"))
    },
    **{
        f"goemotions/{name}.csv": as_csv(
            ("label", "content"), *((1, said(n + at, 0)) for n in range(20))
        )
        for name, at in (("dev", 0), ("test", 30))
    },
    **{
        f"20news-bydate-{part}/{label}/1": f"From: x\n\n{said(n, at)}".encode()
        for n, label in enumerate(NEWSGROUP_LABELS)
        for at, part in enumerate(("train", "test"))
    },
    "own_words/vectors.txt": b"word 0.5 1.0\nother 1.0 2.0\n",
    "judgements/ratings.csv": b"model,instance,rater,empathy,relevance,fluency\nm,1,r,1,2,3\n",
    "judgements/choices.csv": b"first,second,instance,rater,choice\na,b,1,r,first\n",
    "judgements/ties.csv": b"choice\ntie\nfirst\n",
}
"""Path below a release's folder → content."""


def write(folder: Path) -> None:
    """Write all files under ``folder``, and a tiny EmpatheticDialogues."""
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    tiny.write_release(folder, 0, 40)
