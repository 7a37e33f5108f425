"""Output of the empathetic study: the answer, and tables next to the published ones."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from tasktransfer.designs import load_config
from tasktransfer.designs.empathetic.answer import write_answer
from tasktransfer.designs.empathetic.figures import plot_differences, plot_ratios, plot_scores
from tasktransfer.designs.empathetic.frames import (
    CONTROL_DIFFERENCES,
    COSTS,
    DIFFERENCES,
    MEASURED,
    SUMMARY,
)
from tasktransfer.designs.empathetic.printed import (
    add_names,
    add_scores,
    compute_pool_shares,
    read_published_table2,
    read_published_table4,
)
from tasktransfer.designs.empathetic.shown import TABLES, build_analysis
from tasktransfer.present.tables import AbsentOutput, PrintedTable, build_printed_table
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.results.study import Study

LAPTOP = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "empathetic-laptop.yaml"
"""A config of both settings, with P@1,100."""
POOLS = ("ED", "ED+DD")
Cells = dict[tuple[str, str, str, str], tuple[float, float, float]]
"""Setting, method, measure and pool → a value and the ends of its interval."""


def view(frames: dict[str, pd.DataFrame], **metadata: Any) -> Frames:
    study = SimpleNamespace(config=load_config(LAPTOP), plan=SimpleNamespace(stages=[1]))
    order = {"score": ["P@1,100", "AVG BLEU, retrieval", "PPL", "log PPL", "AVG BLEU, generation"]}
    about = Metadata(
        "planted", "digest", metadata.pop("synthetic", False), 1, order=order, **metadata
    )
    measured = pd.DataFrame(columns=[name for name, _, _ in MEASURED]).astype({"constant": bool})
    return Frames(cast(Study, study), {"measured": measured, **frames}, about)


def summary(cells: Cells, block: int = 100) -> pd.DataFrame:
    rows = [(*key, 2, *numbers, 40) for key, numbers in cells.items()]
    return add_scores(pd.DataFrame(rows, columns=[name for name, _, _ in SUMMARY]), block, POOLS)


def compared(cells: Cells, q: float, seeds: int = 2) -> pd.DataFrame:
    """Return differences from Base, all with the same q."""
    rows = [(*key, seeds, *numbers, q, q, True) for key, numbers in cells.items()]
    return add_scores(pd.DataFrame(rows, columns=[name for name, _, _ in DIFFERENCES]), 100, POOLS)


def table(name: str, of: Frames) -> PrintedTable | AbsentOutput:
    return build_printed_table(
        build_analysis(of.study), next(t for t in TABLES if t.name == name), of
    )


def lines(made: PrintedTable | AbsentOutput) -> list[tuple[str, ...]]:
    assert isinstance(made, PrintedTable)
    entries = [entry for block in made.layout.blocks for entry in block]
    return [made.layout.head, *(line for entry in entries for line in entry)]


# --- the answer ---------------------------------------------------------------------------------

EFFECTS: Cells = {
    ("retrieval", "pretrained", "p_at_1", ""): (-6.0, -8.0, -4.0),
    ("generation", "pretrained", "log perplexity", ""): (1.1, 0.9, 1.3),
    ("retrieval", "emoprepend-1", "p_at_1", ""): (5.0, 3.0, 7.0),
    ("generation", "multitask", "log perplexity", ""): (0.2, 0.1, 0.3),
    ("retrieval", "topicprepend-1", "bleu", "ED"): (0.1, -1.0, 1.2),
}


def test_planted_effects_are_the_answer() -> None:
    training, labels = write_answer(view({"differences": compared(EFFECTS, 0.01)}))
    assert "improves P@1,100 (+6.00 [+4.00, +8.00]) and log PPL (−1.10 [−1.30, −0.90])" in training
    assert "1 is significantly better: EmoPrepend-1 in P@1,100 (+5.00 [+3.00, +7.00])" in labels
    assert "1 is significantly worse: Multitask in log PPL (+0.20 [+0.10, +0.30])" in labels
    assert labels.startswith("Of 3 differences from Base")


def test_without_an_effect_nothing_is_claimed() -> None:
    none = dict.fromkeys(EFFECTS, (0.1, -1.0, 1.2))
    for sentence in write_answer(view({"differences": compared(none, 0.7)})):
        assert "No significant difference" in sentence
        assert "significantly" not in sentence


@pytest.mark.parametrize(
    ("interval", "q"), [((-1.0, 11.0), 0.01), ((3.0, 7.0), 0.3), ((3.0, 7.0), math.nan)]
)
def test_a_large_difference_is_not_significant_where_interval_or_q_bear_none(
    interval: tuple[float, float], q: float
) -> None:
    large: Cells = dict.fromkeys(EFFECTS, (5.0, *interval))
    assert "significantly" not in " ".join(write_answer(view({"differences": compared(large, q)})))


def test_controls_are_not_part_of_the_answer() -> None:
    control: Cells = {("retrieval", "emoprepend-gold", "p_at_1", ""): (50.0, 49.0, 51.0)}
    assert "emoprepend-gold" not in " ".join(
        write_answer(view({"differences": compared(control, 0.001)}))
    )


def minus_controls(untrained: tuple[float, float, float], q: float) -> pd.DataFrame:
    """Return an ensemble's differences from its controls; that from Base trained longer is 5."""
    names = ("retrieval", "ensemble-tuned", "p_at_1", "")
    rows = [
        (*names, "ensemble-untrained", 2, *untrained, q, q),
        (*names, "base-longer", 2, 5.0, 3.0, 7.0, 0.01, 0.01),
    ]
    columns = [name for name, _, _ in CONTROL_DIFFERENCES]
    return add_scores(pd.DataFrame(rows, columns=columns), 100, POOLS)


