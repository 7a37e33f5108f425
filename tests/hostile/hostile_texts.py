"""Hostile text files: encodings, CSV and JSON."""

from __future__ import annotations

import csv
import json
import random

from hostile_cases import (
    GOOD,
    GOOD_CSV,
    NOTE,
    OK,
    REFUSED,
    arrow_bytes,
    case,
    changed,
    csv_case,
    dialogues,
    joined,
    json_case,
    jsonl,
    jsonl_case,
    label_case,
    lines,
    packed,
    parquet,
    raw,
    table,
    turns_case,
    written,
)

# --- common valid files --------------------------------------------------------------------------

case("good JSON lines", OK, jsonl(), "# 40 train dialogues, 120 turns")
case("good JSON", OK, raw("data.json", json.dumps(dialogues())), "# 40 train dialogues, 120 turns")
case("good CSV", NOTE, raw("data.csv", GOOD_CSV), "# 40 train dialogues")
case("good TSV", NOTE, raw("data.tsv", joined(table(), "\t")), "# 40 train dialogues")
case("good Parquet", OK, parquet(), "# 40 train dialogues, 120 turns")
case("good Arrow stream", OK, raw("data.arrow", arrow_bytes()), "# 40 train dialogues, 120")
case(
    "good Arrow file", OK, raw("data.arrow", arrow_bytes(stream=False)), "# 40 train dialogues, 120"
)
case("good gz", OK, raw("data.jsonl.gz", packed(GOOD.encode())), "# 40 train dialogues, 120")
case("good CSV in gz", NOTE, raw("data.csv.gz", packed(GOOD_CSV.encode())), "# 40 train dialogues")


# --- encodings -----------------------------------------------------------------------------------

for kind, text in (("jsonl", GOOD), ("csv", GOOD_CSV)):
    accent = text.replace("number", "numéro")
    passes = OK if kind == "jsonl" else NOTE
    case(f"byte order mark, {kind}", NOTE, raw(f"d.{kind}", "\ufeff" + text), "# 40 train")
    for codec in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        case(f"{codec}, {kind}", REFUSED, raw(f"d.{kind}", text.encode(codec)))
    for codec in ("latin-1", "cp1252", "cp037"):
        content = accent.encode(codec).replace(b"\\u00e9", b"\xe9")
        result = None if kind == "jsonl" and codec != "cp037" else REFUSED
        case(f"{codec}, {kind}", result, raw(f"d.{kind}", content))
    case(f"a byte of no character, {kind}", REFUSED, raw(f"d.{kind}", text.encode() + b"\xff\n"))
    half = text.encode() + "é".encode()[:1]
    case(f"half a character at the end, {kind}", REFUSED, raw(f"d.{kind}", half))
    surrogates = text.encode().replace(b"number", b"\xed\xa0\x80\xed\xb0\x80")
    case(f"surrogates in UTF-8, {kind}", REFUSED, raw(f"d.{kind}", surrogates))
    case(
        f"overlong UTF-8, {kind}",
        REFUSED,
        raw(f"d.{kind}", text.encode().replace(b"fine", b"\xc0\xaf").replace(b"gone", b"\xc0\xaf")),
    )
    case(f"NUL bytes, {kind}", REFUSED, raw(f"d.{kind}", text.replace("number", "num\0ber")))
    case(f"NUL bytes late, {kind}", REFUSED, raw(f"d.{kind}", text + text[:-3] + "\0\n"))
    case(f"Windows line ends, {kind}", NOTE, raw(f"d.{kind}", text.replace("\n", "\r\n")), "# 40")
    case(f"old Macintosh line ends, {kind}", None, raw(f"d.{kind}", text.replace("\n", "\r")))
    case(f"no line end at the end, {kind}", passes, raw(f"d.{kind}", text.rstrip("\n")), "# 40")
    odd = text.replace("number", "a\u2028b\u2029c\x0bd\x0ce\x85f")
    case(
        f"line ends of Unicode in texts, {kind}",
        None if kind == "jsonl" else NOTE,
        raw(f"d.{kind}", odd),
    )
    control = text.replace(
        "number", "\x1b[2J\u202e\u200b\x07" if kind == "csv" else "\\u001b[2J\u202e\u200b\\u0007"
    )
    case(f"terminal escapes in texts, {kind}", passes, raw(f"d.{kind}", control), "# 40")

