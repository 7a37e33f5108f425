"""A user's own human judgements: their files, their agreement, and their tables in the report."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import yaml

from tasktransfer.cli import main
from tasktransfer.designs import load_config
from tasktransfer.designs.empathetic.frames import FRAMES
from tasktransfer.designs.empathetic.human import read_choices, read_ratings
from tasktransfer.designs.empathetic.judgement_files import write_summary
from tasktransfer.designs.empathetic.shown import TABLES, build_analysis
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.present.tables import PrintedTable, build_printed_table
from tasktransfer.results.frames import Frame, Frames
from tasktransfer.results.store import Metadata, build_frame
from tasktransfer.results.study import Study
from tasktransfer.stats.rater_agreement import Counts, estimate_agreement

DEMO = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "empathetic-demo.yaml"
HEADS = {
    "ratings": "model,instance,rater,empathy,relevance,fluency",
    "choices": "first,second,instance,rater,choice",
}
HUMAN = ("human_ratings", "human_choices", "human_agreement")
RATINGS = [
    f"{model},{context},{rater},{1 + context % 5},{1 + (context + shift) % 5},{best}"
    for model, best in (("Gold", 5), ("ret-base", 4))
    for context in range(8)
    for shift, rater in enumerate(("a", "b"))
]
CHOICES = [
    *("Gold,ret-base,0,a,first", "ret-base,Gold,0,b,second"),
    *("ret-base,Gold,1,a,first", "Gold,ret-base,1,b,equal", "Gold,ret-base,2,a,neither"),
]


def write_file(folder: Path, name: str, lines: list[str]) -> Path:
    """Write a file of ratings or choices, and return its path."""
    file = folder / f"{name}.csv"
    file.write_text("".join(f"{line}\n" for line in (HEADS[name], *lines)))
    return file


def write_judgements(folder: Path) -> dict[str, str]:
    """Write both files of judgements, and return the section ``human``."""
    lines = {"ratings": RATINGS, "choices": CHOICES}
    return {name: str(write_file(folder, name, lines[name])) for name in HEADS}


def summarise(folder: Path, ratings: list[str], choices: list[str]) -> tuple[int, Path]:
    """Return the exit code of ``judgements`` for two files, and the folder that it writes."""
    files = write_file(folder, "ratings", ratings), write_file(folder, "choices", choices)
    words = ["--ratings", str(files[0]), "--choices", str(files[1]), "--out", str(folder / "out")]
    return main(["judgements", *words]), folder / "out"


# --- files --------------------------------------------------------------------------------------


def test_ratings_become_means_with_errors(tmp_path: Path) -> None:
    (rated,) = read_ratings(write_file(tmp_path, "ratings", ["Base,1,a,2,3,5", "Base,2,a,4,3,5"]))
    assert (rated.ratings, rated.mean["empathy"], rated.error["empathy"]) == (2, 3.0, 1.0)
    file = write_file(tmp_path, "ratings", ["Base,1,a,6,3,5"])
    with pytest.raises(DataError, match=":2: The column empathy contains '6', which is not a rat"):
        read_ratings(file)


def test_choices_become_ratios(tmp_path: Path) -> None:
    rows = ["A,B,1,r,first", "B,A,2,r,second", "A,B,3,r,second", "A,B,4,r,equal", "A,B,5,r,neither"]
    ratios = read_choices(write_file(tmp_path, "choices", rows))
    assert (ratios.loc["A", "B"], ratios.loc["B", "A"]) == (2.0, 0.5)
    always = [f"A,B,{place},r,first" for place in range(9)]
    file = write_file(tmp_path, "choices", [*always, "A,C,1,r,equal"])
    ratios = read_choices(file)
    assert (ratios.loc["A", "B"], ratios.loc["B", "A"]) == (math.inf, 0.0)
    assert math.isnan(ratios.loc["A", "C"]) and math.isnan(ratios.loc["A", "A"])
    write_summary(None, file, tmp_path / "out")
    assert (tmp_path / "out" / "choices.csv").read_text().splitlines()[1] == "A,,inf,"
    write_file(tmp_path, "choices", ["A,B,1,r,both"])
    with pytest.raises(DataError, match=r":2: The value 'both' is not a choice\. Write first, sec"):
        read_choices(file)


def test_judgements_are_summed_up_by_a_command(tmp_path: Path) -> None:
    ratings = ["Base,1,a,2,3,5"]
    code, out = summarise(tmp_path, ratings, ["A,B,1,r,first", "A,B,2,r,both"])
    assert code != 0 and not out.exists()
    code, out = summarise(tmp_path, ratings, ["A,B,1,r,first", "A,B,2,r,second"])
    assert code == 0
    assert (out / "choices.csv").read_text() == "model,A,B\nA,,1\nB,1,\n"
    assert (out / "ratings.csv").read_text().splitlines()[1].startswith("Base,1,2,3,5")
    assert {file.name for file in out.iterdir()} - {"agreement.csv"} == {
        "ratings.csv", "choices.csv", "choices.png", "choices.pdf",
    }  # fmt: skip
    with pytest.raises(DataError, match=r"none\.csv: The file is missing"):
        write_summary(tmp_path / "none.csv", None, out)


# --- agreement ----------------------------------------------------------------------------------

EXAMPLE = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Krippendorff's example of four raters and twelve items, without the item that nobody rated."""