def test_a_gain_that_needs_no_emotion_is_not_credited_to_emotions() -> None:
    effects = {**EFFECTS, ("retrieval", "ensemble-tuned", "p_at_1", ""): (9.4, 5.0, 13.0)}
    frames = {"differences": compared(effects, 0.01)}
    last = write_answer(
        view({**frames, "control_differences": minus_controls((-1.7, -4.0, 1.0), 0.4)})
    )[-1]
    assert last.startswith("No ensemble is significantly better than its controls (ensemble-untra")
    assert "no gain can be attributed to the second encoder's training on emotions" in last
    last = write_answer(
        view({**frames, "control_differences": minus_controls((4.0, 2.0, 6.0), 0.01)})
    )[-1]
    assert last.startswith("In 1 of 1 measures an ensemble is significantly better than its contr")
    assert "Ensem-DM+ in P@1,100" in last


def test_one_run_of_an_ensemble_is_shown_next_to_its_controls() -> None:
    effects = {**EFFECTS, ("retrieval", "ensemble-tuned", "p_at_1", ""): (9.4, 5.0, 13.0)}
    frames = {"differences": compared(effects, math.nan, seeds=1)}
    frames["control_differences"] = minus_controls((-1.7, -4.0, 1.0), math.nan)
    last = write_answer(view(frames))[-1]
    assert last.startswith("In P@1,100, Ensem-DM+ differs from ensemble-untrained by −1.70 [−4.00")
    assert "] and from base-longer by +5.00 [+3.00, +7.00]. These controls have a" in last


def test_an_ensemble_without_controls_is_not_credited_to_emotions() -> None:
    effects = {**EFFECTS, ("retrieval", "ensemble-tuned", "p_at_1", ""): (9.4, 5.0, 13.0)}
    for seeds in (1, 2):
        frames = view({"differences": compared(effects, 0.01, seeds)})
        assert "Add controls: [untrained, longer]" in write_answer(frames)[-1]
        bare = view({"differences": compared(EFFECTS, 0.01, seeds)})
        assert "Add controls" not in " ".join(write_answer(bare))


def test_a_system_of_the_user_is_named_in_the_answer() -> None:
    effects = {**EFFECTS, ("generation", "my-system", "bleu", ""): (2.0, 1.0, 3.0)}
    *_, last = write_answer(view({"differences": compared(effects, 0.01)}))
    assert last.startswith("Your system my-system is significantly better than Base in AVG BLEU")
    *_, last = write_answer(view({"differences": compared(effects, 0.2)}))
    assert last.startswith("Your system my-system is not significantly different from Base in AVG ")


def test_the_measures_of_a_system_share_a_sentence() -> None:
    effects = {
        ("retrieval", "my-system", "bleu", ""): (2.0, -1.0, 3.0),
        ("retrieval", "my-system", "p_at_1", ""): (-9.0, -12.0, -6.0),
    }
    *_, last = write_answer(view({"differences": compared({**EFFECTS, **effects}, 0.01)}))
    assert last.startswith("Your system my-system is not significantly different from Base in AVG ")
    assert "; significantly worse than Base in P@1,100 (−9.0" in last


def test_words_that_labels_replace_are_reported() -> None:
    scores = {("retrieval", f"{what}prepend-5", "p_at_1", ""): (1.0, 0.0, 2.0)
              for what in ("emo", "topic")}  # fmt: skip
    made = table("table2", view({"summary": summary(scores)}))
    assert isinstance(made, PrintedTable)
    assert "displaces the last words of the context (TopicPrepend-5: up to 6 words)." in made.text


