"""``tasktransfer regret --matrix``: table and sentence for any matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest

from tasktransfer.cli import main
from tasktransfer.errors import DataError
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.results.study import Study
from tasktransfer.selection.figure import plot_regret, plot_study_regret
from tasktransfer.selection.matrix import compute_file_regret
from tasktransfer.selection.regret import describe_significance

NAMES = [f"task{number}" for number in range(10)]


def simulated(folder: Path, **more: object) -> Path:
    """Write a matrix of ten tasks and four seeds; scores scatter around ``truth``."""
    random = np.random.default_rng(3)
    truth = random.normal(60, 5, (10, 10))
    rows = [
        {"model": "m", "source": source, "target": target, "seed": seed}
        | {"score": truth[t, s] + random.normal(0, 1), "truth": truth[t, s]}
        | {"noise": random.random() if seed == 0 else None, **more}
        for t, target in enumerate(NAMES)
        for s, source in enumerate(NAMES)
        if s != t
        for seed in range(4)
    ]
    pd.DataFrame(rows).to_csv(folder / "matrix.csv", index=False)
    return folder / "matrix.csv"


def test_truth_is_told_from_chance_and_noise_is_not(tmp_path: Path) -> None:
    frame, notes = compute_file_regret(simulated(tmp_path), (1, 3))
    rows = frame[frame["measure"] == "regret@1"].set_index("selector")
    assert list(rows.index) == ["random", "source_mean", "truth", "noise"]
    assert not notes
    assert rows.loc["truth", "value"] <= rows.loc["truth", "floor"]
    assert rows.loc["truth", "to_random_q"] < 0.05 < rows.loc["noise", "to_random_q"]
    assert rows.loc["noise", "missing"] == 0
    assert "truth is significantly below random" in describe_significance(frame)
    assert "noise" not in describe_significance(frame)


def test_parts_of_a_file_are_judged_apart(tmp_path: Path) -> None:
    file = simulated(tmp_path)
    table = pd.read_csv(file)
    both = pd.concat([table.assign(algorithm="x"), table.assign(algorithm="y", score=50)])
    both.to_csv(file, index=False)
    frame, _ = compute_file_regret(file, (1,))
    value = frame[frame["measure"] == "regret@1"].set_index(["algorithm", "selector"])["value"]
    assert value["y"].eq(0).all()
    assert value["x", "random"] > 0


def test_fractions_and_baselines_are_read(tmp_path: Path) -> None:
    file = simulated(tmp_path)
    whole, _ = compute_file_regret(file, (1,))
    table = pd.read_csv(file)
    # The baseline of a target is as far from each seed's scores: gains rank as scores do.
    alone = table.drop_duplicates(["target", "seed"]).assign(source="", truth=None, noise=None)
    table = pd.concat([table, alone])
    table["score"] /= 100
    table.to_csv(file, index=False)
    frame, notes = compute_file_regret(file, (1,))
    assert "fractions" in notes[0]
    values = []
    for one in (whole, frame):
        rows = one[one["selector"].isin(["truth", "random"])]
        values.append(rows.set_index(["selector", "measure"])["value"].to_dict())
    assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.drop(columns="seed"), "The column seed is missing"),
        (lambda t: t.assign(truth="high"), ":2, column truth: The value 'high' is not a number"),
        (lambda t: t.assign(random=1), "column random"),
        (
            lambda t: pd.concat([t, t.tail(1)]),
            ":362: The line contains a second score of 'task8' → 'task9'",
        ),
        (lambda t: t.assign(score=t["score"].where(t.index > 0)), ":2: The column score is empty"),
        (lambda t: t[t["source"] == "task0"], "fewer than two sources"),
        (lambda t: t[:0], "has no rows"),
    ],
)
def test_what_is_no_matrix_is_refused(tmp_path: Path, change: object, told: str) -> None:
    file = simulated(tmp_path)
    change(pd.read_csv(file)).to_csv(file, index=False)  # type: ignore[operator]
    with pytest.raises(DataError) as refused:
        compute_file_regret(file, (1,))
    assert told in str(refused.value)
    assert str(file) in str(refused.value)


def test_the_command_prints_a_table_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(simulated(tmp_path))
    assert main(["regret", "--matrix", file]) == 0
    text = capsys.readouterr().out
    assert "m: 10 targets, 4 seeds" in text
    assert "(noise floor)" in text and "(random, half the seeds)" in text
    assert "By regret@1" in text
    assert main(["regret", "--matrix", file, "--json", "--k", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)["regret"]
    assert {"regret@2", "mean_regret@2%", "spearman"} <= {row["measure"] for row in rows}


@pytest.mark.parametrize("words", [["2"], ["3", "3"], ["9"], ["2", "9", "1"]])
def test_text_is_printed_for_any_number_of_tried_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(["regret", "--matrix", str(simulated(tmp_path)), "--k", *words]) == 0
    text = capsys.readouterr().out
    assert "By regret@1" in text and all(f"regret@{k}%" in text for k in words)


@pytest.mark.parametrize("k", ["99", "11", "1000000000"])
def test_more_tries_than_sources_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], k: str
) -> None:
    file = str(simulated(tmp_path))
    assert main(["regret", "--matrix", file, "--k", "1", k]) == 2
    said = capsys.readouterr().err
    assert (
        f"--k {k}: The matrix {file} has only 10 sources" in said and "numbers from 1 to 10" in said
    )


@pytest.mark.parametrize("k", ["0", "-1", "²", "1.0", "9" * 5000, "9" * 30])
def test_what_counts_no_sources_is_refused(k: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["regret", "--matrix", "matrix.csv", f"--k={k}"])
    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert "Pass a whole number from 1" in said and len(said) < 500


def test_the_figure_has_a_panel_for_each_algorithm(tmp_path: Path) -> None:
    file = simulated(tmp_path)
    table = pd.read_csv(file)
    pd.concat([table.assign(algorithm="x"), table.assign(algorithm="y")]).to_csv(file, index=False)
    frame, _ = compute_file_regret(file, (1,))
    metadata = Metadata("study", "digest", synthetic=False, records=1)
    assert len(plot_regret(frame, metadata).axes) == 2
    nothing = Frames(cast(Study, None), {"regret": frame[:0]}, metadata)
    assert plot_study_regret(str, nothing) is None