def count(raters: tuple[str, ...]) -> Counts:
    items = zip(*(line.split() for line in raters), strict=True)
    return np.array([[item.count(str(answer)) for answer in range(1, 6)] for item in items])


def test_the_published_example_has_its_published_alpha() -> None:
    pytest.importorskip("krippendorff")
    counts = count(EXAMPLE)
    names = [str(n) for n in range(len(counts))]
    ordinal = estimate_agreement(counts, names, "ordinal", "example")
    assert ordinal.alpha == pytest.approx(0.815, abs=5e-4)
    assert (ordinal.items, ordinal.clusters) == (11, 11)  # the last item has one rating
    assert ordinal.low < ordinal.alpha < ordinal.high <= 1
    nominal = estimate_agreement(counts, names, "nominal", "example")
    assert nominal.alpha == pytest.approx(0.743, abs=5e-4)


def test_the_interval_is_over_clusters_and_not_over_items() -> None:
    pytest.importorskip("krippendorff")
    chance = np.random.default_rng(0)
    answers = chance.integers(0, 5, (40, 1)) + chance.integers(0, 2, (40, 3))
    counts = np.array([np.bincount(row, minlength=6) for row in answers])
    once = estimate_agreement(counts, [str(n) for n in range(40)], "ordinal", "a")
    repeated = np.repeat(counts, 5, axis=0)
    clusters = [str(n) for n in range(40) for _ in range(5)]
    same = estimate_agreement(repeated, clusters, "ordinal", "a")
    width, naive = same.high - same.low, once.high - once.low
    assert width == pytest.approx(naive, rel=0.05)
    free = estimate_agreement(repeated, [str(n) for n in range(200)], "ordinal", "a")
    assert free.high - free.low < 0.6 * width


def test_raters_who_guess_agree_by_chance_only() -> None:
    pytest.importorskip("krippendorff")
    answers = np.random.default_rng(1).integers(0, 5, (200, 3))
    counts = np.array([np.bincount(row, minlength=5) for row in answers])
    found = estimate_agreement(counts, [str(n) for n in range(200)], "ordinal", "a")
    assert found.low < 0 < found.high
    equal = estimate_agreement(np.array([[3, 0], [3, 0]]), ["a", "b"], "nominal", "a")
    assert math.isnan(equal.alpha) and math.isnan(equal.low)


