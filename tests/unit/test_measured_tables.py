"""Tables and numbers of pages agree with the tables that studies and benchmarks wrote."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, str]


def read_rows(name: str) -> list[Row]:
    with (ROOT / "tests" / "fixtures" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_table(page: str, head: str) -> list[list[str]]:
    """Return the cells of the lines below a table's head line."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count(f"\n{head}\n") == 1, f"{page} has not one table with this head"
    lines = text.partition(f"\n{head}\n")[2].splitlines()[1:]
    end = next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def show(value: str, digits: int = 1, *, signed: bool = False) -> str:
    """Format a number with a minus sign; a value that is rounded to 0 has no sign."""
    rounded = round(float(value), digits)
    text = f"{abs(rounded):.{digits}f}"
    return f"−{text}" if rounded < 0 else f"+{text}" if signed and rounded > 0 else text


def show_interval(row: Row, low: str, high: str, digits: int = 1) -> str:
    return f"[{show(row[low], digits)}, {show(row[high], digits)}]"


def show_q(value: str) -> str:
    return "< 0.001" if float(value) < 0.001 else f"{float(value):.3f}"


def show_layer(row: Row) -> tuple[str, ...]:
    """Return the cells with the F1 of a layer and its difference from word counts."""
    above = show_interval(row, "above_low", "above_high")
    return (
        f"{show(row['f1'])} {show_interval(row, 'low', 'high')}",
        f"{show(row['above_words'], signed=True)} {above}",
        show_q(row["q"]),
        f"{row['higher']}, {row['lower']}",
    )


def test_the_layers_of_minilm() -> None:
    rows = read_rows("probes_layers")
    assert read_table(
        "probes.md", "| layer | F1 | minus word counts | q | probes above, below |"
    ) == [
        [
            row["layer"],
            *show_layer(row),
        ]
        for row in rows
    ]
    text = " ".join((ROOT / "docs" / "probes.md").read_text(encoding="utf-8").split())
    (words,) = {show(row["words"]) for row in rows}
    assert f"Word counts reach a mean F1 of {words} on the same six probes" in text
    above = [row["layer"] for row in rows if float(row["above_low"]) > 0]
    assert f"only layers {' and '.join(above)} score significantly higher than" in text


def test_the_layers_of_mpnet() -> None:
    rows, minilm = read_rows("probes_layers_of_mpnet"), read_rows("probes_layers")
    head = "| layer of mpnet | F1 | minus word counts | q | probes above, below |"
    assert read_table("probes.md", head) == [[row["layer"], *show_layer(row)] for row in rows]
    text = " ".join((ROOT / "docs" / "probes.md").read_text(encoding="utf-8").split())
    (words,) = {show(row["words"]) for row in (*rows, *minilm)}
    assert f"word counts for mpnet also reach a mean F1 of {words}." in text
    sure = [row for row in rows if float(row["q"]) <= 0.05 and float(row["above_low"]) > 0]
    above = " and ".join(row["layer"] for row in sure)
    assert f"Layers {above} of mpnet score significantly higher than word counts." in text
    best = max((*rows, *minilm), key=lambda row: float(row["f1"]))
    assert (best["model"], best["layer"]) == ("mpnet", "8")
    assert f"of all layers in both tables: {show(best['above_words'])} points more" in text
    assert (rows[-1]["layer"], float(rows[-1]["q"]) > 0.05) == ("12", True)


def test_the_layers_of_two_models() -> None:
    every = read_rows("probes_layers_of_two_models")
    rows = [row for row in every if row["probe"] == "all"]
    head = "| model | layer | F1 | minus word counts | q | probes above, below |"
    assert read_table("probes.md", head) == [
        [
            row["model"],
            row["layer"],
            *show_layer(row),
        ]
        for row in rows
    ]
    text = " ".join((ROOT / "docs" / "probes.md").read_text(encoding="utf-8").split())
    words = {row["model"]: show(row["words"]) for row in rows}
    assert (
        f"Word counts reach a mean F1 of {words['MiniLM']} with MiniLM's tokenizer and "
        f"{words['SmolLM2-135M']} with SmolLM2's."
    ) in text
    assert not [row for row in rows if float(row["q"]) <= 0.05 and float(row["above_words"]) > 0]
    equal = [(row["model"], row["layer"]) for row in rows if float(row["q"]) > 0.05]
    smollm2 = [("SmolLM2-135M", layer) for layer in ("6", "12", "19")]
    assert equal == [("MiniLM", "3"), ("MiniLM", "4"), *smollm2]
    slots, values = (row for row in every if row["probe"] != "all")
    assert (
        f"by {show(slots['above_words'])} {show_interval(slots, 'above_low', 'above_high')}" in text
    )
    ends = [show(str(-float(values[key]))) for key in ("above_words", "above_high", "above_low")]
    assert f"worse than word counts do, by {ends[0]} [{ends[1]}, {ends[2]}] points" in text


