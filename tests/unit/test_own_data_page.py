"""The page's comparison on a user's own dialogues agrees with its table."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.own_corpora import (
    build_empathetic_study,
    build_goemotions_study,
    build_multiwoz_study,
)
from benchmarks.own_data_methods import (
    FINE_TUNED,
    FITTED,
    LORA,
    TRANSFER,
    find_target,
    read_study,
    reduce_study,
    run_study,
    vary_study,
)
from tasktransfer.core.references import CONTRASTIVE, NEAREST, REFERENCES, SVM

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "development" / "own-data.csv"
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
LABELS = {
    FINE_TUNED: "fine-tuned with `recipe: auto`",
    f"{FINE_TUNED}, {FITTED}": "fine-tuned with fitted heads",
    f"{FINE_TUNED}, {LORA}": "fine-tuned with a low-rank adapter (one seed)",
    f"{FINE_TUNED}, {TRANSFER}": "fine-tuned on DailyDialog's emotions first (one seed)",
    **REFERENCES,
}
SECOND_TABLE = ROOT / "docs" / "development" / "own-data-goemotions.csv"
ENDS = ("low", "delta", "high")
MORE_TABLES = {
    name: ROOT / "docs" / "development" / f"own-data-{name}.csv"
    for name in ("sentiment", "knowledge", "multiwoz")
}


def format_scores(rows: pd.DataFrame) -> str:
    if rows.empty:
        return ""
    (row,) = rows.to_dict("records")
    if "micro_f1" not in row:
        return f"{row['micro_multilabel_f1']:.1f}"
    return f"{row['micro_f1']:.1f}/{row['macro_f1']:.1f}"


@pytest.mark.parametrize("file", [TABLE, SECOND_TABLE])
def test_no_seed_of_a_baseline_has_failed(file: Path) -> None:
    """The lowest of five scores is at most 1.79 standard deviations below their mean."""
    rows = pd.read_csv(file).query("size == 300").set_index("method")
    row, constant = rows.loc[FINE_TUNED], rows.loc["most_frequent"]
    assert len(row["states"].split()) == 5 and "none of 24 baselines has failed" in " ".join(
        PAGE.split()
    )
    smallest = float(re.findall(r"the smallest margin is (.+) points", PAGE)[0])
    assert row["score"] - 4 / 5**0.5 * row["sd_score"] - constant["score"] > smallest


@pytest.mark.parametrize(("file", "part"), [(TABLE, 0), (SECOND_TABLE, 1)])
def test_the_pages_tables_are_those_of_the_benchmark(file: Path, part: int) -> None:
    frame = pd.read_csv(file)
    sizes = sorted(frame["size"].unique())
    expected = [
        [
            label,
            *(format_scores(frame[(frame["size"] == n) & (frame["method"] == m)]) for n in sizes),
        ]
        for m, label in LABELS.items()
        if m in set(frame["method"])
    ]
    section = PAGE.split("## On a user's own dialogues")[1].split("\n## ")[0]
    section = re.split(r"\*\*A second corpus|\*\*Labels of turns", section)[part]
    lines = re.findall(r"^\| .* \|$", section, flags=re.MULTILINE)
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]] == expected
    for row in frame[frame["method"] == "frozen_logistic"].to_dict("records"):
        interval = f"{row['fine_tuned_delta']:+.1f} [{row['fine_tuned_low']:+.1f}, "
        interval = f"{interval}{row['fine_tuned_high']:+.1f}]".replace("-", "−")
        assert interval in section or interval.replace("+", "") in section


def test_the_page_has_labels_of_turns_and_several_labels() -> None:
    section = PAGE.split("**Labels of turns, and several labels.**")[1].split("\n## ")[0]
    frames = {name: pd.read_csv(file) for name, file in MORE_TABLES.items()}
    known = set().union(*(frame["method"] for frame in frames.values()))
    for method, label in LABELS.items():
        scores = (format_scores(each[each["method"] == method]) for each in frames.values())
        row = f"| {label} | {' | '.join(scores)} |"
        assert (row in section) == (method in known), row
    text = " ".join(section.split())
    for frame in frames.values():
        assert set(frame["size"]) == {300}
        rows = frame.set_index("method")
        low, delta, high = rows.loc["frozen_logistic", [f"fine_tuned_{k}" for k in ENDS]]
        assert f": {delta:+.1f} [{low:+.1f}, {high:+.1f}] points.".replace("-", "−") in text
        assert rows.loc[FINE_TUNED, "states"] in ("learned", "not better")
    sentiment, knowledge, domains = (frame.set_index("method") for frame in frames.values())
    assert sentiment["macro_f1"].idxmax() == FINE_TUNED
    assert sentiment.loc[FINE_TUNED, "micro_f1"] < sentiment.loc["most_frequent", "micro_f1"]
    compared = knowledge.dropna(subset="fine_tuned_low")
    assert ((compared["fine_tuned_low"] < 0) & (compared["fine_tuned_high"] > 0)).all()
    dev = knowledge["dev_score"]
    assert f"({dev[f'{FINE_TUNED}, {FITTED}']:.1f} instead of {dev[FINE_TUNED]:.1f})" in text
    assert domains["score"].idxmax() == SVM
    assert f"{-domains.loc[SVM, 'fine_tuned_delta']:.1f} points more than fine-tuning" in text


def test_what_the_page_says_of_the_methods() -> None:
    frame = pd.read_csv(TABLE)
    fine_tuned = frame["method"].isin([FINE_TUNED, f"{FINE_TUNED}, {FITTED}"])
    states = " ".join(frame.loc[fine_tuned, "states"])
    assert "collapsed" not in states
    current = frame[frame["method"] == FINE_TUNED].set_index("size")["states"]
    assert all(current[size].split() == 5 * ["learned"] for size in (300, 1000))
    assert len(re.findall("learned|not better", current[50])) == 5
    scores = frame.set_index(["size", "method"])["score"]
    assert [scores[size].idxmax() for size in (300, 1000)] == 2 * [CONTRASTIVE]
    assert scores[50, FINE_TUNED] < scores[50, NEAREST]
    better = [
        scores[size, f"{FINE_TUNED}, {FITTED}"] > scores[size, FINE_TUNED]
        for size in (50, 300, 1000)
    ]
    assert better == [True, False, False]
    contrastive = frame[frame["method"] == CONTRASTIVE].set_index("size")
    low, delta, high = contrastive.loc[1000, [f"fine_tuned_{end}" for end in ENDS]]
    text = " ".join(PAGE.split())
    assert f"scores {-delta:.1f} points less, but the difference is not significant" in text
    assert f"significant ([{low:+.1f}, {high:+.1f}])".replace("-", "−") in text


def test_differences_are_those_of_the_scores() -> None:
    frame = pd.read_csv(TABLE)
    fine_tuned = frame[frame["method"] == FINE_TUNED].set_index("size")["score"]
    compared = frame.dropna(subset="fine_tuned_delta")
    differences = compared["size"].map(fine_tuned) - compared["score"]
    assert len(compared) == 15
    assert (differences - compared["fine_tuned_delta"]).abs().max() < 0.03


def test_studies_of_all_sizes_have_the_same_test_instances(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "test.jsonl").touch()
    document = build_empathetic_study(tmp_path, tmp_path, tmp_path / "model")
    small, large = (reduce_study(document, size, 5) for size in (50, 1000))
    assert small["training"].pop("limit_train") == 50
    assert large["training"].pop("limit_train") == 1000
    assert (small["training"].pop("limit_dev"), large["training"].pop("limit_dev")) == (20, 200)
    assert small == large
    assert "targets" not in small
    assert small["references"] == [*REFERENCES]


def test_variants_differ_in_their_settings_only(tmp_path: Path) -> None:
    study = reduce_study(build_goemotions_study(tmp_path, tmp_path, tmp_path / "model"), 300, 1)
    fitted, lora, transfer = (vary_study(study, v, tmp_path) for v in (FITTED, LORA, TRANSFER))
    study["references"] = []
    assert fitted["training"].pop("head_initialization") == "logistic_regression"
    assert lora["models"][0].pop("adapter") == {"rank": 16}
    assert fitted == lora == study
    assert transfer["algorithms"] == ["pretrain_finetune"]
    assert {"recipe": "auto", "limit_train": 300}.items() <= transfer["training"].items()


def test_a_study_in_another_folder_is_reduced_to_its_target(tmp_path: Path) -> None:
    for name in ("study", "feta", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "train.jsonl").touch()
    config = tmp_path / "study" / "config.yaml"
    config.write_text(
        """
