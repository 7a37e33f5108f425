"""Valid files with hostile contents: labels, structures and splits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hostile_cases import (
    ANSWER,
    GOOD,
    GOOD_CSV,
    MIB,
    OK,
    REFUSED,
    TOLD,
    Build,
    case,
    csv_case,
    dialogues,
    hello,
    id_case,
    joined,
    jsonl,
    label_case,
    lines,
    raw,
    turns_case,
)

# --- labels --------------------------------------------------------------------------------------

label_case("one label alone", None, lambda n: "billing")
label_case("a label for each dialogue", None, lambda n: f"label {n}")
label_case("labels that are null", None, lambda n: None if n % 4 == 0 else "ab"[n % 2])
label_case("labels that are empty", None, lambda n: "" if n % 4 == 0 else "ab"[n % 2])
label_case("labels that are true and false", None, lambda n: n % 2 == 0)
label_case("labels that are numbers", None, lambda n: n % 3)
label_case("labels 1, 1.0 and '1'", TOLD, [1, 1.0, "1", 2])
label_case("labels true and 1", TOLD, [True, 1, "true"])
label_case("labels that are digits of all kinds", None, ["²", "--1", "１", "Ⅷ", "1e5"])
label_case("labels of 5,000 digits", None, lambda n: "9" * 5000 if n % 2 else "1")
label_case("labels of a megabyte", None, lambda n: ("a" * MIB) if n == 3 else "ab"[n % 2])
label_case(
    "labels that are YAML",
    None,
    ["z\n  missing: skip #", "null", "~", "{a: b}", "- x", "!!python/object:os.system"],
)
label_case("labels that are Jinja", None, ["{{ 7 * 7 }}", "{% for x in y %}"])
label_case("labels that differ in form", TOLD, ["caf\u00e9", "cafe\u0301", "tea"])
label_case("labels that differ in blanks", TOLD, ["a", "a ", " a", "b"])
label_case("labels that differ in case", None, ["Joy", "joy", "JOY", "sad"])
label_case("labels without a width", TOLD, ["a", "a\u200b", "b"])
label_case("labels with escapes", OK, ["\x1b[31mred", "blue\x07"])
label_case("labels from right to left", None, ["\u202egnillib", "login"])
label_case("labels that are formulas", None, ["=1+1", "@SUM(A1)"])
label_case("labels that are lists", None, [["a"], ["a", "b"], []])
label_case("labels that are objects", None, lambda n: {"name": "ab"[n % 2]})
label_case("labels as text of a list", None, ["['a', 'b']", "['a']"])
label_case("labels with commas and bars", None, ["a, b", "a | b", "a;b"])
case("2,000 labels", None, jsonl(count=4000, intent=lambda n: f"label {n % 2000}"))
label_case("labels of paths", None, ["../../x", "/etc/passwd"])
label_case("a label seen once", None, lambda n: "rare" if n == 7 else "ab"[n % 2])
case(
    "labels in a part of the rows",
    None,
    jsonl(
        [
            {k: v for k, v in row.items() if k != "intent" or n % 3}
            for n, row in enumerate(dialogues())
        ]
    ),
)


# --- structure -----------------------------------------------------------------------------------

turns_case("no dialogue has a turn", REFUSED, lambda n: [])
turns_case("a dialogue without turns", None, lambda n: [] if n == 3 else [hello(n), ANSWER])
turns_case("turns that are null", None, lambda n: None if n == 3 else [hello(n), ANSWER])
turns_case("a turn that is null", None, lambda n: [hello(n), None if n == 3 else ANSWER])
turns_case("turns that are empty texts", None, lambda n: [hello(n), ""])
turns_case("turns that are blanks", REFUSED, lambda n: [" ", "\u00a0"])
turns_case("turns that are numbers", None, lambda n: [n, n + 1])
turns_case("turns that are a number", None, lambda n: n)
turns_case("turns as one text", None, lambda n: f"A: {hello(n)}\nB: {ANSWER}")
turns_case("turns as JSON in a text", None, lambda n: json.dumps([hello(n), ANSWER]))
turns_case("turns as Python in a text", None, lambda n: str([hello(n), ANSWER]))
turns_case("turns as a call in a text", None, lambda n: "[__import__('os').system('touch canary')]")
turns_case("turns of other shapes", None, [["a", "b"], [{"text": "a"}], "a", None])
turns_case("turns without a text", None, lambda n: [{"speaker": "a"}, {"speaker": "b"}])
turns_case(
    "turns with two texts", None, lambda n: [{"text": hello(n), "translation": f"hallo {n}"}] * 2
)
turns_case(
    "turns numbered backwards",
    None,
    lambda n: [{"turn": 2, "text": "bye"}, {"turn": 1, "text": hello(n)}],
)
turns_case("a dialogue of 50,000 turns", None, lambda n: ["hello"] * (50_000 if n == 3 else 2))
turns_case(
    "a turn of ten megabytes", None, lambda n: ["a " * (5 * MIB) if n == 3 else hello(n), ANSWER]
)
case("a row alone", None, jsonl(count=1))
case("two rows", None, jsonl(count=2))
case("the same dialogue forty times", None, jsonl([dialogues(1)[0]] * 40))
id_case("ids that repeat", None, lambda n: "same")
id_case("ids that are null", None, lambda n: None if n % 2 else f"d{n}")
id_case("ids that are floats", None, lambda n: n + 0.5)
id_case("ids that are lists", None, lambda n: [n])
id_case("ids that are texts of a megabyte", None, lambda n: f"{n}" + "a" * MIB)


def turn_rows(place: Callable[[int], tuple[int, int]]) -> str:
    """Return a CSV file with one row per turn, given its dialogue and its number in it."""
    rows = [[*map(str, place(n)), hello(n), ("joy", "anger")[n % 2]] for n in range(160)]
    return joined([["dialogue_id", "turn", "text", "emotion"], *rows])


csv_case("a row for each turn", None, turn_rows(lambda n: divmod(n, 4)), "# 40")
csv_case("rows of dialogues in a mix", None, turn_rows(lambda n: (n % 40, n // 40)))
csv_case("a row for each turn, and turns twice", None, turn_rows(lambda n: (n // 4, 1)))
turns_case(
    "turns that answer themselves",
    None,
    lambda n: [{"id": "a", "reply_to": "a", "text": hello(n)}] * 2,
)
csv_case("numbers alone", REFUSED, joined([["a", "b"], *([str(n), str(n * n)] for n in range(40))]))
case("texts without a label", REFUSED, jsonl([{"turns": row["turns"]} for row in dialogues()]))
case("labels without a text", REFUSED, jsonl([{"intent": row["intent"]} for row in dialogues()]))
case(
    "a list that one row has",
    None,
    jsonl([{**row, "members": ["a", "b"]} if n == 3 else row for n, row in enumerate(dialogues())]),
)
turns_case("objects in objects", None, lambda n: {"a": {"b": {"c": [{"d": {"text": hello(n)}}]}}})
case(
    "a tree of keys",
    None,
    jsonl(
        count=3,
        more=lambda n: {
            f"a{i}": {f"b{j}": {f"c{k}": "x" for k in range(12)} for j in range(12)}
            for i in range(12)
        },
    ),
)


# --- splits --------------------------------------------------------------------------------------


def files(**contents: str) -> Build:
    def build(folder: Path) -> list[str]:
        for name, content in contents.items():
            (folder / f"{name}.jsonl").write_text(content)
        return [f"{name}.jsonl" for name in contents]

    return build


TRAIN, DEV, TEST = (lines(dialogues(60)[n : n + 20]) for n in (0, 20, 40))
case("three splits", OK, files(train=TRAIN, dev=DEV, test=TEST), "# 20 train.*20 dev.*20 test")
case("test is train", None, files(train=TRAIN, dev=DEV, test=TRAIN))
case("an empty dev file", REFUSED, files(train=TRAIN, dev="", test=TEST))
case("train alone is empty", REFUSED, files(train="", test=TEST))
case("two files of a split", None, files(train_1=TRAIN, train_2=DEV, test=TEST))
case("files of no split", None, files(a=TRAIN, b=DEV))
case("splits with other keys", None, files(train=TRAIN, test=TEST.replace("intent", "label")))
case("splits with other shapes", None, files(train=TRAIN, test=lines(dialogues(turns="hello"))))
case("labels that only test has", None, files(train=TRAIN, test=TEST.replace("login", "new")))
case("labels that only train has", None, files(train=TRAIN, test=TEST.replace("login", "billing")))
case(
    "ids that start anew",
    None,
    files(train=TRAIN, dev=DEV.replace('"d2', '"d'), test=TEST.replace('"d4', '"d')),
)
case("the same file twice", None, lambda folder: [raw("d.jsonl", GOOD)(folder), "d.jsonl"])
case("a column of splits", None, jsonl(split=lambda n: ["train", "dev", "test"][n % 3]))
case("a column of odd splits", None, jsonl(split=lambda n: ["train", "dev", "test", "../x"][n % 4]))
case("a column of null splits", None, jsonl(split=lambda n: None))
case(
    "files of two formats",
    None,
    lambda folder: [raw("train.jsonl", TRAIN)(folder), raw("test.csv", GOOD_CSV)(folder)],
)
case(
    "300 files",
    None,
    lambda folder: [
        str(raw(f"train-{n}.jsonl", lines(dialogues(400)[n : n + 1]))(folder)) for n in range(300)
    ],
)