@pytest.mark.parametrize("q", [0.01, math.nan])
def test_one_run_is_said_and_bears_no_claim(q: float) -> None:
    """Whatever q an older table contains."""
    training, labels, last = write_answer(view({"differences": compared(EFFECTS, q, seeds=1)}))
    assert training.startswith(
        "With one run of each method, Base differs most from Pretrained in log PPL (−1.10"
    )
    assert "methods with emotion or topic supervision that differ most from Base are" in labels
    assert last.startswith("No difference is tested, because the intervals account")
    assert "significantly" not in " ".join([training, labels, last])


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_run_that_answers_the_same_throughout_is_named(seeds: int) -> None:
    columns = [name for name, _, _ in MEASURED]
    rows = [
        ("generation", method, "w", seed, "bleu", "", 3.0, 40, "r", method == "base" and seed == 1)
        for method in ("base", "multitask")
        for seed in (0, 1)
    ]
    frames = {
        "differences": compared(EFFECTS, 0.01, seeds=seeds),
        "measured": pd.DataFrame(rows, columns=columns),
    }
    last = write_answer(view(frames))[-1]
    assert last.startswith("1 run of the compared methods gives the same answer")
    assert "Base (generation, seed 1)" in last


# --- the paper's tables -------------------------------------------------------------------------

SCORES: Cells = {
    ("retrieval", "base", "p_at_1", ""): (50.0, 48.0, 52.0),
    ("retrieval", "base", "bleu", "ED"): (5.0, 4.0, 6.0),
    ("retrieval", "base", "bleu", "ED+DD"): (4.0, 3.0, 5.0),
    ("generation", "base", "perplexity", ""): (30.0, 29.0, 31.0),
    ("generation", "base", "bleu", ""): (6.0, 5.0, 7.0),
    ("retrieval", "emoprepend-random", "p_at_1", ""): (49.0, 47.0, 51.0),
}


def test_table_2_is_laid_out_as_printed_with_the_papers_line_below_ours() -> None:
    head, ours, theirs, more, more_theirs, control = lines(
        table("table2", view({"summary": summary(SCORES)}))
    )
    assert head == (
        "Method", "Candidates", "", "P@1,100", "AVG BLEU, retrieval", "PPL", "AVG BLEU, generation",
    )  # fmt: skip
    assert ours[:4] == ("Base", "ED", "ours", "50.00 [48.00, 52.00]")
    assert theirs == ("", "", "published", "‡", "5.88", "21.24", "6.27")
    assert more[:2] == ("Base", "ED+DD")
    assert more_theirs[4] == "5.61"
    assert control[:4] == ("emoprepend-random", "", "ours", "49.00 [47.00, 51.00]")


def test_p_at_1_among_other_candidates_is_another_measure() -> None:
    made = table("table2", view({"summary": summary(SCORES, block=20)}))
    assert lines(made)[2][-1] == "‡"
    assert isinstance(made, PrintedTable)
    assert "P@1 among 20 candidates, published among 100" in made.text


@pytest.mark.parametrize("other", [{"cuts": "limit 20"}, {"facts": {"substitute: Reddit": "none"}}])
def test_no_difference_to_another_setting(other: dict[str, Any]) -> None:
    made = table("table2", view({"summary": summary(SCORES)}, **other))
    assert isinstance(made, PrintedTable)
    assert made.frame["published"].notna().any()
    assert "difference" not in made.frame
    assert "No differences are shown, because this study has" in made.text


def test_every_number_of_the_papers_table_2_is_found_once() -> None:
    rows = read_published_table2()
    names = ["setting", "measure", "model", "candidates"]
    assert len(rows) == len(rows.drop_duplicates(names))
    assert rows.groupby(["setting", "measure"]).size().to_dict() == {
        ("generation", "bleu"): 12,
        ("generation", "perplexity"): 12,
        ("retrieval", "bleu"): 15,
        ("retrieval", "p_at_1"): 12,
    }


def test_the_papers_table_4_in_numbers() -> None:
    """ "same" and "+9.6k" refer to the model above; a day has 24 hours."""
    of_paper = read_published_table4().set_index(["setting", "model"])
    assert of_paper.loc[("retrieval", "Base")].tolist() == [84.3e6, 0.5]
    assert of_paper.loc[("generation", "Multitask")].tolist() == [85_109_600.0, 1.0]
    assert of_paper.loc[("generation", "BaseLarge")].tolist() == [86.2e6, 0.5]
    assert of_paper["hours"].max() == 60


