"""Rating sheets: what a rater sees, what the key keeps, and how answers are read."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tasktransfer.cli import main
from tasktransfer.designs.empathetic.human import read_choices, read_ratings
from tasktransfer.designs.empathetic.replies import AnsweredContext
from tasktransfer.designs.empathetic.sheets.items import CHECKS, Kind
from tasktransfer.designs.empathetic.sheets.read import (
    RaterAnswers,
    read_answers,
    read_key,
)
from tasktransfer.designs.empathetic.sheets.write import (
    Sheets,
    plan_sheets,
    render_sheet,
    write_sheets,
)
from tasktransfer.errors import ConfigError, DataError

MODELS = ("Gold", "ret-base", "gen-base", "gen-multitask")
CONTEXTS = [
    AnsweredContext(
        f"hit:{n}_conv:{n}#1",
        (f"I lost <my> keys {n}.", "Oh no!", f"It's the {n}th time."),
        {m: f"Reply of number {k} to {n}" for k, m in enumerate(MODELS)},
    )
    for n in range(6)
]


def plan(kind: Kind = "ratings", **changes: int) -> Sheets:
    return plan_sheets(
        CONTEXTS, kind, **{"instances": 5, "raters": 3, "overlap": 2, "seed": 1, **changes}
    )


def answer(sheets: Sheets, name: str, **fixed: Any) -> list[dict[str, Any]]:
    """Return the lines that an attentive rater downloads; ``fixed`` replaces answers to replies."""
    usual: dict[str, Any] = {"empathy": 2, "relevance": 4, "fluency": 5}
    if sheets.kind == "pairs":
        usual = {"choice": "first"}
    lines = []
    for item in sheets.sheets[name]:
        checks = item.meaning.get("check", {})
        told = {k: int(v) if v.isdigit() else v for k, v in checks.items()}
        place = {"key": sheets.key["key"], "sheet": name, "item": item.id}
        lines.append({**place, **(told or {**usual, **fixed})})
    return lines


def write_lines(file: Path, lines: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["ratings", "pairs"])
def test_every_item_is_on_as_many_sheets_as_it_overlaps(kind: Kind) -> None:
    sheets = plan(kind)
    per_context = len(MODELS) if kind == "ratings" else 6
    counts: dict[str, int] = {}
    for items in sheets.sheets.values():
        assert sum("check" in item.meaning for item in items) == CHECKS
        assert len({item.id for item in items}) == len(items)
        for item in items:
            if "check" not in item.meaning:
                counts[item.id] = counts.get(item.id, 0) + 1
    assert len(counts) == 5 * per_context
    assert set(counts.values()) == {2}
    sizes = [len(items) for items in sheets.sheets.values()]
    assert max(sizes) - min(sizes) <= 1
    assert plan(kind).key == sheets.key != plan(kind, seed=2).key


def test_a_sheet_is_blind_and_has_no_address() -> None:
    sheets = plan(instances=2, raters=1, overlap=1)
    page = render_sheet(sheets, "rater-1")
    for told in (*MODELS, "hit:", "http:", "https:", "I lost <my> keys"):
        assert told not in page
    assert "I lost &lt;my&gt; keys" in page
    assert all(item.id in page for item in sheets.sheets["rater-1"])
    speakers = re.findall(r'class="who">(\w+)', page)
    assert speakers == ["Speaker", "Listener", "Speaker"] * (2 * len(MODELS) + CHECKS)


def test_equal_replies_are_rated_once_and_not_compared() -> None:
    context = AnsweredContext("a", ("Hi.",), {"Gold": "Yes.", "ret-base": "No.", "gen-base": "No."})
    told = {"instances": 1, "raters": 1, "overlap": 1, "seed": 0}
    ratings = plan_sheets([context], "ratings", **told)
    models = [item.meaning.get("models") for item in ratings.sheets["rater-1"]]
    assert ["ret-base", "gen-base"] in models and len(models) == 2 + CHECKS
    (line,) = (
        line
        for line, named in zip(answer(ratings, "rater-1"), models, strict=True)
        if named == ["ret-base", "gen-base"]
    )
    rows = _read(ratings, [line])[0].rows
    assert [row[0] for row in rows] == ["ret-base", "gen-base"]
    pairs = plan_sheets([context], "pairs", **told)
    kept = [{i.meaning["first"], i.meaning["second"]} for i in pairs.sheets["rater-1"]
            if "first" in i.meaning]  # fmt: skip
    assert {"ret-base", "gen-base"} not in kept and len(kept) == 2


def _read(
    sheets: Sheets, lines: list[dict[str, Any]], file: Path | None = None
) -> list[RaterAnswers]:
    with tempfile.TemporaryDirectory() as folder:
        return read_answers([write_lines(file or Path(folder, "a.jsonl"), lines)], sheets.key)


def test_answers_become_ratings_that_judgements_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheets = plan()
    key = write_sheets(sheets, tmp_path / "human")[-1]
    assert read_key(key) == json.loads(key.read_text()) == sheets.key
    careless = answer(sheets, "rater-2", fluency=1)
    for line, item in zip(careless, sheets.sheets["rater-2"], strict=True):
        if "check" in item.meaning:
            line["empathy"] = 6 - line["empathy"] if line["empathy"] != 3 else 1
    files = [
        write_lines(tmp_path / "1.jsonl", answer(sheets, "rater-1")),
        write_lines(tmp_path / "2.jsonl", careless),
        write_lines(tmp_path / "3.jsonl", answer(sheets, "rater-3", empathy=4)),
    ]
    out = tmp_path / "ratings.csv"
    words = ["read-sheets", *map(str, files), "--key", str(key), "--out", str(out)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "rater-2: 18 of 18 items answered; left out, because 4 attention checks failed" in told
    rated = {each.model: each for each in read_ratings(out)}
    assert {*rated} == {*MODELS}
    assert all(each.mean["fluency"] == 5 for each in rated.values())
    kept = sum(len(s) - CHECKS for n, s in sheets.sheets.items() if n != "rater-2")
    assert sum(each.ratings for each in rated.values()) == kept


def test_choices_name_the_model_that_was_shown_at_that_place(tmp_path: Path) -> None:
    sheets = plan("pairs", raters=1, overlap=1)
    lines = answer(sheets, "rater-1")
    for line, item in zip(lines, sheets.sheets["rater-1"], strict=True):
        if "first" in item.meaning:  # the rater always prefers gold
            line["choice"] = "first" if item.meaning["first"] == "Gold" else "second"
            if "Gold" not in item.meaning.values():
                line["choice"] = "neither"
    key = write_sheets(sheets, tmp_path)[-1]
    file, out = write_lines(tmp_path / "a.jsonl", lines), tmp_path / "choices.csv"
    assert main(["read-sheets", str(file), "--key", str(key), "--out", str(out)]) == 0
    ratios = read_choices(out)
    assert (ratios.loc["Gold"].drop("Gold") == float("inf")).all()
    assert ratios.drop("Gold").drop(columns="Gold").isna().all().all()


def test_an_unanswered_check_fails() -> None:
    sheets = plan()
    lines = [
        line
        for line, item in zip(answer(sheets, "rater-1"), sheets.sheets["rater-1"], strict=True)
        if "check" not in item.meaning
    ]
    (rater,) = _read(sheets, lines)
    assert (rater.failed, rater.answered) == (CHECKS, len(lines))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"key": "abc"}, ":1, key: 'abc' is not '"),
        ({"sheet": "rater-9"}, ":1, sheet: The sheet 'rater-9' is not listed"),
        ({"item": "0"}, ":1, item: The item '0' is not in the sheet rater-1"),
        ({"empathy": 6}, ":1, empathy: '6' is not an answer to this question. Write one of 1"),
        ({"fluency": None}, ":1, fluency: 'None' is not an answer to this question"),
    ],
)
def test_a_wrong_line_is_reported(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    sheets, file = plan(), tmp_path / "a.jsonl"
    line = answer(sheets, "rater-1")[0]
    with pytest.raises(DataError) as error:
        _read(sheets, [{**line, **change}], file)
    assert str(error.value).startswith(f"{file}{told}")
    with pytest.raises(DataError, match=r"rater-1 is also answered in .*a\.jsonl:1. Remove one"):
        _read(sheets, [line, line], file)


def test_too_large_sheets_and_wrong_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--instances 7: There are only 6 contexts to which all"):
        plan(instances=7)
    with pytest.raises(ConfigError, match="--overlap 4: The number is larger than --raters 3"):
        plan(overlap=4)
    (tmp_path / "key.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"is not a key file for rating sheets\. Specify the key\.json"
    ):
        read_key(tmp_path / "key.json")
