"""Tables of a user's own human judgements, in the report of an empathetic study."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
import yaml

from tasktransfer.designs import load_config
from tasktransfer.designs.empathetic.frames import FRAMES
from tasktransfer.designs.empathetic.human import read_ratings
from tasktransfer.designs.empathetic.shown import TABLES, build_analysis
from tasktransfer.errors import ConfigError
from tasktransfer.present.tables import PrintedTable, build_printed_table
from tasktransfer.results.frames import Frame, Frames
from tasktransfer.results.metadata import Metadata
from tasktransfer.results.store import build_frame
from tasktransfer.results.study import Study

DEMO = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "empathetic-demo.yaml"
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


def write_judgements(folder: Path) -> dict[str, str]:
    """Write both files of judgements, and return the section ``human``."""
    heads = {
        "ratings": "model,instance,rater,empathy,relevance,fluency",
        "choices": "first,second,instance,rater,choice",
    }
    for name, lines in (("ratings", RATINGS), ("choices", CHOICES)):
        text = "".join(f"{line}\n" for line in (heads[name], *lines))
        (folder / f"{name}.csv").write_text(text)
    return {name: str(folder / f"{name}.csv") for name in heads}


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
    file = tmp_path / "ratings.csv"
    head = "model,instance,rater,empathy,relevance,fluency"
    ends = []
    for raters in (1, 10):
        lines = [f"A,{c},{r},{1 + c % 5},3,5" for c in range(15) for r in range(raters)]
        file.write_text("".join(f"{line}\n" for line in (head, *lines)))
        (rated,) = read_ratings(file)
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
