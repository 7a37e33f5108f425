"""Frames 3 and 6 from constructed records with the published results."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from paper_studies import gather, several_runs, several_score, some
from record_factory import Run

from shown_results import write_table_text
from tasktransfer.datasets import DATASETS
from tasktransfer.designs.transfer import published
from tasktransfer.designs.transfer.tables import multi_source_tables
from tasktransfer.designs.transfer.tables.paper_tables import compute_table3, compute_table6
from tasktransfer.results.frames import Frames


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    return gather(tmp_path_factory.mktemp("several"), several_runs(), several_score)


def test_table_6_comes_out_as_published(several: Frames) -> None:
    frame = some(compute_table6(several))
    assert list(frame.columns) == list(multi_source_tables.COLUMNS6)
    assert len(frame) == 36
    assert frame["complete"].all()
    legible = frame["published_multi_source_delta"].notna()
    assert legible.sum() == 35
    for name in ("single_source_delta", "multi_source_delta"):
        assert frame.loc[legible, f"difference_{name}"].abs().max() < 1e-9
    (odd,) = frame[~legible].to_dict("records")
    assert (odd["short"], odd["model"], odd["algorithm"]) == ("DNLI", "t5", "pretrain_finetune")
    assert odd["published_note"] == "not legible in the source at hand"
    assert odd["multi_source_delta"] == pytest.approx(1.95)
    assert math.isnan(odd["difference_single_source_delta"])


def test_table_3_comes_out_as_published_but_where_the_paper_contradicts_itself(
    several: Frames,
) -> None:
    frame = some(compute_table3(several))
    assert list(frame.columns) == list(multi_source_tables.COLUMNS3)
    assert len(frame) == 36
    off = frame[frame["difference_gain"].abs() > published.ROUNDING]
    assert [
        (row.short, row.model, row.algorithm, round(row.difference_gain, 2))
        for row in off.itertuples()
    ] == [
        ("DNLI", "bert", "pretrain_finetune", 0.06),
        ("CI", "gpt2", "multitask_finetune", 1.95),
    ]


def test_multi_source_tables_are_printed_with_notes(several: Frames, tmp_path: Path) -> None:
    text = write_table_text(several, tmp_path, "table6")
    assert "| DRSE | ARS + CEE + DAC | bert | Multitask | +0.96 | +0.96 | +0.00 | +3.73 |" in text
    assert "DNLI, bert, Pre-train → fine-tune: difference printed in Table 3 is 1.37" in text
    assert "| +0.00 | –\\* | – | +1.95 | –\\* | – | 2/2 | 3/3 |" in text
    text = (tmp_path / "table3.md").read_text()
    assert "| bert | Multitask | +2.77 | +2.77 | +0.00 | 2/2 | 3/3 |" in text


def with_other_sources(run: Run) -> Run:
    """Use DRSE from CESE instead of CEE, and CI without a legible source."""
    other = {
        "causal_emotion_entailment": "causal_emotion_span_extraction",
        "relation_extraction": "personality_detection",
    }
    if run[4] not in ("dialogue_reasoning_span_extraction", "character_identification"):
        return run
    return (*run[:3], tuple(sorted(other.get(name, name) for name in run[3])), *run[4:])


def test_published_values_stand_beside_the_papers_own_sources_only(tmp_path: Path) -> None:
    runs = [with_other_sources(run) for run in several_runs() if run[1] == "bert"]
    results = gather(tmp_path, runs, lambda run: 40.0 + len(run[3]))
    for name, table in (
        ("gain", compute_table3(results)),
        ("multi_source_delta", compute_table6(results)),
    ):
        frame = some(table)
        beside = frame.groupby("short")[f"published_{name}"].count().to_dict()
        assert beside == {"DRSE": 0, "DNLI": 3, "CI": 0, "QA": 3}
        assert frame[name].notna().all()
    text = write_table_text(results, tmp_path / "printed", "table3")
    assert "‡ alone: 6 rows with other sources than the paper, not compared." in text
    assert "‡ after a number: not all of the paper's sources are legible" in text
    assert text.count("‡ |") == 12  # both kinds


def test_a_study_without_the_papers_sources_is_not_compared(tmp_path: Path) -> None:
    runs = [with_other_sources(run) for run in several_runs()]
    few = [r for r in runs if r[1] == "bert" and r[4] == "character_identification"]
    frame = some(compute_table6(results := gather(tmp_path, few, lambda run: 40.0)))
    assert not any(name.startswith("published_") for name in frame)
    text = write_table_text(results, tmp_path / "printed", "table6")
    assert "No row is compared with the paper, because no row has the paper's sources." in text


@pytest.mark.parametrize(
    ("target", "ours", "told"),
    [
        ("question_answering", ("PD", "MER", "RE"), "as far as legible"),
        ("question_answering", ("PD", "MER", "EER"), "other"),
        ("character_identification", ("RE", "QA", "RC"), "as far as legible"),
        ("character_identification", ("RE", "RC"), "other"),
        ("dialogue_nli", ("ER", "ARS", "TC"), "as far as legible"),
        ("dialogue_nli", ("ER", "DAC", "TC"), "other"),
        ("dialogue_reasoning_span_extraction", ("CEE", "DAC", "ARS"), "same"),
        ("topic_classification", ("CEE", "DAC", "ARS"), "other"),
    ],
)
def test_sources_are_compared_with_what_is_legible(
    target: str, ours: tuple[str, ...], told: str
) -> None:
    named = {card.short: card.name for data in DATASETS.values() for card in data.tasks.values()}
    assert published.compare_sources(target, [named[short] for short in ours]) == told


def test_holes_of_the_multi_source_tables_are_shown(tmp_path: Path) -> None:
    runs = [run for run in several_runs() if run[1] == "bert" and run[0] == "Friends"]
    together = [run for run in runs if len(run[3]) == 3]
    target = "question_answering"
    gone = {
        *(run for run in together if run[2] == "multitask" and run[4] == target),  # both seeds
        *(run for run in together if run[2] == "pretrain_finetune" and run[4:] == (target, 0)),
        ("Friends", "bert", "multitask_finetune", ("relation_extraction",), target, 0),
    }
    results = gather(tmp_path, runs, several_score, leave_out=lambda run: run in gone)
    frame = some(compute_table6(results)).query("short == 'QA'").set_index("algorithm")
    assert frame["complete"].tolist() == [False, False, False]
    assert frame.loc["multitask", ["n_seeds", "n_expected", "n_singles"]].tolist() == [0, 2, 3]
    assert math.isnan(frame.loc["multitask", "multi_source_delta"])
    assert frame.loc["multitask", "single_source_delta"] == pytest.approx(2.50)
    assert frame.loc["pretrain_finetune", "n_seeds"] == 1
    text = write_table_text(results, tmp_path / "printed", "table3")
    assert "| Multitask† | – | −1.14 | – | 0/2 | 3/3 |" in text
    assert "† Computed from fewer seeds" in text
