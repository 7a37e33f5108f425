"""A user's own human judgements, read and summarised."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tasktransfer.cli import main
from tasktransfer.designs.empathetic.human import read_choices, read_ratings
from tasktransfer.designs.empathetic.judgement_files import write_summary
from tasktransfer.errors import DataError


def test_ratings_become_means_with_errors(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    head = "model,instance,rater,empathy,relevance,fluency\n"
    file.write_text(f"{head}Base,1,a,2,3,5\nBase,2,a,4,3,5\n")
    (rated,) = read_ratings(file)
    assert (rated.ratings, rated.mean["empathy"], rated.error["empathy"]) == (2, 3.0, 1.0)
    file.write_text(f"{head}Base,1,a,6,3,5\n")
    with pytest.raises(
        DataError, match=":2: The column empathy contains '6', which is not a rating"
    ):
        read_ratings(file)


def test_choices_become_ratios(tmp_path: Path) -> None:
    file = tmp_path / "choices.csv"
    rows = ["A,B,1,r,first", "B,A,2,r,second", "A,B,3,r,second", "A,B,4,r,equal", "A,B,5,r,neither"]
    file.write_text("first,second,instance,rater,choice\n" + "\n".join(rows) + "\n")
    ratios = read_choices(file)
    assert (ratios.loc["A", "B"], ratios.loc["B", "A"]) == (2.0, 0.5)
    always = "".join(f"A,B,{place},r,first\n" for place in range(9))
    file.write_text(f"first,second,instance,rater,choice\n{always}A,C,1,r,equal\n")
    ratios = read_choices(file)
    assert (ratios.loc["A", "B"], ratios.loc["B", "A"]) == (math.inf, 0.0)
    assert math.isnan(ratios.loc["A", "C"]) and math.isnan(ratios.loc["A", "A"])
    write_summary(None, file, tmp_path / "out")
    assert (tmp_path / "out" / "choices.csv").read_text().splitlines()[1] == "A,,inf,"
    file.write_text("first,second,instance,rater,choice\nA,B,1,r,both\n")
    with pytest.raises(
        DataError, match=r":2: The value 'both' is not a choice\. Write first, second"
    ):
        read_choices(file)


def test_judgements_are_summed_up_by_a_command(tmp_path: Path) -> None:
    ratings, choices, out = (tmp_path / name for name in ("ratings.csv", "choices.csv", "out"))
    ratings.write_text("model,instance,rater,empathy,relevance,fluency\nBase,1,a,2,3,5\n")
    choices.write_text("first,second,instance,rater,choice\nA,B,1,r,first\nA,B,2,r,both\n")
    words = ["judgements", "--ratings", str(ratings), "--choices", str(choices), "--out", str(out)]
    assert main(words) != 0
    assert not out.exists()
    choices.write_text("first,second,instance,rater,choice\nA,B,1,r,first\nA,B,2,r,second\n")
    assert main(words) == 0
    assert (out / "choices.csv").read_text() == "model,A,B\nA,,1\nB,1,\n"
    assert (out / "ratings.csv").read_text().splitlines()[1].startswith("Base,1,2,3,5")
    assert {file.name for file in out.iterdir()} - {"agreement.csv"} == {
        "ratings.csv", "choices.csv", "choices.png", "choices.pdf",
    }  # fmt: skip
    with pytest.raises(DataError, match=r"none\.csv: The file is missing"):
        write_summary(tmp_path / "none.csv", None, out)