RATER_HEAD = (
    "| set | smollm2 | template 1 | template 2 | `cosine-last` | word overlap | length "
    "| smollm2 minus `cosine-last` |"
)


def test_the_prompted_rater() -> None:
    by_set: dict[str, dict[str, Row]] = {}
    for row in read_rows("panel_prompted"):
        by_set.setdefault(row["set"], {})[row["row"]] = row

    def show_cell(row: Row, digits: int = 0) -> str:
        return f"{show(row['value'], digits)} {show_interval(row, 'low', 'high', digits)}"

    rated = ("cosine-last", "word-overlap", "length", "smollm2 minus cosine-last")
    shown = [
        [
            name,
            show_cell(rows["smollm2"]),
            *(show(rows[f"template {n}"]["value"], 0) for n in (1, 2)),
            *(show_cell(rows[method]) for method in rated),
        ]
        for name, rows in by_set.items()
    ]
    assert read_table("panel.md", RATER_HEAD) == shown
    own = {name: float(rows["smollm2"]["q"]) for name, rows in by_set.items()}
    assert [name for name, q in own.items() if q <= 0.05] == ["Empathetic_GRADE"]
    text = " ".join((ROOT / "docs" / "panel.md").read_text(encoding="utf-8").split())
    shown_q = f"(q {own['Empathetic_GRADE']:.3f}; Persona_USR: q {own['Persona_USR']:.3f})"
    assert f"differs significantly from 0 on Empathetic_GRADE only {shown_q}" in text
    minus = {n: float(rows["smollm2 minus cosine-last"]["q"]) for n, rows in by_set.items()}
    assert max(minus["Persona_USR"], minus["ConvAI2_GRADE"]) < 0.001
    assert minus["Empathetic_GRADE"] > 0.05


def test_a_prompted_replier() -> None:
    rows = {
        (row["table"], row["method"], row["measure"]): row
        for row in read_rows("empathetic_prompted")
    }
    digits = {"p_at_1": 1, "bleu": 2}

    def show_row(table: str, method: str, measure: str) -> str:
        row, places = rows[table, method, measure], digits[measure]
        return f"{show(row['value'], places)} {show_interval(row, 'low', 'high', places)}"

    names = {"pretrained": "Pretrained", "base": "Base", "smollm2": "smollm2"}
    head = "| method | P@1,100 | AVG BLEU | P@1,100 minus Base | AVG BLEU minus Base |"
    assert read_table("empathetic.md", head) == [
        [
            name,
            *(show_row("summary", method, measure) for measure in digits),
            *(
                "–" if method == "base" else show_row("differences", method, measure)
                for measure in digits
            ),
        ]
        for method, name in names.items()
    ]
    text = " ".join((ROOT / "docs" / "empathetic.md").read_text(encoding="utf-8").split())
    q = {key[2]: float(row["q"]) for key, row in rows.items() if row["q"] and key[1] == "smollm2"}
    assert q["bleu"] > 0.05 and f"(q = {q['p_at_1']:.3f})" in text
    ranked = rows["summary", "smollm2", "p_at_1"]
    assert float(ranked["low"]) < 1 < float(ranked["high"]), (
        "the page says that this includes chance"
    )
    permuted = rows["prompted", "smollm2", "p_at_1_permuted"]
    assert f"With permuted replies, SmolLM2's P@1 is {show(permuted['value'])}." in text
    perplexity = rows["summary", "smollm2", "word_perplexity"]
    interval = show_interval(perplexity, "low", "high")
    assert f"perplexity per word is {show(perplexity['value'])} {interval}" in text
    seconds = {key[2]: float(row["seconds"]) for key, row in rows.items() if row["seconds"]}
    assert f"P@1 took {seconds['p_at_1']:,.0f} s for 100 contexts" in text
    took = f"{seconds['bleu']:.0f} s and perplexity {seconds['word_perplexity']:.0f} s"
    assert f"BLEU took {took}" in text


