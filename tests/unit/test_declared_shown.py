"""Declarations of the package's designs: names lead to functions, captions to files.

The answers of transfer and probes claim only what their tables support, and nothing without an
effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from report_results import Asked, make_results
from shown_results import shown_of, view_of
from tasktransfer.designs.empathetic import shown as empathetic
from tasktransfer.designs.explain import Explanation, as_text
from tasktransfer.designs.explain.question import StudyQuestion, explain_table, find_table
from tasktransfer.designs.panel import shown as panel
from tasktransfer.designs.probes import shown as probes
from tasktransfer.designs.probes.answer import write_answer as answer_of_probes
from tasktransfer.designs.probes.frames import ABOVE_WORDS
from tasktransfer.designs.transfer.report.answer import write_answer as answer_of_transfer
from tasktransfer.designs.transfer.shown import FIGURES, declare_analysis
from tasktransfer.errors import ConfigError
from tasktransfer.present.declared import Analysis, Figure
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata

ROOT = Path(__file__).resolve().parents[2]
A, B, C = "emotion_recognition", "dialogue_nli", "topic_classification"
RESULTS = make_results(Asked({"DailyDialog": (A, B, C)}, models=("bert",)))
NO_STUDY: Any = None
"""What probes and empathetic dialogues declare is the same of every study."""
PRESENTATIONS = {
    "transfer": declare_analysis(
        {"DailyDialog": FIGURES},
        selectors=True,
        mixing=True,
        across=True,
        labels=True,
        own=[("Tickets", "intent")],
    ),
    "panel": panel.build_analysis(NO_STUDY),
    "empathetic": empathetic.build_analysis(NO_STUDY),
    "probes": probes.build_analysis(NO_STUDY),
}


def lazy_names(value: Any) -> Iterator[tuple[str, str]]:
    """Yield module and name of each function that is imported lazily."""
    if isinstance(value, partial):
        yield from lazy_names(value.func)
        yield from lazy_names(value.args)
    elif isinstance(value, FunctionType):
        if value.__code__.co_qualname.startswith("LazyModule."):
            yield value.__module__, value.__name__
        else:
            for cell in value.__closure__ or ():
                yield from lazy_names(cell.cell_contents)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from lazy_names(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from lazy_names(item)


@pytest.mark.parametrize("design", PRESENTATIONS)
def test_every_lazy_name_is_a_function(design: str) -> None:
    shown = PRESENTATIONS[design]
    names = set(lazy_names(shown))
    assert len(names) >= (8 if design == "transfer" else len(shown.tables) // 2)
    for module, name in sorted(names):
        assert callable(getattr(import_module(module), name)), f"{module}.{name}"


def texts(shown: Analysis) -> set[str]:
    return {
        (each.text if isinstance(each, Figure) else "") or each.name
        for each in (*shown.tables, *shown.figures)
        if not each.caption
    }


@pytest.mark.parametrize("design", PRESENTATIONS)
def test_every_caption_has_its_file_and_every_file_its_use(design: str) -> None:
    shown = PRESENTATIONS[design]
    assert shown.captions == design
    files = {path.stem for path in (ROOT / "workflow" / "report" / design).iterdir()}
    assert files == texts(shown)


# --- a cell ---------------------------------------------------------------------------------------


def explained(*words: str) -> Explanation:
    frames, shown = view_of(RESULTS), shown_of(RESULTS)
    table = find_table(shown, "TABLE2")
    assert table is not None
    config = SimpleNamespace(results="results")
    study: Any = SimpleNamespace(
        config=config,
        config_file="study.yaml",
        plan=SimpleNamespace(runs=(), nodes=()),
        tables="results/tables",
        absent=(),
    )
    return explain_table(StudyQuestion(study, words, 0, frames), shown, table)


def test_a_cell_is_found_by_its_words_in_any_order_and_case() -> None:
    told = explained("multitask", "BERT")
    (row,) = told.rows
    assert row.names == {"dataset": "DailyDialog", "model": "bert", "algorithm": "multitask"}
    assert row.numbers["n_pairs"] == 6 and row.source_runs == 0
    assert row.meanings["n_pairs"] in as_text(told)
    assert "dataset DailyDialog, model bert, algorithm multitask" in as_text(told)
    assert len(explained("bert").rows) == 3


def test_a_cell_is_found_by_what_the_table_prints() -> None:
    by_key, printed = explained("multitask_finetune"), explained("Multitask → fine-tune")
    assert printed.rows == by_key.rows != ()


def test_an_unknown_name_gets_a_list_of_known_names() -> None:
    with pytest.raises(ConfigError, match=r"study\.yaml.*'multitusk'.*multitask"):
        explained("bert", "multitusk")
    with pytest.raises(ConfigError, match=r"No row of table2 has all of .*. 'pretr.*' could be D"):
        explained("multitask", "pretrain_finetune")
    assert find_table(shown_of(RESULTS), "DailyDialog") is None


# --- the answer of transfer -----------------------------------------------------------------------


def transfer(
    delta: list[float],
    q: list[float],
    joint: tuple[float, float],
    joint_q: float = 0.01,
    collapsed: Sequence[tuple[str, str, str, int]] = (),
) -> list[str]:
    """Return frames of two cells, ER → DNLI and DNLI → ER, with an interval and q of the mean.

    ``collapsed``: algorithm, source, target and how many of two runs predict one label only.
    """
    pairs = [(A, B), (B, A)]
    cells = (
        RESULTS["cells"]
        .iloc[:2]
        .assign(
            model="bert",
            algorithm="multitask",
            source=[source for source, _ in pairs],
            target=[target for _, target in pairs],
            n_sources=1,
            delta=delta,
            low=[value - 1 for value in delta],
            high=[value + 1 for value in delta],
            q=q,
        )
    )
    summary = (
        RESULTS["summary"]
        .iloc[:1]
        .assign(
            model="bert",
            algorithm="multitask",
            mean=sum(joint) / 2,
            joint_low=joint[0],
            joint_high=joint[1],
            joint_q=joint_q,
        )
    )
    names = ["algorithm", "source", "target", "n_collapsed"]
    one_label = pd.DataFrame(collapsed, columns=names).assign(
        dataset="DailyDialog", model="bert", n_runs=2
    )
    frames = {"cells": cells, "summary": summary, "collapsed": one_label}
    return answer_of_transfer(RESULTS.replace(frames))


def of_cells(sentences: list[str]) -> list[str]:
    """Return the sentences without those about each target, which have separate tests."""
    begins = ("No transfer", "Averaged", "The largest", "Nothing can", "Of ")
    return [line for line in sentences if line.startswith(begins)]


def test_a_planted_transfer_is_found_and_named() -> None:
    told = of_cells(transfer([6.0, -4.0], [0.01, 0.9], (0.5, 1.5)))
    assert "1 of 1 means differs significantly from 0 (q ≤ 0.05): Multitask with" in told[0]
    assert "(+1.00 [+0.50, +1.50] points)" in told[0]
    assert told[1].startswith("Of 2 combinations of")
    assert "1 is significantly better" in told[1] and "none is significantly worse" in told[1]
    assert "ER → DN " in told[2] and "+6.0 [+5.0, +7.0] points" in told[2]
    assert not any("loss" in line for line in told)
    worse = of_cells(transfer([6.0, -4.0], [0.9, 0.01], (-2.0, -1.0)))
    assert "none is significantly better" in worse[1] and "1 is significantly worse" in worse[1]
    assert "The largest significant loss is DN → ER" in worse[2]


def test_without_a_transfer_nothing_is_claimed() -> None:
    """The planted transfer, with a q and an interval that do not support a claim."""
    told = of_cells(transfer([6.0, -4.0], [0.051, 0.9], (-0.1, 1.5), 0.2))
    assert told == [
        "Averaged over all pairs, no algorithm changes scores significantly (q > 0.05).",
        "No transfer differs significantly from its baseline (q > 0.05 in all 2 combinations of "
        "source, target, model and algorithm).",
    ]
    nan = float("nan")
    holes = transfer([6.0, -4.0], [0.051, 0.9], (nan, nan), nan)
    assert any("no interval over seeds and dialogues" in line for line in holes)
    assert not any("changes scores significantly" in line for line in of_cells(holes))
    alone = transfer([6.0, -4.0], [float("nan")] * 2, (0.5, 1.5))
    assert not any("train on" in line or "significantly from 0" in line for line in alone)


def test_an_interval_of_one_of_several_means_is_not_significant_by_itself() -> None:
    """Its own interval excludes 0; among all means this may happen by chance."""
    told = of_cells(transfer([6.0, -4.0], [0.051, 0.9], (0.1, 1.5), 0.09))
    assert told[0].startswith("Averaged over all pairs, no algorithm changes scores significantly")


def test_statements_say_which_runs_behind_them_predict_one_label() -> None:
    one_label = [("multitask", A, B, 1)]
    told = of_cells(transfer([6.0, -4.0], [0.01, 0.9], (0.5, 1.5), collapsed=one_label))
    assert "1 of the 2 averaged cells has runs or baselines that predict" in told[0]
    assert "; 1 of these cells has runs or baselines that predict one label only." in told[1]
    assert "points; 1 of 2 runs predicts one label only." in told[2]


def test_a_collapsed_baseline_counts_as_not_learned_without_references() -> None:
    one_label = [("baseline", "", B, 2)]
    first, *told = transfer([6.0, -4.0], [0.01, 0.9], (0.5, 1.5), collapsed=one_label)
    assert first.startswith("1 of ") and "has not learned" in first
    assert told[-1].endswith(
        "Another combination is not counted, because the baseline of its target has not learned."
    )


# --- the answer of probes -------------------------------------------------------------------------


def probed(
    trained: float, q: float, rho: tuple[float, float], probe: str = "AllSlots", constant: int = 0
) -> list[str]:
    """Return one probe of the best epoch, with the untrained encoder and the best constant."""
    intervals = pd.DataFrame(
        {
            "snapshot": "best",
            "probe": [probe, probe, "Coin"],
            "compared_with": ["untrained", "prior", "untrained"],
            "value": [trained, 5.0, 50.0],
            "q": [q, q, 0.001],
            "p": [0.01, 0.01, 0.001],
            "corpus": "MultiWOZ",
            "model": "LSTM",
            "constant": [constant, constant, 0],
        }
    )
    claims = pd.DataFrame(
        {"corpus": ["MultiWOZ"], "probe": ["all"], "over": ["within"], "rho": [sum(rho) / 2],
         "low": [rho[0]], "high": [rho[1]], "points": [9]}
    )  # fmt: skip
    no_words = pd.DataFrame(columns=[name for name, _, _ in ABOVE_WORDS])
    frames = {"intervals": intervals, "claims": claims, "above_words": no_words}
    return answer_of_probes(Frames(NO_STUDY, frames, Metadata("s", "0" * 64, False, 1)))


def test_what_training_planted_is_found() -> None:
    told = probed(8.0, 0.01, (0.2, 0.8))
    assert "raised probe F1 in 1 of 1 pairs of model and probe and lowered it in none" in told[0]
    assert told[1].endswith("in 1 of 1 pairs.")
    assert "significantly positively correlated (Spearman 0.50 [0.20, 0.80])" in told[2]
    assert "in none of 1 pairs of model and probe and lowered it in 1" in probed(
        -8.0, 0.01, (-0.8, -0.2)
    )[0]  # fmt: skip
    assert "significantly negatively correlated" in probed(-8.0, 0.01, (-0.8, -0.2))[2]


def test_without_an_effect_nothing_is_claimed_and_the_coin_is_no_probe() -> None:
    told = probed(8.0, 0.051, (-0.1, 0.8))
    assert told[0].startswith("Probe F1 does not differ significantly between trained and untr")
    assert told[1].endswith("in none of 1 pairs.")
    assert "BLEU-2 and mean probe F1 are not significantly correlated" in told[2]
    assert "effect of training on probe F1 is unknown" in probed(
        8.0, 0.01, (0.2, 0.8), probe="Coin"
    )[0]  # fmt: skip


def test_one_run_of_an_encoder_is_no_test_of_training() -> None:
    told = probed(8.0, float("nan"), (-0.1, 0.8))
    assert told[0].startswith("With one run per encoder, probe F1 is higher after training")
    assert "in 1 of 1 pairs of model and probe. Differences are not tested" in told[0]
    assert not any("significantly raised" in line for line in told)


def test_probes_that_give_one_answer_are_counted_beside_the_claim() -> None:
    told = probed(8.0, 0.01, (0.2, 0.8), constant=1)
    assert ". In 1 of 1 pairs with a significant difference, a probe gives a constant" in told[0]
    alone = probed(8.0, float("nan"), (0.2, 0.8), constant=1)
    assert "In 1 of 1 pairs of model and probe, a probe gives a constant answer." in alone[0]