jsonl_case("halves of surrogate pairs", REFUSED, GOOD.replace("number", "\\ud800"))
jsonl_case("NUL as an escape", None, GOOD.replace("number", "\\u0000"))
turns_case("emojis and scripts", OK, lambda n: [f"👩‍💻 {n} 好 שלום", "مرحبا é"], "# 40")


# --- CSV -----------------------------------------------------------------------------------------

csv_case(
    "one cell more in every row",
    REFUSED,
    joined([table()[0], *([*row, "x"] for row in table()[1:])]),
    "d.csv:2",
)
csv_case("one cell more in a row", REFUSED, changed(9, lambda row: [*row, "x"]), "d.csv:10")
csv_case("one cell less in a row", REFUSED, changed(9, lambda row: row[:2]), "d.csv:10")
csv_case(
    "comma in a text without quotes",
    REFUSED,
    changed(9, lambda row: [row[0], "a, b", row[2]]),
    "d.csv:10",
)
csv_case("quotation mark left open", REFUSED, changed(9, lambda row: [row[0], '"open', row[2]]))
csv_case(
    "two stray quotation marks",
    None,
    GOOD_CSV.replace("my number 3 ", '"my number 3 ').replace(
        "my number 9 is gone", 'my number 9 is gone"'
    ),
)
csv_case("a stray quotation mark within", None, GOOD_CSV.replace("number 3", 'numb"er 3'))
csv_case(
    "backslash before a quotation mark",
    None,
    written(table(), quoting=csv.QUOTE_ALL).replace("number 3", 'a \\"b\\" c'),
)
csv_case(
    "quotes doubled",
    NOTE,
    written([[c.replace("number", '"number"') for c in row] for row in table()]),
    "# 40",
)
csv_case(
    "line ends in quotes",
    NOTE,
    written([table()[0], *([c.replace("number", "num\nber") for c in row] for row in table()[1:])]),
    "# 40",
)
csv_case("semicolons", NOTE, joined(table(), ";"), "# 40")
csv_case("bars", None, joined(table(), "|"))
csv_case("tabs in .csv", NOTE, joined(table(), "\t"), "# 40")
case("commas in .tsv", None, raw("d.tsv", GOOD_CSV))
csv_case(
    "header of commas, rows of semicolons", REFUSED, joined(table()[:1]) + joined(table()[1:], ";")
)
csv_case("no header", None, joined(table()[1:]))
csv_case("header alone", REFUSED, joined(table()[:1]))
csv_case("empty CSV", REFUSED, "")
csv_case("blank CSV", REFUSED, "\n\n  \n")
csv_case("commas alone", REFUSED, ",,\n" * 20)
csv_case("blank lines between rows", NOTE, GOOD_CSV.replace("\n", "\n\n"), "# 40")
csv_case("a column twice", REFUSED, GOOD_CSV.replace("id,text,intent", "text,text,intent"))
csv_case("a column without a name", None, GOOD_CSV.replace("id,text", ",text"))
csv_case(
    "index of pandas",
    NOTE,
    "".join(f"{'' if n == 0 else n - 1},{line}\n" for n, line in enumerate(GOOD_CSV.splitlines())),
    "# 40",
)
csv_case("comma after the header", REFUSED, GOOD_CSV.replace("intent", "intent,", 1))
csv_case("first line of Excel", None, "sep=,\n" + GOOD_CSV)
csv_case("comment before the header", None, "# exported today\n" + GOOD_CSV)
csv_case(
    "blanks around names of columns",
    None,
    GOOD_CSV.replace("id,text,intent", " id , text , intent "),
)
csv_case(
    "control characters in names of columns",
    None,
    GOOD_CSV.replace("id,text,intent", "id,\x1b[2Jtext,intent"),
)
csv_case(
    "cell of 200,000 characters",
    None,
    GOOD_CSV.replace("number 3 ", "number " + "a" * 200_000 + " "),
)
csv_case(
    "cell of five million characters",
    None,
    GOOD_CSV.replace("number 3 ", "number " + "a" * 5_000_000 + " "),
)
csv_case("10,000 columns", None, joined([[f"c{n}" for n in range(10_000)], *[["x"] * 10_000] * 3]))
csv_case("a million commas", REFUSED, "," * 1_000_000 + "\n", "20,000 cells")
csv_case("a million quotation marks", None, '"' * 1_000_000)
csv_case("a CSV file of one line", REFUSED, "x" * 1_000_000)
csv_case("formulas in cells", NOTE, GOOD_CSV.replace("my number", "=cmd|' /C calc'!A0"), "# 40")
csv_case("JSON in .csv", REFUSED, json.dumps(dialogues()))
csv_case("HTML in .csv", REFUSED, "<!DOCTYPE html>\n<html><body>404, not found</body></html>\n")
csv_case("20,000 rows", None, joined(table(20_000)))