def test_table_4_has_published_numbers_and_no_difference_of_machines() -> None:
    names = [name for name, _, _ in COSTS]
    rows = [
        ("generation", "base", "writer", s, 85_120_200, 1.5, 9.0, "GPU", 64_663) for s in (0, 1)
    ]
    made = table("table4", view({"costs": add_names(pd.DataFrame(rows, columns=names))}))
    assert dict(zip(*lines(made), strict=True)) == {
        "Setting": "generation", "Method": "Base", "Hardware": "GPU", "Parameters": "85,120,200",
        "Published": "1", "Hours": "1.5", "Hours incl. earlier stages": "9",
        "Training instances": "64,663",
    }  # fmt: skip
    assert isinstance(made, PrintedTable)
    assert made.frame["published_parameters"].tolist() == [85.1e6]
    assert not [name for name in made.frame if str(name).startswith("difference")]


def accuracies() -> pd.DataFrame:
    return summary(
        {
            ("classifier", "fasttext-emotion", measure, ""): (44.0, 43.0, 45.0)
            for measure in ("accuracy", "accuracy_cut", "accuracy_contexts")
        }
    )


def test_table_9_has_the_papers_rows_of_this_corpus_alone() -> None:
    head, *rows = lines(table("table9", view({"summary": accuracies()})))
    assert [row[0] for row in rows] == ["ED", "", "ED-CUT", "", "contexts, as prepended"]
    assert head[2:] == (
        "fasttext-emotion", "DeepMoji, new", "DeepMoji, full", "DeepMoji, chain-thaw",
    )  # fmt: skip
    assert rows[1][2:] == ("43.00", "40.00", "46.00", "48.00")
    assert rows[3][2:] == ("41.00", "36.00", "42.00", "45.00")
    assert rows[4][2:] == ("44.00 [43.00, 45.00]", "–", "–", "–")  # the paper does not say it


def test_table_9_of_a_generated_world_has_no_columns_of_the_paper() -> None:
    head, *rows = lines(table("table9", view({"summary": accuracies()}, synthetic=True)))
    assert head == ("Text", "fasttext-emotion")
    assert len(rows) == 3


# --- beyond the paper ---------------------------------------------------------------------------


def test_without_shared_seeds_there_is_no_table_of_differences() -> None:
    nothing: Cells = dict.fromkeys(EFFECTS, (math.nan, math.nan, math.nan))
    frames = {"differences": compared(nothing, math.nan, seeds=0), "summary": summary(SCORES)}
    made = table("differences", view(frames))
    assert isinstance(made, AbsentOutput)
    assert (
        made.why
        == "The table “Differences from Base” is not shown, because the study compares no method "
        "with Base."
    )
    assert plot_differences(view(frames)) is None


def test_a_difference_is_shown_with_its_q() -> None:
    frames = {"differences": compared(EFFECTS, 0.0004), "summary": summary(SCORES)}
    cells = [cell for line in lines(table("differences", view(frames))) for cell in line]
    assert "+5.00 [+3.00, +7.00], q < 0.001" in cells


def test_a_data_set_that_no_reply_is_from_has_a_share_of_0() -> None:
    rows = [("base", "ED", "ED", 100.0), ("base", "ED+DD", "ED", 100.0),
            ("pretrained", "ED+DD", "ED", 30.0), ("pretrained", "ED+DD", "DD", 70.0)]  # fmt: skip
    frame = add_names(pd.DataFrame(rows, columns=["method", "pool", "chosen_from", "percent"]))
    shares = compute_pool_shares(view({"pools_chosen": frame})).set_index(["method", "chosen_from"])
    assert set(shares["pool"]) == {"ED+DD"}
    assert shares["percent"].to_dict() == {
        ("base", "ED"): 100, ("base", "DD"): 0, ("pretrained", "ED"): 30, ("pretrained", "DD"): 70,
    }  # fmt: skip


# --- figures ------------------------------------------------------------------------------------


def test_figures_have_a_panel_a_measure_and_none_that_is_empty() -> None:
    frames = {"differences": compared(EFFECTS, 0.01), "summary": summary(SCORES)}
    figure, compare = plot_scores(view(frames)), plot_differences(view(frames))
    assert figure is not None
    assert compare is not None
    assert [axes.get_title("left") for axes in figure.axes] == [
        "P@1,100, chance 1", "AVG BLEU, retrieval", "PPL", "AVG BLEU, generation",
    ]  # fmt: skip
    assert [axes.get_title("left") for axes in compare.axes] == [
        "P@1,100", "AVG BLEU, retrieval", "log PPL",
    ]  # fmt: skip
    assert plot_scores(view({"summary": accuracies()})) is None


def test_ratios_are_drawn_where_there_are_some() -> None:
    values = pd.DataFrame({"A": [math.nan, 0.0], "B": [math.inf, math.nan]}, index=["A", "B"])
    axes = plot_ratios(values, "Choices").axes[0]
    assert sorted(text.get_text() for text in axes.texts) == ["0", "∞"]