data: {release: ../feta}
datasets:
  Own: {files: {train: ../train.jsonl, test: [no.jsonl]}, tasks: {emotion: {}, topic: {}}}
models: [{name: one, checkpoint: ../model}, {name: two, checkpoint: sentence-transformers/none}]
targets: [Own/emotion]
"""
    )
    study = read_study(config)
    assert study["data"]["release"] == str(tmp_path / "feta")
    assert study["datasets"]["Own"]["files"] == {
        "train": str(tmp_path / "train.jsonl"),
        "test": ["no.jsonl"],
    }
    checkpoints = [model["checkpoint"] for model in study["models"]]
    assert checkpoints == [str(tmp_path / "model"), "sentence-transformers/none"]
    assert [*reduce_study(study, 50, 1)["datasets"]["Own"]["tasks"]] == ["emotion"]
    del study["targets"]
    with pytest.raises(SystemExit, match=r"the study has 2 \(Own/emotion, Own/topic\)"):
        find_target(study)
    del study["datasets"]["Own"]["tasks"]["topic"]
    assert find_target(study) == "Own/emotion"


def test_an_error_of_a_study_ends_the_benchmark(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="lists no model"):
        run_study(tmp_path, {"study": "own data"}, 1)


def test_dialogues_of_multiwoz_have_the_domains_of_their_goals(tmp_path: Path) -> None:
    def describe(domain: str, text: str) -> dict[str, object]:
        goal = {"taxi": {}, "message": ["go"], domain: {"info": {"area": "east"}}}
        return {"goal": goal, "log": [{"text": text}, {"text": "Which part of town? "}]}

    corpus = tmp_path / "multiwoz20"
    corpus.mkdir()
    splits = {
        "test": {"T1": describe("train", "A train.")},
        "val": {"V1": describe("hotel", "A hotel."), "V2": describe("train", "a  TRAIN.")},
    }
    for split, dialogues in splits.items():
        with zipfile.ZipFile(corpus / f"{split}.json.zip", "w") as archive:
            archive.writestr(f"{split}.json", json.dumps(dialogues))
    study = build_multiwoz_study(tmp_path, tmp_path, tmp_path / "model")
    files = study["datasets"]["Bookings"]["files"]
    [line] = Path(files["train"]).read_text().splitlines()  # V2 is also a test dialogue
    messages = [
        {"speaker": "user", "text": "A hotel."},
        {"speaker": "system", "text": "Which part of town?"},
    ]
    assert json.loads(line) == {"id": "V1", "domains": ["hotel"], "messages": messages}
    assert study["targets"] == ["Bookings/domains"]