# --- JSON ----------------------------------------------------------------------------------------

jsonl_case("a key twice", REFUSED, GOOD.replace('"id": "d3"', '"id": "x", "id": "d3"'), "d.jsonl:4")
json_case(
    "a key twice in an object of JSON", REFUSED, '{"a": [{"text": "b"}], "a": [{"text": "c"}]}'
)
jsonl_case(
    "NaN and infinity",
    None,
    GOOD.replace('"id": "d3"', '"id": NaN').replace('"id": "d4"', '"id": -Infinity'),
)
jsonl_case("float beyond all", None, GOOD.replace('"id": "d3"', '"id": 1e999'))
jsonl_case("number of 5,000 digits", REFUSED, GOOD.replace('"id": "d3"', f'"id": {"9" * 5000}'))
json_case("lists nested deeply", REFUSED, "[" * 100_000 + "]" * 100_000)
jsonl_case("objects nested deeply", REFUSED, '{"a": ' * 100_000 + "1" + "}" * 100_000 + "\n")
jsonl_case(
    "turns nested deeply",
    None,
    GOOD.replace('["hello number 3"', "[" * 500 + "]" * 500 + ', ["hello number 3"'),
)
json_case("JSON cut off", REFUSED, json.dumps(dialogues())[:-20])
jsonl_case("JSON lines cut off", REFUSED, GOOD[:-20])
json_case("comma at the end", REFUSED, json.dumps(dialogues())[:-1] + ",]")
json_case("comments in JSON", REFUSED, "// mine\n" + json.dumps(dialogues()))
json_case("Python's quotes", REFUSED, str(dialogues()))
json_case("two JSON texts", REFUSED, json.dumps(dialogues()) * 2)
for value in (
    '"text"',
    "7",
    "null",
    "true",
    "[]",
    "{}",
    '["a", "b"]',
    "[[1], [2]]",
    "[null]",
    "[{}]",
    '[{"a": 1}]',
    "",
):
    json_case(f"JSON of {value or 'nothing'}", REFUSED, value)
    jsonl_case(f"JSON lines of {value or 'nothing'}", REFUSED, value + "\n")
jsonl_case("blank lines in JSON lines", NOTE, GOOD.replace("\n", "\n\n \n"), "# 40")
jsonl_case(
    "a bad line in the middle", REFUSED, GOOD.replace('{"id": "d7"', '{"id" "d7"'), "d.jsonl:8"
)
jsonl_case("a list among the lines", REFUSED, GOOD + "[1, 2]\n", "d.jsonl:41")
jsonl_case("several objects on a line", REFUSED, GOOD.replace("\n", " ", 1))
jsonl_case("a JSON list in .jsonl", None, json.dumps(dialogues()))
json_case("JSON lines in .json", None, GOOD)
jsonl_case("raw control characters in texts", REFUSED, GOOD.replace("number 3", "num\tber 3"))
case("keys that are empty", None, jsonl(**{"": "x"}))
case("keys with dots and brackets", None, jsonl(**{"a.b[]": "x", "c[0]": lambda n: "xy"[n % 2]}))
case("keys with line ends", None, jsonl(**{"a\nb: !!python": lambda n: "xy"[n % 2]}))
case("keys of 100,000 letters", None, jsonl(**{"k" * 100_000: lambda n: "xy"[n % 2]}))
case("5,000 keys", None, jsonl(count=5, **{f"k{n}": "x" for n in range(5000)}))
jsonl_case(
    "keys in another order in each row",
    OK,
    lines(
        [dict(random.Random(n).sample(sorted(row.items()), 3)) for n, row in enumerate(dialogues())]
    ),
    "# 40",
)
label_case("a key of other types", REFUSED, [7, "a", None, [1], {"a": 1}])
jsonl_case("a line of 20 megabytes", None, GOOD.replace("number 3", "a" * 20_000_000))
jsonl_case("a line without an end", REFUSED, '{"a": "' + "b" * 30_000_000)
