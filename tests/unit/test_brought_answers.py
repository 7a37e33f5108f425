"""Raters and repliers of a user: their files, their numbers, and the items that they answer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from test_prompted_raters import STUDY

from empathetic_study import make_with_statistics
from tasktransfer.cli import main
from tasktransfer.data.brought import read_ratings, read_replies
from tasktransfer.designs import open_study
from tasktransfer.errors import DataError, TaskTransferError
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

RATER: dict[str, Any] = {
    **STUDY,
    "study": "my judge",
    "data": {"release": "tiny_world", "tiny_world": {"seed": 0, "dialogues": 240}},
    "domains": ["Harbour", "Orchard"],
}

Rated = tuple[Study, list[dict[str, Any]]]
"""A study, and its items."""


def write_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Rated:
    """Return a study with three brought raters, and the items that they rate.

    One repeats the cosine's ratings on another scale, one is noise, one is close to the human mean.
    """
    folder = tmp_path_factory.mktemp("rated")
    config = {**RATER, "results": str(folder / "results")}
    study = make_with_statistics(config, folder / "first.yaml")
    assert main(["items", "--config", study.config_file, "--out", str(folder / "items.jsonl")]) == 0
    items = read_lines(folder / "items.jsonl")
    ratings = read_table(study, "ratings")
    ours = ratings[ratings["method"] == "cosine-last"].set_index("item")["value"]
    gold = read_table(study, "items").set_index("item")["gold"]
    chance = random.Random(0)
    raters = {
        "copy": lambda item: 1 + 4 * ours[item],
        "noise": lambda item: chance.random(),
        "people": lambda item: float(gold[item]) + chance.gauss(0, 0.05),
    }
    for name, rate in raters.items():
        rows = [{**item, "value": float(rate(item["item"]))} for item in items]
        write_lines(folder / f"{name}.jsonl", rows[::-1])  # in any order
    config["brought"] = [{"name": n, "file": str(folder / f"{n}.jsonl")} for n in raters]
    return make_with_statistics(config, folder / "study.yaml"), items


def read_table(study: Study, name: str) -> pd.DataFrame:
    return pd.read_parquet(Path(study.tables, f"{name}.parquet"))


def test_items_have_texts_and_no_ratings(rated: Rated) -> None:
    study, items = rated
    assert {*items[0]} == {"set", "item", "criterion", "context", "response"}
    assert [item["item"] for item in items] == read_table(study, "items")["item"].tolist()
    assert isinstance(items[0]["context"], list)


def test_a_rater_with_our_ratings_has_our_numbers(rated: Rated) -> None:
    found = read_table(rated[0], "correlations").set_index(["method", "set"])
    columns = ["value", "low", "high", "p", "seeds", "pearson", "kendall", "contexts"]
    own, copy = (found.loc[name, columns] for name in ("cosine-last", "copy"))
    pd.testing.assert_frame_equal(own, copy, check_exact=False, rtol=1e-9)
    tests = read_table(rated[0], "tests")
    pair = tests[(tests["method"] == "copy") & (tests["against"] == "cosine-last")]
    assert pair["difference"].tolist() == pytest.approx([0, 0], abs=1e-9)
    assert pair["seed"].tolist() == ["mean", "mean"]  # neither was trained


def test_noise_is_not_significant_and_people_are(rated: Rated) -> None:
    found = read_table(rated[0], "correlations").set_index("method")
    assert (found.loc["noise", "q"] > 0.01).all()  # by chance, 5 % of noise is below 0.05
    assert (found.loc["people", "value"] > 85).all()  # not 100, because their ratings have noise
    assert (found.loc["people", "q"] < 0.01).all()
    tests = read_table(rated[0], "tests").set_index(["method", "against"])
    assert (tests.loc[("people", "cosine-last"), "q"] < 0.05).all()
    ours = tests.loc[("people", "single")]  # trained with one seed, so nothing is tested
    assert ours["q"].isna().all()


def test_a_changed_file_is_another_node_and_nothing_else_changes(
    rated: Rated, tmp_path: Path
) -> None:
    study, _ = rated
    text = Path(study.config_file).read_text(encoding="utf-8")
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    before = {node.digest for node in study.plan.nodes}
    file = Path(study.config.brought_files["noise"])
    kept = file.read_text(encoding="utf-8")
    rows = read_lines(file)
    rows[0]["value"] += 1
    write_lines(file, rows)
    after = {node.digest for node in open_study(tmp_path / "study.yaml").plan.nodes}
    file.write_text(kept, encoding="utf-8")
    assert len(before - after) == len(after - before) == 1
    open_study(tmp_path / "study.yaml")
    file.rename(file.with_suffix(".away"))  # tables need the records alone
    assert {node.digest for node in open_study(tmp_path / "study.yaml").plan.nodes} == before
    file.with_suffix(".away").rename(file)


def test_the_page_shows_the_raters(rated: Rated, capsys: pytest.CaptureFixture[str]) -> None:
    study, _ = rated
    for command in ("figures", "report"):
        assert main([command, "--config", study.config_file]) == 0
    page = Path(study.report).read_text(encoding="utf-8")
    for name in ("copy", "noise", "people"):
        assert f">{name}<" in page
    table = Path(study.figures, "table3.md").read_text(encoding="utf-8")
    (average,) = (line for line in table.splitlines() if line.startswith("| average of 1: in-dom"))
    assert average.count("(one run)") == 1  # single; the raters have no runs


ITEMS = [Instance(f"Market_Tiny-{n}", "c", "t", "Hello.", 0, {}, (), ("0.5",)) for n in range(3)]
RIGHT = [{"set": "Market_Tiny", "item": f"Market_Tiny-{n}", "value": n} for n in range(3)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"item": "Market_Tiny-7"}, ":2, item: 'Market_Tiny-7' is not an item of the study (the "),
        ({"item": "Market_Tiny-0"}, ":2, item: 'Market_Tiny-0' is in line 1 too. Remove one"),
        (
            {"set": "Harbour_Tiny"},
            ":2, set: The set is 'Harbour_Tiny', but Market_Tiny-1 is an item",
        ),
        ({"value": "4"}, ":2, value: The value is '4', but it must be a finite number. Give the"),
        ({"value": True}, ":2, value: The value is true, but it must be a finite number"),
        ({"value": None}, ":2, value: The value is null, but it must be a finite number"),
        ({"value": float("nan")}, ":2, value: The value is nan, but it must be a finite number"),
        ({"value": float("inf")}, ":2, value: The value is inf, but it must be a finite number"),
    ],
)
def test_a_wrong_line_is_reported_with_its_item(
    change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "ratings.jsonl"
    write_lines(file, [RIGHT[0], {**RIGHT[1], **change}, RIGHT[2]])
    with pytest.raises(DataError) as error:
        read_ratings(file, ITEMS)
    assert str(error.value).startswith(f"{file}{told}")


def test_missing_items_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "ratings.jsonl"
    write_lines(file, RIGHT[:1])
    with pytest.raises(DataError, match="lacks answers to 2 of 3 items"):
        read_ratings(file, ITEMS)
    write_lines(file, [{"item": row["item"], "reply": 3} for row in RIGHT])
    with pytest.raises(DataError, match="The value is 3, but it must be a string"):
        read_replies(file, ITEMS)


@pytest.mark.parametrize(
    ("brought", "told"),
    [
        ([{"name": "panel", "file": "a"}], "'panel' is the name of a method of the study"),
        ([{"name": "a", "file": "a"}, {"name": "a", "file": "b"}], "Another entry has the name"),
        (
            [{"name": "a", "file": "nothing.jsonl"}],
            "nothing.jsonl: The file does not exist. Run `taskt",
        ),
    ],
)
def test_wrong_entries_are_reported(
    brought: list[dict[str, str]], told: str, tmp_path: Path
) -> None:
    config = {**RATER, "results": str(tmp_path / "results"), "brought": brought}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(TaskTransferError, match=told):
        open_study(tmp_path / "study.yaml")


def test_items_that_are_not_prepared_or_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "study.yaml", str(tmp_path / "items.jsonl")
    file.write_text(yaml.safe_dump({**RATER, "results": str(tmp_path / "results")}))
    assert main(["items", "--config", str(file), "--out", out]) != 0
    assert (
        "The dialogues are not prepared yet. Prepare the dialogues with `snakemake"
        in capsys.readouterr().err
    )
    transfer = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "demo.yaml"
    assert main(["items", "--config", str(transfer), "--out", out]) != 0
    assert "study with the design transfer has no items" in capsys.readouterr().err
