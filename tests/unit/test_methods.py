"""Comparison of methods on a target: the rule, the sentences, and a finished study's pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from exported_study import few_updates, finish_study  # noqa: F401  # a fixture of the module
from study_records import write_records
from tasktransfer.cli import main
from tasktransfer.core.references import (
    CONTRASTIVE,
    FINE_TUNING,
    FROZEN,
    MOST_FREQUENT,
    NEAREST,
    PROMPTED,
    TFIDF,
    TRANSFER,
)
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.transfer.frames import METHODS
from tasktransfer.designs.transfer.method_table import is_method_run
from tasktransfer.designs.transfer.report.advice import describe_methods
from tasktransfer.designs.transfer.statistics.methods import (
    Cost,
    Method,
    build_method_rows,
    compare_pairs,
    sort_methods,
)
from tasktransfer.results.frames import list_column_names
from tasktransfer.results.store import build_frame, read_statistic_frame
from tasktransfer.stats.bootstrap import Trainings
from tasktransfer.stats.cells import NO_SEED, Cell, Scored, gather_cells
from tasktransfer.stats.draws import build_dialogue_units, compute_jackknife_scores

DIALOGUES = 200


def make_cell(
    right: float,
    seeds: Sequence[int] = (NO_SEED,),
    dialogues: int = DIALOGUES,
    by_seed: float = 0.0,
) -> Cell:
    """Return a cell whose runs are right on this fraction of dialogues, mostly the same ones.

    The fraction changes by ``by_seed`` from one seed to the next.
    """
    units = build_dialogue_units([f"d{number:04}" for number in range(dialogues)])
    ease = np.random.default_rng(0).random(dialogues)
    runs = []
    for index, seed in enumerate(seeds):
        own = np.random.default_rng([int(100 * right), seed + 1]).random(dialogues)
        is_right = np.zeros((dialogues, 1))
        known = round((right + index * by_seed) * dialogues)
        is_right[np.argsort(ease + 0.4 * own)[:known]] = 1.0
        resampled = compute_jackknife_scores(
            np.hstack([is_right, np.ones_like(is_right)]),
            lambda sums: 100 * sums[..., 0] / sums[..., 1],
        )
        runs.append(((), seed, Scored(100 * is_right.mean(), resampled, units, "logit")))
    return gather_cells(runs)[()]


def make_method(name: str, cell: Cell, model: str | None = None, **more: Any) -> Method:
    cost = Cost(300, more.pop("seconds", 2.0))
    return Method(("Own", "intent"), name, model, more.pop("variant", None), cell, cost, **more)


def build_table(*methods: Method) -> pd.DataFrame:
    return build_frame(build_method_rows(sort_methods(methods)), METHODS)


def test_the_simplest_method_that_is_not_significantly_worse_is_recommended() -> None:
    table = build_table(
        make_method(FINE_TUNING, make_cell(0.82, range(3)), "bert", seconds=80.0),
        make_method(FROZEN, make_cell(0.80), "bert"),
        make_method(TFIDF, make_cell(0.55)),
        make_method(MOST_FREQUENT, make_cell(0.2)),
    )
    assert table["method"].tolist() == [MOST_FREQUENT, TFIDF, FROZEN, FINE_TUNING]
    rows = table.set_index("method")
    assert rows["recommended"].to_dict() == {
        MOST_FREQUENT: False,
        TFIDF: False,
        FROZEN: True,
        FINE_TUNING: False,
    }
    assert rows.loc[FINE_TUNING, "is_best"] and np.isnan(rows.loc[FINE_TUNING, "best_q"])
    assert rows.loc[TFIDF, "best_q"] <= 0.05 < rows.loc[FROZEN, "best_q"]
    assert np.isnan(rows.loc[FROZEN, "delta"])
    assert rows.loc[FINE_TUNING, "delta"] == pytest.approx(
        rows.loc[FINE_TUNING, "score"] - rows.loc[FROZEN, "score"]
    )
    assert rows.loc[FINE_TUNING, "delta_low"] < rows.loc[FINE_TUNING, "delta_high"]
    (sentence,) = describe_methods(table)
    start = "For Own/intent, use frozen embeddings with logistic regression (score 8"
    assert sentence.startswith(start)
    assert "fine-tuning, is not significantly better with 300 training instances (+" in sentence
    assert sentence.endswith("and takes 40 times as long to train.")


def test_a_method_that_is_significantly_worse_than_any_other_is_not_recommended() -> None:
    """A best method that varies between two seeds is significantly better than no other method."""
    table = build_table(
        make_method(TRANSFER, make_cell(0.6, range(2), by_seed=0.39), "bert", variant="a:b"),
        make_method(FINE_TUNING, make_cell(0.75, range(2)), "bert"),
        make_method(TFIDF, make_cell(0.55)),
    ).set_index("method")
    assert table.loc[TRANSFER, "is_best"] and table.loc[TFIDF, "best_q"] > 0.05
    assert table["recommended"].to_dict() == {TFIDF: False, FINE_TUNING: True, TRANSFER: False}
    assert table.loc[TFIDF, "q"] <= 0.05


def test_a_transfer_is_not_recommended_if_the_baseline_has_collapsed() -> None:
    methods = [
        make_method(TFIDF, make_cell(0.7)),
        make_method(MOST_FREQUENT, make_cell(0.2)),
        make_method(FINE_TUNING, make_cell(0.2, range(3)), "bert"),
    ]
    transfer = partial(make_method, TRANSFER, make_cell(0.97, range(3)), "bert", variant="a:b")
    (sentence,) = describe_methods(build_table(*methods, transfer()))
    assert sentence.startswith("For Own/intent, use transfer from b (a)")
    table = build_table(*methods, transfer(is_excluded=True)).set_index("method")
    assert table.loc[TRANSFER, "is_best"] and table.loc[TFIDF, "recommended"]
    assert table.loc[TRANSFER, "delta"] > 0 and table.loc[TRANSFER, "q"] <= 0.05
    (sentence,) = describe_methods(table.reset_index())
    start = "For Own/intent, transfer from b (a) has the highest score (97."
    assert sentence.startswith(start)
    assert "It is not recommended, because the baseline has collapsed" in sentence
    end = "The recommended method among the others is TF-IDF with logistic regression (70.0 ["
    assert end in sentence


def test_q_is_adjusted_over_all_pairs() -> None:
    cells = [make_cell(0.5), make_cell(0.58), make_cell(0.62)]
    pair = compare_pairs(cells[:2])[0, 1]
    among_three = compare_pairs(cells)[0, 1]
    assert pair.delta == among_three.delta
    assert pair.q < among_three.q, "more pairs, less certainty"
    assert compare_pairs(cells)[1, 0].delta == -among_three.delta


def test_a_single_seed_is_not_tested() -> None:
    table = build_table(
        make_method(FINE_TUNING, make_cell(0.95, [0]), "bert"), make_method(TFIDF, make_cell(0.4))
    )
    assert not table["recommended"].any()
    assert table["delta"].isna().all()
    (sentence,) = describe_methods(table)
    assert "no method is recommended, because fine-tuning has the highest score" in sentence
    assert "two or more seeds" in sentence


def test_methods_with_other_test_instances_are_not_compared() -> None:
    prompted = make_method(PROMPTED, make_cell(0.99, dialogues=50), "qwen", variant="0 shots")
    table = build_table(
        make_method(MOST_FREQUENT, make_cell(0.2)), make_method(TFIDF, make_cell(0.6)), prompted
    )
    assert table["best_q"].isna().all() and not table["recommended"].any()
    assert "qwen with 0 shots has the highest score" in next(describe_methods(table))


@pytest.mark.parametrize(
    ("constant", "learned", "words"),
    [
        (0.30, 0.31, "no method is significantly better than the most frequent answer"),
        (0.5, 0.4, "no method has a higher score than the most frequent answer"),
        (1.0, 1.0, "correct for all test instances, so this test split cannot distinguish"),
    ],
)
def test_a_constant_is_never_recommended(constant: float, learned: float, words: str) -> None:
    table = build_table(
        make_method(MOST_FREQUENT, make_cell(constant)), make_method(TFIDF, make_cell(learned))
    )
    (sentence,) = describe_methods(table)
    assert words in sentence
    assert ("The best method is TF-IDF" in sentence) == (learned > constant)
    assert ("Label more dialogues" in sentence) == (constant < 1)


def test_the_best_method_is_compared_with_the_next() -> None:
    table = build_table(
        make_method(TFIDF, make_cell(0.9), seconds=1.0), make_method(FROZEN, make_cell(0.6), "bert")
    )
    (sentence,) = describe_methods(table)
    assert "use TF-IDF with logistic regression (" in sentence
    assert (
        "next best method is frozen embeddings with logistic regression, which is sign" in sentence
    )
    assert "(−30.0 [" in sentence


def test_models_of_equal_methods_are_ordered_by_score() -> None:
    table = build_table(
        make_method(FROZEN, make_cell(0.80), "small"),
        make_method(FROZEN, make_cell(0.84), "large"),
        make_method(TFIDF, make_cell(0.4)),
    )
    chosen = table[table["recommended"]]
    assert chosen["model"].tolist() == ["large"]
    assert "logistic regression (large)" in next(describe_methods(table))


def test_unknown_units_leave_the_interval_out() -> None:
    plain = Cell(Trainings((0, 1), np.array([50.0, 52.0])), None, "logit")
    table = build_table(make_method(FINE_TUNING, plain, "bert"), make_method(TFIDF, make_cell(0.4)))
    assert table["best_q"].isna().all() and not table["recommended"].any()


# --- a finished study -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        finish_study(keep=False)
        for command in ("collect", "statistics", "figures", "report"):
            assert main([command, "--config", "study.yaml"]) == 0
    return folder


def test_a_study_compares_its_methods(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(finished)
    study = open_study("study.yaml")
    table = read_statistic_frame(Path(study.tables, "methods.parquet"))
    assert list(table.columns) == list_column_names(METHODS)
    assert table.groupby("target")["recommended"].sum().tolist() == [1, 1]
    assert table.groupby("target")["is_best"].sum().tolist() == [1, 1]
    trained = table[table["method"] == FINE_TUNING]
    assert len(trained) == 4, "two models, two targets"
    tuned = table[table["method"] == CONTRASTIVE]
    assert len(tuned) == 4 and tuned["n_seeds"].eq(2).all()
    assert (trained["milliseconds"] > 0).all() and (trained["seconds"] > 0).all()
    assert (trained["trained_parameters"] <= trained["parameters"]).all()
    embedded = table[table["method"].isin([FROZEN, NEAREST])].groupby(["target", "model"])
    assert embedded["seconds"].nunique().eq(1).all(), "they share the cost of embeddings"
    assert (table["seconds"] > 0).all() and (table["train_size"] > 20).all()
    for row in table.to_dict("records"):
        runs = [run for run in study.plan.runs if is_method_run(row, run)]
        assert len(runs) == row["n_seeds"], row
    advice = get_design(study.config).advice(study)
    assert [line.partition(",")[0] for line in advice] == ["For Tickets/intent", "For Tickets/mood"]
    page = Path(study.report).read_text()
    assert "use TF-IDF with logistic regression" in page
    assert "methods by target" in page
    assert "export-model --config study.yaml --task Tickets/intent --out model</code>" in page
    for ending in ("csv", "md", "tex", "html"):
        assert Path(study.figures, f"methods.{ending}").is_file()
    for ending in ("png", "pdf"):
        assert Path(study.figures, f"methods_Tickets.{ending}").is_file()
    words = ["explain", "methods", "tfidf_logistic", "intent", "--config", "study.yaml"]
    assert main(words) == 0, capsys.readouterr().err


def test_the_transfer_is_the_one_with_the_best_dev_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = ["emotion_recognition", "topic_classification", "dialogue_act_classification"]
    keys: dict[str, Any] = {
        "study": "transfer",
        "datasets": {"DailyDialog": {"tasks": tasks}},
        "models": [{"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}],
        "algorithms": ["pretrain_finetune", "multitask"],
        "references": ["tfidf_logistic"],
        "seeds": 2,
    }
    Path("study.yaml").write_text(yaml.safe_dump(keys))
    study = open_study("study.yaml")
    write_records(study)
    for command in ("collect", "statistics"):
        assert main([command, "--config", "study.yaml"]) == 0
    frames = {
        name: read_statistic_frame(Path(study.tables, f"{name}.parquet"))
        for name in ("methods", "transfer_runs")
    }
    methods, runs = frames["methods"], frames["transfer_runs"]
    assert methods["method"].tolist() == [FINE_TUNING, TRANSFER] * 3, "the reference is not done"
    chosen = methods[methods["method"] == TRANSFER].set_index("target")
    transfers = runs[runs["n_sources"] == 1]
    variants = transfers["algorithm"] + ":" + transfers["source"]
    dev = transfers.assign(variant=variants).groupby(["target", "variant"])["dev_score"].mean()
    for target, variant in chosen["variant"].items():
        assert dev[target, variant] == dev[target].max()
    mean = transfers.assign(variant=variants).groupby(["target", "variant"])["score"].mean()
    for row in chosen.reset_index().to_dict("records"):
        assert row["score"] == pytest.approx(mean[row["target"], row["variant"]])
        runs_of_row = [run for run in study.plan.runs if is_method_run(row, run)]
        assert [run.seed for run in runs_of_row] == [0, 1]
    longer = (
        chosen["seconds"] > methods[methods["method"] == FINE_TUNING].set_index("target")["seconds"]
    )
    assert longer[chosen["variant"].str.startswith("pretrain_finetune")].all()
    assert get_design(study.config).advice(study) == [], "the dialogues are not the user's own"
