"""Scores and confusions of single labels, from rows to the frames, the table and the figure."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from study_records import write_records
from tasktransfer.cli import main
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.figures.confusions import (
    MOST_LABELS,
    MOST_LETTERS,
    OTHERS,
    choose_labels,
    format_label,
)
from tasktransfer.present.kit import paper
from tasktransfer.stats.answers import (
    LabelAnswers,
    LabelScores,
    compute_label_scores,
    count_confusions,
)

LABELS = 4


def sample_answers(
    seed: int, *, dialogues: int = 60, per_dialogue: int = 2, right: float = 0.7
) -> LabelAnswers:
    """Return answers whose gold labels and dialogues do not depend on the seed."""
    count = dialogues * per_dialogue
    gold = np.random.default_rng(0).integers(0, LABELS - 1, count)  # the last label has no instance
    chance = np.random.default_rng(seed + 1)
    wrong = chance.integers(0, LABELS, count)
    predicted = np.where(chance.random(count) < right, gold, wrong)
    names = tuple(f"d{number // per_dialogue}" for number in range(count))
    return LabelAnswers(seed, predicted, gold, names, LABELS)


def score(*runs: LabelAnswers) -> dict[int, LabelScores]:
    return {scores.label: scores for scores in compute_label_scores(runs)}


def test_values_are_those_of_scikit_learn_averaged_over_seeds() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    runs = [sample_answers(seed) for seed in range(3)]
    found = score(*runs)
    expected = 100 * np.mean(
        [
            metrics.precision_recall_fscore_support(
                run.gold, run.predicted, labels=range(LABELS), zero_division=0
            )[:3]
            for run in runs
        ],
        axis=0,
    )
    for label in range(LABELS - 1):
        values = [value for value, _, _ in found[label].measures.values()]
        assert values == pytest.approx(expected[:, label])
        assert found[label].support == int((runs[0].gold == label).sum())
        for value, low, high in found[label].measures.values():
            assert 0 <= low < value < high <= 100
    last = found[LABELS - 1]
    assert (last.support, np.isnan(last.measures["recall"][0])) == (0, True)
    assert last.predicted == pytest.approx(
        np.mean([(run.predicted == LABELS - 1).sum() for run in runs])
    )


def test_intervals_are_over_dialogues_and_not_over_instances() -> None:
    one = sample_answers(0, per_dialogue=1)
    repeated = LabelAnswers(
        0,
        np.repeat(one.predicted, 5),
        np.repeat(one.gold, 5),
        tuple(np.repeat(one.dialogues, 5).tolist()),
        LABELS,
    )
    single, several = score(one), score(repeated)
    for label in range(LABELS - 1):
        for measure, numbers in single[label].measures.items():
            assert several[label].measures[measure] == pytest.approx(numbers)


def test_intervals_cover_the_expected_recall() -> None:
    """Each dialogue has its own difficulty, and recall is 60 % on average."""
    chance = np.random.default_rng(5)
    covered = []
    for _ in range(100):
        difficulty = np.repeat(chance.choice([0.3, 0.9], 40), 3)
        gold = np.zeros(120, np.int64)
        predicted = (chance.random(120) > difficulty).astype(np.int64)
        names = tuple(f"d{number // 3}" for number in range(120))
        found = score(LabelAnswers(0, predicted, gold, names, 2))
        _, low, high = found[0].measures["recall"]
        covered.append(low <= 60 <= high)
    assert 0.88 <= np.mean(covered) <= 1.0


def test_a_value_without_an_error_has_no_interval() -> None:
    run = sample_answers(0, right=1.0)
    value, low, high = score(run)[0].measures["precision"]
    assert value == 100 and np.isnan([low, high]).all()


def test_confusions_are_counted_over_seeds() -> None:
    runs = [sample_answers(seed) for seed in range(2)]
    counts = count_confusions(runs)
    assert sum(counts.values()) == 240
    run = LabelAnswers(0, np.array([-1, 1]), np.array([0, 1]), ("a", "b"), 2)
    assert count_confusions([run]) == {(0, -1): 1, (1, 1): 1}


def test_the_figure_has_the_labels_that_are_confused_most() -> None:
    names = [f"label {number:02}" for number in range(20)]
    rows = [(name, name, 50) for name in names]
    rows += [(names[number], names[number + 1], number) for number in range(1, 19)]
    frame = pd.DataFrame(rows, columns=["gold", "predicted", "count"])
    chosen = choose_labels(frame)
    assert len(chosen) == MOST_LABELS
    assert names[0] not in chosen and names[18] in chosen and OTHERS not in chosen
    assert choose_labels(frame.head(3)) == names[:3]


def test_a_label_on_an_axis_is_short_and_no_formula() -> None:
    assert format_label("billing") == "billing"
    long = format_label("a" * 50 + "z" * 50)
    assert len(long) == MOST_LETTERS and long.startswith("aaa") and "a…z" in long
    assert format_label("from $5 to $10") == r"from \$5 to \$10"
    figure = Figure()
    figure.text(0, 0, format_label(r"from $\5 to $10"))
    figure.savefig(io.BytesIO())  # as a formula, the text would have a wrong command


def test_labels_without_a_font_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "list_fallback_fonts", lambda: ())
    numbers = paper.number_undrawable_labels(["billing", "退款", "café ✓", "物流", "ไทย"])
    assert numbers == {"退款": "#2", "物流": "#4", "ไทย": "#5"}
    (sentence,) = paper.describe_label_numbers(numbers)
    assert sentence.endswith("so they are numbered: #2 is 退款, #4 is 物流, #5 is ไทย.")
    assert paper.describe_label_numbers({}) == []


def test_an_installed_font_is_used_for_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "list_fallback_fonts", lambda: ("STIXNonUnicode",))
    assert paper.list_label_fonts()[-1] == "STIXNonUnicode"
    only_there = min(paper._read_letters("STIXNonUnicode") - paper._read_letters("sans-serif"))
    assert paper.can_draw(chr(only_there))


# --- from records to the page ---------------------------------------------------------------------

STUDY = {
    "study": "tickets",
    "datasets": {
        "Tickets": {
            "files": {"train": "./tickets.jsonl"},
            "shares": {"dev": 0.2, "test": 0.25},
            "dialogue": {"turns": "messages", "text": "text", "id": "id"},
            "tasks": {"intent": {"kind": "dialogue_classification", "label": "intent"}},
        }
    },
    "models": [{"name": "bert", "family": "encoder", "checkpoint": "tiny"}],
    "algorithms": ["baseline"],
    "seeds": 2,
    "training": {"epochs": 1},
}


def test_a_study_of_own_dialogues_shows_scores_and_confusions_of_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paper, "list_fallback_fonts", lambda: ())
    rows = [
        {"id": f"t{n}", "intent": ("billing", "登录")[n % 2], "messages": [{"text": f"hello {n}"}]}
        for n in range(60)
    ]
    Path("tickets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    write_records(open_study("study.yaml"))
    for command in ("collect", "statistics", "figures", "report"):
        assert main([command, "study.yaml"]) == 0, capsys.readouterr().err
    labels = pd.read_parquet("results/tables/labels.parquet")
    assert labels["label"].tolist() == ["billing", "登录"]
    assert set(labels["method"]) == {"baseline"} and (labels["n_seeds"] == 2).all()
    confusions = pd.read_parquet("results/tables/confusions.parquet")
    supports = confusions.groupby("gold")["count"].sum() / 2
    assert supports.to_dict() == labels.set_index("label")["support"].to_dict()
    right = confusions[confusions["gold"] == confusions["predicted"]].set_index("gold")["count"]
    recall = 100 * right / (2 * supports)
    assert recall.to_dict() == pytest.approx(labels.set_index("label")["recall"].to_dict())
    errors = pd.read_parquet("results/tables/errors.parquet")
    wrong = confusions[confusions["gold"] != confusions["predicted"]]["count"].sum()
    assert errors["wrong"].sum() == wrong > 0
    assert errors["instance"].is_unique
    for row in errors.itertuples():
        assert (row.predicted != row.gold) == (row.wrong == row.n_seeds) or row.wrong == 1
    assert errors["wrong"].is_monotonic_decreasing
    assert Path("results/figures/confusions_Tickets_intent.png").exists()
    page = Path("results/report.html").read_text()
    assert "so they are numbered: #2 is 登录." in page
    assert "Scores of each label" in page and "confused labels of intent" in page
    assert errors["instance"].iloc[0] in page and "hello" not in page, "texts stay in the file"