def test_judgements_write_agreement(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    ratings = [f"{m},{n},{r},{1 + n},{1 + n},{1 + (n + len(r)) % 5}"
               for m in ("A", "B") for n in range(5) for r in ("x", "yy")]  # fmt: skip
    # Both prefer A, which is shown on both sides.
    lines = [line for n in range(4) for line in (f"A,B,{n},x,first", f"B,A,{n},y,second")]
    lines += ["A,B,9,x,equal", "A,B,9,y,equal", "A,B,8,x,neither"]
    code, out = summarise(tmp_path, ratings, lines)
    assert code == 0
    rows = [line.split(",") for line in (out / "agreement.csv").read_text().splitlines()]
    table = {row[0]: row[1:] for row in rows}
    assert table["question"] == ["alpha", "low", "high", "items", "instances", "raters"]
    assert table["empathy"] == ["1", "1", "1", "10", "5", "2"]
    assert float(table["fluency"][0]) < 0.5
    assert (table["choice"][0], table["choice"][3:]) == ("1", ["5", "5", "2"])


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    with pytest.raises(DataError, match=r"not installed\. .*tasktransfer\[agreement\]"):
        estimate_agreement(np.array([[1, 1], [2, 0]]), ["a", "b"], "nominal", "a")


# --- the report ---------------------------------------------------------------------------------


def load(folder: Path, human: Any) -> Any:
    config = {**yaml.safe_load(DEMO.read_text()), "results": str(folder / "out"), "human": human}
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    return load_config(folder / "study.yaml")


def frames_for(config: Any) -> Frames:
    """Return the frames of judgements, made from the files of a config."""
    tables = str(Path(config.results, "tables"))
    study = cast(Study, SimpleNamespace(config=config, tables=tables, config_file="study.yaml"))
    empty = Frames(study, {}, Metadata("planted", "digest", False, 1))
    declared = [frame for frame in FRAMES if frame.name in HUMAN and frame.planned(study)]
    return Frames(study, {f.name: make(f, empty) for f in declared}, empty.metadata)


def make(frame: Frame, frames: Frames) -> pd.DataFrame:
    assert frame.make is not None
    return build_frame(list(cast(Any, frame.make(frames))), frame.columns)


def print_table(name: str, frames: Frames) -> list[tuple[str, ...]]:
    """Return the lines of a printed table."""
    declared = next(table for table in TABLES if table.name == name)
    printed = build_printed_table(build_analysis(frames.study), declared, frames)
    assert isinstance(printed, PrintedTable)
    return [line for block in printed.layout.blocks for entry in block for line in entry]


def test_ratings_and_choices_are_printed(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    frames = frames_for(load(tmp_path, write_judgements(tmp_path)))
    rated = frames["human_ratings"].set_index("model")
    assert rated["ratings"].tolist() == [16, 16]
    assert rated["fluency"].to_dict() == {"Gold": 5.0, "ret-base": 4.0}
    assert frames["human_choices"].to_dict("records") == [
        {"model": "Gold", "other": "ret-base", "chosen": 2, "other_chosen": 1, "equal": 1,
         "neither": 1}
    ]  # fmt: skip
    assert print_table("human_ratings", frames)[0] == (
        "Gold", "16", "2.62 ± 0.34 [1.67, 3.79]", "2.81 ± 0.33 [2.03, 3.66]", "5.00 ± 0.00",
    )  # fmt: skip


def test_intervals_of_ratings_resample_contexts_as_a_whole(tmp_path: Path) -> None:
    """Ten raters who agree on each context give no more evidence on the contexts than one."""
    ends = []
    for raters in (1, 10):
        lines = [f"A,{c},{r},{1 + c % 5},3,5" for c in range(15) for r in range(raters)]
        (rated,) = read_ratings(write_file(tmp_path, "ratings", lines))
        ends.append(rated.interval["empathy"])
        assert 1 < ends[-1][0] < rated.mean["empathy"] == 3 < ends[-1][1] < 5
        assert math.isnan(rated.interval["fluency"][0])
    assert ends[0] == pytest.approx(ends[1])
    width = (ends[1][1] - ends[1][0]) / 2
    assert width > 2 * 1.96 * rated.error["empathy"]


def test_agreement_has_an_interval_over_contexts(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    agreement = frames_for(load(tmp_path, write_judgements(tmp_path)))["human_agreement"]
    rows = agreement.set_index("question")
    assert [*rows.index] == ["empathy", "relevance", "fluency", "choice"]
    assert rows.loc["empathy", "alpha"] == pytest.approx(1)  # both raters give equal ratings
    relevance = rows.loc["relevance"]
    assert relevance["low"] < relevance["alpha"] < relevance["high"] < 1
    # Two contexts are too few for an interval.
    assert rows["low"].isna().tolist() == [False, False, False, True]
    assert (rows["contexts"].tolist(), rows["raters"].tolist()) == ([8, 8, 8, 2], [2] * 4)


def test_only_the_files_that_are_named_give_tables(tmp_path: Path) -> None:
    pytest.importorskip("krippendorff")
    files = write_judgements(tmp_path)
    config = load(tmp_path, {"ratings": files["ratings"]})
    assert {*frames_for(config)} == {"human_ratings", "human_agreement"}
    assert config.analysis_files == {"human.ratings": files["ratings"]}
    assert {*frames_for(load(tmp_path, None))} == set()
    with pytest.raises(ConfigError, match=r"human: The section contains no file\. Add ratings or"):
        load(tmp_path, {})


def test_a_study_without_human_judgements_keeps_its_digest(tmp_path: Path) -> None:
    without = load(tmp_path, None)
    assert "human" not in without.build_digest_content()
    assert load(tmp_path, write_judgements(tmp_path)).digest != without.digest