def test_rankings_without_training() -> None:
    rows = read_rows("empathetic_rankings")

    def show_p_at_1(row: Row) -> str:
        return f"{show(row['value'])} {show_interval(row, 'low', 'high')}"

    names = {"tf-idf": "TF-IDF", "minilm": "MiniLM", "mpnet": "mpnet"}
    thousand = {row["method"]: row for row in rows if row["contexts"] == "1000"}
    assert read_table("empathetic.md", "| ranking | P@1,100 | P@1,100 in shuffled order |") == [
        [name, show_p_at_1(thousand[method]), show(thousand[method]["shuffled"])]
        for method, name in names.items()
    ]
    text = " ".join((ROOT / "docs" / "empathetic.md").read_text(encoding="utf-8").split())
    (hundred,) = (row for row in rows if row["contexts"] == "100")
    assert f"(control `words`) has a P@1 of {show_p_at_1(hundred)} on the same 100" in text
    encoders = [float(thousand[method]["low"]) for method in ("minilm", "mpnet")]
    assert min(encoders) > float(thousand["tf-idf"]["high"])
    gain = thousand["mpnet minus minilm"]
    assert f"mpnet is above MiniLM by {show_p_at_1(gain)} points" in text


def test_cosines_of_two_encoders() -> None:
    by_set: dict[str, dict[str, Row]] = {}
    for row in read_rows("panel_cosines"):
        by_set.setdefault(row["set"], {})[row["row"]] = row
    mean, minus = by_set.pop("mean"), "mpnet minus minilm"

    def show_cell(row: Row, digits: int = 0) -> str:
        return f"{show(row['value'], digits)} {show_interval(row, 'low', 'high', digits)}"

    means = [show(mean[name]["value"]) for name in ("minilm", "mpnet")]
    assert read_table("panel.md", "| set | MiniLM | mpnet | mpnet minus MiniLM |") == [
        *([name, *map(show_cell, rows.values())] for name, rows in by_set.items()),
        ["mean", *means, show_cell(mean[minus], 1)],
    ]
    sure = [name for name, rows in by_set.items() if float(rows[minus]["q"]) <= 0.05]
    assert all(float(by_set[name][minus]["low"]) > 0 for name in sure)
    text = " ".join((ROOT / "docs" / "panel.md").read_text(encoding="utf-8").split())
    highest = max(float(by_set[name][minus]["q"]) for name in sure)
    named = f"{', '.join(sure[:-1])} and {sure[-1]}; q = {highest:.3f} or less"
    assert len(sure) == 5
    assert f"significantly higher on five of ten sets ({named})" in text
    assert f"**The mean rises by {show_cell(mean[minus], 1)}**" in text


