"""A user's own repliers: items, equal numbers for equal replies, differences from Base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from markupsafe import escape

from empathetic_study import make_with_statistics
from tasktransfer.cli import main
from tasktransfer.core.nodes import Evaluation
from tasktransfer.designs.empathetic.replies import read_answered_contexts, sample_contexts
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.study import Study

STUDY: dict[str, Any] = {
    "study": "my system",
    "design": "empathetic",
    "data": {"release": "tiny_world", "few_sample": False,
             "tiny_world": {"seed": 0, "dialogues": 240}},
    "models": [{"name": "writer", "family": "encoder_decoder", "checkpoint": "built",
                "max_length": 40, "max_unknown_words": 1.0,
                "architecture": {"layers": 1, "decoder_layers": 1, "hidden": 16, "heads": 2,
                                 "feed_forward": 32, "positions": 60, "vocabulary_size": 2000}}],
    "seeds": 1,
    "training": {"learning_rate": 3e-3, "batch_size": 16, "epochs": 2, "precision": "float32"},
    "pretraining": {"epochs": 1, "limit_train": 16, "limit_dev": 8},
    "generation": {"model": "writer", "methods": ["base"]},
    "evaluation": {"pools": [], "limit_generated": 24,
                   "decoding": {"groups": 1, "beams": 1, "max_words": 10}},
}  # fmt: skip


def find_evaluation(study: Study, method: str) -> Evaluation:
    (run,) = (run for run in study.plan.runs if run.method == method)
    (found,) = (node for node in run.evaluations if node.measures == ("bleu",))
    return found


@pytest.fixture(scope="module")
def replied(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a study with a replier that repeats Base's replies, and one with the gold replies."""
    folder = tmp_path_factory.mktemp("replied")
    config = {**STUDY, "results": str(folder / "results")}
    study = make_with_statistics(config, folder / "first.yaml")
    items = folder / "items.jsonl"
    assert main(["items", "--config", study.config_file, "--out", str(items)]) == 0
    lines = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    assert all({*line} == {"item", "context"} for line in lines)
    assert not any("<SOC>" in text for line in lines for text in line["context"])
    rows = read_record_rows(Path(study.get_record_path(find_evaluation(study, "base")))).to_pylist()
    assert [line["item"] for line in lines] == [row["instance_id"] for row in rows]
    for name, column in (("copy", "prediction"), ("people", "gold")):
        told = [{**line, "reply": row[column][0]} for line, row in zip(lines, rows, strict=True)]
        text = "".join(f"{json.dumps(line)}\n" for line in told)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    config["brought"] = [
        {"name": n, "file": str(folder / f"{n}.jsonl")} for n in ("copy", "people")
    ]
    return make_with_statistics(config, folder / "study.yaml")


def test_equal_replies_have_equal_numbers(replied: Study) -> None:
    summary = pd.read_parquet(Path(replied.tables, "summary.parquet"))
    bleu = summary[summary["measure"] == "bleu"].set_index("method")
    columns = ["setting", "value", "low", "high", "dialogues"]
    pd.testing.assert_series_equal(
        bleu.loc["base", columns], bleu.loc["copy", columns], check_names=False
    )
    differences = pd.read_parquet(Path(replied.tables, "differences.parquet")).set_index("method")
    assert differences.loc["copy", "difference"] == pytest.approx(0, abs=1e-9)
    assert bleu.loc["people", "value"] == pytest.approx(100)
    assert differences.loc["people", "low"] > 0
    assert differences["q"].isna().all()  # Base has one seed


def test_a_replier_is_in_table_2_and_on_the_page(replied: Study) -> None:
    for command in ("figures", "report"):
        assert main([command, "--config", replied.config_file]) == 0
    table = Path(replied.figures, "table2.csv").read_text(encoding="utf-8")
    assert "people" in table
    assert "brought" in table
    answer = "people is compared with a single run of Base, and therefore not tested, in"
    page = Path(replied.report).read_text(encoding="utf-8")
    assert answer in page
    assert ">people<" in page
    examples = sample_contexts(read_answered_contexts(replied), 3, seed=0)
    table = page[page.index('id="example_replies"') :].partition("</table>")[0]
    for context in examples:
        assert context.instance in table
        for text in (*context.utterances, *context.replies.values()):
            assert escape(text) in table


def test_a_page_without_the_dialogues_has_no_examples(
    replied: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "get_instances_folder", lambda study, dataset: "nowhere")
    assert main(["report", "--config", replied.config_file]) == 0
    assert "example_replies" not in Path(replied.report).read_text(encoding="utf-8")


def test_replies_of_all_models_become_rating_sheets(
    replied: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contexts = read_answered_contexts(replied)
    assert {*contexts[0].replies} == {"Gold", "gen-base", "gen-copy", "gen-people"}
    rows = read_record_rows(
        Path(replied.get_record_path(find_evaluation(replied, "base")))
    ).to_pylist()
    assert [context.instance for context in contexts] == [row["instance_id"] for row in rows]
    for context, row in zip(contexts, rows, strict=True):
        assert context.replies["gen-base"] == context.replies["gen-copy"] == row["prediction"][0]
        assert context.replies["Gold"] == context.replies["gen-people"] == row["gold"][0]
        assert not any("<SOC>" in text for text in context.utterances)
    words = ["sheets", replied.config_file, "--instances", "4", "--raters", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    key = json.loads((tmp_path / "key.json").read_text(encoding="utf-8"))
    groups = [item["models"] for item in key["items"].values() if "models" in item]
    assert groups.count(["gen-base", "gen-copy"]) == 4
    assert len([*(tmp_path / "sheets").glob("*.html")]) == 2
    assert main([*words, "--models", "Gold", "base", "--out", str(tmp_path)]) == 2
    assert "--models: The study has no model 'base'. Did you" in capsys.readouterr().err


def test_examples_have_the_replies_of_all_models(
    replied: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["replies", replied.config_file, "--instances", "2", "--models", "Gold", "gen-base"]
    assert main([*words, "--json"]) == 0
    contexts = json.loads(capsys.readouterr().out)
    assert len(contexts) == 2
    assert main(words) == 0
    text = capsys.readouterr().out
    for context in contexts:
        assert [*context["replies"]] == ["Gold", "gen-base"]
        assert f"  Gold      {context['replies']['Gold']}\n" in text
        assert f"  Speaker   {context['utterances'][-1]}\n" in text
    assert main([*words[:2], "--instances", "99"]) == 2
    assert "There are only 24 contexts to which all models reply" in capsys.readouterr().err