def test_the_search_for_recipes() -> None:
    """Training runs, and the best dev scores by the states that heads read and their start."""
    log = ROOT / "docs" / "development" / "recipe-search.csv"
    with log.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    text = " ".join((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split())
    assert f"has completed {len(rows)} training runs" in text
    own, fitted = ("Own", "emotion"), "logistic_regression"
    base = {"size": "300", "seed": "0", "learning_rate": "0.0003", "updates": "300"}
    dev = {
        (row["dataset"], row["task"], row["reads"], row["head_initialization"]): row["dev"]
        for row in rows
        if row.items() >= base.items()
        and row["precision"] == ("bfloat16" if row["head_initialization"] == fitted else "float32")
    }
    # This task labels dialogues.
    dev[*own, "turn", fitted] = dev[*own, "mean", fitted]
    tasks = {
        "emotions of EmpatheticDialogues": own,
        "emotions of EmoryNLP": ("Friends", "emory_emotion_recognition"),
        "emotions of DailyDialog": ("DailyDialog", "emotion_recognition"),
    }
    starts = {
        "random": "random",
        "unscaled_logistic_regression": "fitted without rescaling",
        "logistic_regression": "fitted",
    }
    kinds = [(reads, start) for reads in ("mean", "turn") for start in starts]
    kinds.remove(("mean", "logistic_regression"))
    titles = " | ".join(f"`{reads}`, {starts[start]}" for reads, start in kinds)
    assert read_table("recipes.md", f"| task | {titles} |") == [
        [name, *(show(dev[*key, *kind]) if (*key, *kind) in dev else "–" for kind in kinds)]
        for name, key in tasks.items()
    ]


SEARCHED = {
    "emotions of EmpatheticDialogues": "emotion",
    "emotions of EmoryNLP": "emory_emotion_recognition",
    "emotions of DailyDialog": "emotion_recognition",
    "topics of DailyDialog": "topic_classification",
}
"""Name of each task of the search on the page → task."""


def test_the_search_for_learning_rates() -> None:
    log = pd.read_csv(ROOT / "docs" / "development" / "recipe-search.csv")
    is_base = (log["size"] == 300) & (log["seed"] == 0) & (log["precision"] == "bfloat16")
    is_base &= log["updates"] == 300
    rows = log[is_base & (log["head_initialization"] != "logistic_regression")]
    dev = rows.pivot(index="task", columns="learning_rate", values="dev")
    assert [*dev.columns] == [1e-4, 2e-4, 3e-4, 5e-4] and {*dev.index} == {*SEARCHED.values()}
    assert read_table("recipes.md", "| task | 1e-4 | 2e-4 | 3e-4 | 5e-4 |") == [
        *([name, *map(show, dev.loc[task])] for name, task in SEARCHED.items()),
        ["mean", *map(show, dev.mean())],
    ]
    text = " ".join((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split())
    assert (
        f"The means over the tasks differ by {dev.mean().max() - dev.mean().min():.1f} points"
        in text
    )
    last = rows.pivot(index="task", columns="learning_rate", values="last").mean()
    assert f"are between {last.min():.1f} and {last.max():.1f}. We therefore kept 3e-4." in text


def test_the_seeds_of_the_recipe() -> None:
    """Failed runs: less than two points above the most frequent answer."""
    log = pd.read_csv(ROOT / "docs" / "development" / "recipe-search.csv")
    is_base = (log["size"] == 300) & (log["learning_rate"] == 3e-4) & (log["updates"] == 300)
    is_base &= (log["precision"] == "bfloat16") & log["head_initialization"].isin(
        ["auto", "random"]
    )
    rows = {name: log[is_base & (log["task"] == task)] for name, task in SEARCHED.items()}
    assert all([*each["seed"].sort_values()] == [*range(10)] for each in rows.values())
    failed = {name: each[each["dev"] < each["constant"] + 2] for name, each in rows.items()}
    assert read_table(
        "recipes.md", "| task | most frequent answer | lowest | mean | highest | failed runs |"
    ) == [
        [
            name,
            *map(show, (each["constant"].iloc[0], each["dev"].min(), each["dev"].mean())),
            show(each["dev"].max()),
            str(len(failed[name])),
        ]
        for name, each in rows.items()
    ]
    text = " ".join((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split())
    assert {name for name, each in failed.items() if len(each)} == {"emotions of EmoryNLP"}
    count = len(failed["emotions of EmoryNLP"])
    assert f"{count} of the 40 training runs" in text
    emory = rows.pop("emotions of EmoryNLP")
    smallest = min((each["dev"] - each["constant"]).min() for each in rows.values())
    assert f"On the other three tasks, the smallest margin is {smallest:.1f} points" in text
    below = int((emory["last"] < emory["constant"]).sum())
    assert f"after the last update, {below} of its ten models score below" in text


def test_the_search_for_lengths_of_training() -> None:
    log = pd.read_csv(ROOT / "docs" / "development" / "recipe-search.csv")
    shorter, longer = log[log["size"] == 5000].sort_values("updates").to_dict("records")
    assert (shorter["updates"], longer["updates"]) == (300, 938)
    decision = ROOT / "docs" / "decisions" / "0050-recipes-train-at-least-three-epochs.md"
    page, reasons = (
        " ".join(file.read_text(encoding="utf-8").split())
        for file in (ROOT / "docs" / "recipes.md", decision)
    )
    assert f"the dev score is {shorter['dev']:.1f} after 300 updates" in page
    assert f"and {longer['dev']:.1f} after three epochs (938 updates)" in page
    assert f"After 300 updates, the score is {shorter['dev']:.1f}, and the last" in reasons
    few, more = log[log["size"] == 1000].sort_values("updates").to_dict("records")
    assert (few["updates"], more["updates"]) == (300, 600) and few["dev"] > more["dev"]
    assert f"is {few['dev']:.1f} after 300 updates, and {more['dev']:.1f} after 600" in page
    assert shorter["best_round"] == "6/6" and f"it is {longer['dev']:.1f}." in reasons


def test_dev_scores_of_fitted_heads() -> None:
    file = ROOT / "docs" / "development" / "fitted-heads.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    title = "| task | labels | training instances | seeds | `mean`, random | `turn`, fitted |"
    differences = [float(row["dev_fitted"]) - float(row["dev_random"]) for row in rows]
    assert read_table("recipes.md", f"{title} difference |") == [
        [
            f"{row['task'].replace('_', ' ')} ({row['dataset']})",
            *(row[key] for key in ("labels", "size", "seeds")),
            *(show(row[key]) for key in ("dev_random", "dev_fitted")),
            f"{difference:+.1f}".replace("-", "−"),
        ]
        for row, difference in zip(rows, differences, strict=True)
    ]
    of: dict[str, list[float]] = {"turns": [], "dialogues": []}
    for row, difference in zip(rows, differences, strict=True):
        of[row["labels"]].append(difference)
    text = " ".join((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split())
    low, high = min(of["turns"]), max(of["turns"])
    assert f"gain on all five tasks that label turns, by {low:.1f} to {high:.1f} points" in text
    assert len(of["turns"]) == 5 and low > 0
    low, high = min(of["dialogues"]), max(of["dialogues"])
    ends = [f"{value:+.1f}".replace("-", "−") for value in (low, high)]
    mean = f"{fmean(of['dialogues']):+.1f}".replace("-", "−")
    assert f"range from {ends[0]} to {ends[1]} points, with a mean of {mean} points" in text


def test_four_seeds_of_fitted_heads() -> None:
    log = pd.read_csv(ROOT / "docs" / "development" / "recipe-search.csv")
    text = " ".join((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split())
    is_own = (log["dataset"] == "Own") & (log["precision"] == "bfloat16")
    is_own &= (log["size"] == 300) & (log["updates"] == 300)
    chosen = log[is_own & (log["learning_rate"] == 3e-4)]
    dev = chosen.pivot(index="seed", columns="head_initialization", values="dev").dropna()
    fitted, random = dev["logistic_regression"], dev["random"]
    assert len(dev) == 4
    rows = pd.read_csv(ROOT / "docs" / "development" / "fitted-heads.csv").set_index("dataset")
    means = rows.loc["EmpatheticDialogues", ["dev_random", "dev_fitted"]].tolist()
    assert means == pytest.approx([random.mean(), fitted.mean()], abs=0.006)
    gain = (fitted - random).mean()
    assert f"with 300 dialogues, fitted heads are {gain:.1f} points better" in text


def test_the_reading_test() -> None:
    """Sums over readers, and the documentation's two readers."""
    file = ROOT / "docs" / "development" / "reading-test.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        marks = sums.setdefault((row["test"], row["text"]), [0, 0, 0])
        for number, mark in enumerate(("clear", "odd", "unclear")):
            marks[number] += int(row[mark])
    assert read_table(
        "development/reading-test.md", "| test | text | sentences | clear, % | odd | unclear |"
    ) == [
        [*key, str(sum(marks)), f"{100 * marks[0] / sum(marks):.1f}", *map(str, marks[1:])]
        for key, marks in sums.items()
    ]
    first, second = (round(100 * int(row["clear"]) / 75) for row in rows[:2])
    text = " ".join((ROOT / "docs/development/reading-test.md").read_text("utf-8").split())
    assert f"found {first} % of the documentation clear, and the other found {second} %" in text
