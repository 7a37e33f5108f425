"""The effects planted in the tiny world of domains are found over several seeds.

Every trained method rates responses and uses the context; untrained ones do not. A domain's own
expert rates it best. The files of a finished panel are tested too.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file, save_file

from empathetic_study import make_with_statistics
from tasktransfer import datasets
from tasktransfer.cli import main
from tasktransfer.core.nodes import Outcome
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.designs.panel.config import METHODS
from tasktransfer.designs.panel.sources import tiny
from tasktransfer.designs.panel.sources.dataset import PANEL_TINY
from tasktransfer.evaluation.instance_predictions import predict_outcome_numbers
from tasktransfer.jobs import node_jobs
from tasktransfer.metrics.measures import compute_spearman
from tasktransfer.models.adapters import ADAPTERS_FILE
from tasktransfer.results.node_folders import inspect_nodes
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance
from tasktransfer.training.tiny import build_tiny_model

SEEDS = 3
DEMO = Path(__file__).resolve().parents[2] / "workflow" / "presets" / "panel-demo.yaml"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("planted")
    datasets.add_dataset(PANEL_TINY)
    tiny.write_release(folder / "words", 0, 600)
    shutil.rmtree(folder / "words" / "ratings")  # without training texts
    cache_dataset(PANEL_TINY.name, folder / "words", False, folder / "cache")
    build_tiny_model("encoder", [folder / "cache"], folder / "bert")
    config = yaml.safe_load(DEMO.read_text())
    model = {"name": "small", "family": "encoder", "checkpoint": str(folder / "bert")}
    config |= {
        "results": str(folder / "results"),
        "models": [{**model, "max_length": 64}],
        "seeds": SEEDS,
        "pairs": {"train": 800, "dev": 100, "candidates_per_pair": 1.5},
        "labeller": {"model": "small", "epochs": 7},
        "joint": {"epochs": 12, "round_updates": None, "patience": 4},
        "experts": {"epochs": 8, "round_updates": None},
        "twin": {"epochs": 1},
        "reduction": 4,
        "methods": [*METHODS, "twin"],
        "controls": ["untrained", "exchanged"],
        "checkpoints": {"keep": "all"},
    }
    config["data"]["tiny_world"]["dialogues"] = 600
    config["training"]["precision"] = "float32"  # "auto" measures, and differs between machines
    del config["few_shot"], config["selection"]
    return make_with_statistics(config, folder / "study.yaml")


def exchanged(items: list[Instance]) -> list[Instance]:
    """Replace each item's context by that of the most distant item."""
    far = len(items) // 2
    return [
        replace(one, context=other.context, turns=other.turns)
        for one, other in zip(items, [*items[far:], *items[:far]], strict=True)
    ]


def furthest(study: Study, method: str, domain: str) -> Run:
    """Return the run of a method and domain with the best dev score over seeds.

    Not every training learns the topic, and which ones do differs between processors.
    """

    def dev_score(run: Run) -> float:
        record = json.loads(Path(study.get_node_folder(run.judged[-1]), "metrics.json").read_text())
        return max(float(chosen["dev_score"]) for chosen in record["training"]["selections"])

    runs = [
        run for run in study.plan.runs
        if (run.method, run.about.get("domain")) == (method, domain)
    ]  # fmt: skip
    assert len(runs) == SEEDS
    return max(runs, key=dev_score)


def ratings_of(study: Study, run: Run, rated: str, *, wrong: bool = False) -> float:
    """Return Spearman's correlation x 100 of a run on a set, with true or wrong contexts."""
    (asked,) = run.evaluations
    assert isinstance(asked.of, Outcome)
    every = read_instances(Path(study.get_cache_folder(asked.data)), asked.task, "test")
    items = [one for one in every if one.id.startswith(rated)]
    gold = np.array([float(one.target[0]) for one in items])
    shown = exchanged(items) if wrong else items
    values = predict_outcome_numbers(
        asked, asked.of, node_jobs.build_evaluation_inputs(study, asked), shown
    )
    return 100 * compute_spearman(np.array(values), gold)


def told(study: Study, table: str, column: str, **where: str) -> float:
    """Return the only number of a table in the rows with these column values."""
    frame = pd.read_parquet(Path(study.tables, f"{table}.parquet"))
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return float(frame[column].item())


RESPONSE_ALONE = 45
"""Upper bound for rules that read only the response, on a set whose domain has a rule.

The order of words reaches 39 and 38 on these sets (see tests/unit/test_panel_tiny.py).
"""
BY_TOPIC = ["Harbour_Tiny", "Orchard_Tiny"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_correlates_with_what_is_planted(study: Study, method: str) -> None:
    """Check the mean over three seeds and three sets.

    Merged experts are checked on Harbour_Tiny only, because the rule of Harbour is the rule of two
    of the three experts. The next test checks that the context is read.
    """
    merged = method.startswith("panel-")
    where = {"method": method, "over": "Harbour" if merged else "all"}
    assert told(study, "averages", "seeds", **where) == SEEDS
    assert told(study, "averages", "value", **where) > 40


@pytest.mark.parametrize("rated", BY_TOPIC)
@pytest.mark.parametrize("method", ["panel", "collection", "single"])
def test_a_wrong_context_is_seen(study: Study, method: str, rated: str) -> None:
    """Exchanged contexts lower the correlation.

    Only the order of the response's words is then informative. Merged experts of opposite rules are
    left out, because they have no rule.
    """
    run = furthest(study, method, rated.partition("_")[0] if method != "single" else "")
    right = ratings_of(study, run, rated)
    assert right > RESPONSE_ALONE
    assert ratings_of(study, run, rated, wrong=True) < right - 30


def test_an_untrained_model_is_within_noise_of_0(study: Study) -> None:
    ends = (told(study, "averages", e, method="untrained", over="all") for e in ("low", "high"))
    low, high = ends
    assert low < 0 < high


@pytest.mark.parametrize("rated", BY_TOPIC)
def test_the_domains_own_expert_rates_it_best(study: Study, rated: str) -> None:
    # The panel's shared encoder can recognise a domain by its statements, and then all of its
    # experts apply the right rule. Each expert of the collection is trained on one domain alone.
    own = furthest(study, "collection", rated.partition("_")[0])
    experts = [r for r in study.plan.runs if (r.method, r.seed) == ("collection", own.seed)]
    rates = [ratings_of(study, run, rated) for run in experts if run.about != own.about]
    assert len(rates) == 2
    assert ratings_of(study, own, rated) > np.mean(rates) + 20


def test_an_expert_leaves_the_encoder_as_it_was(study: Study) -> None:
    joint, harbour, orchard = (
        next(s for s in study.plan.stages if (s.kind, s.label, s.seed) == (kind, label, 0))
        for kind, label in (
            ("joint", "all_domains"), ("expert", "Harbour"), ("expert", "Orchard"),
        )
    )  # fmt: skip
    encoders = [
        Path(study.get_checkpoint_folder(s), "model.safetensors") for s in (joint, harbour, orchard)
    ]
    weights = [load_file(file) for file in encoders]
    shared = [name for name in weights[0] if "head" not in name]
    assert len(shared) > 20
    for other in weights[1:]:
        assert all(weights[0][name].equal(other[name]) for name in shared)
    adapters = [load_file(file.with_name(ADAPTERS_FILE)) for file in encoders]
    moved = {name.partition(".")[0] for name in adapters[1]
             if name in adapters[0] and not adapters[0][name].equal(adapters[1][name])}  # fmt: skip
    assert moved == {"Harbour"}


def test_pairs_are_rated_by_each_expert_and_the_panel(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (said_of, kept), (changed, _) = tiny.TOPICS
    said = [f"I saw the {said_of} today."]
    rows = [
        {
            "context": said,
            "response": f"We leave the {kept} home.",
            "domain": "Harbour",
        },
        {"context": said, "response": f"home the {changed} leave {changed} We."},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["rate", "--config", study.config_file, str(file)]) == 0
    good, bad = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert good["panel"] == good["experts"]["Harbour"] > 0.5
    assert bad["panel"] == pytest.approx(sum(bad["experts"].values()) / 3)
    assert bad["experts"]["Harbour"] < good["experts"]["Harbour"]
    assert 0 <= bad["merged"] <= 1
    assert 0 <= bad["twin"] <= 1
    with file.open("a") as lines:
        lines.write('{"context": ["Hello."], "response": ""}\n')
    assert main(["rate", "--config", study.config_file, str(file)]) != 0
    assert (
        "pairs.jsonl:3, response: The response is empty. Write the response"
        in capsys.readouterr().err
    )
    file.write_text("")
    assert main(["rate", "--config", study.config_file, str(file)]) != 0
    assert "The file has no pairs. Write one JSON object per line" in capsys.readouterr().err


def test_a_panel_without_one_of_its_experts_is_refused(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expert = next(s for s in study.plan.stages if (s.kind, s.seed) == ("expert", 1))
    folder = Path(study.get_checkpoint_folder(expert))
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "none.jsonl").touch()
    arguments = ["rate", "--config", study.config_file, "--seed", "1", str(tmp_path / "none.jsonl")]
    assert main(arguments) != 0
    said = capsys.readouterr().err
    assert f"The expert for {expert.label} is missing" in said
    assert "checkpoints.keep" in said
    (tmp_path / "elsewhere").rename(folder)


def test_pairs_that_want_labels_are_written(study: Study, tmp_path: Path) -> None:
    assert main(["pairs", "--config", study.config_file, "--out", str(tmp_path)]) == 0
    lines = (tmp_path / "Harbour.jsonl").read_text().splitlines()
    assert {*json.loads(lines[0])} == {"context", "response", "how"}
    assert len(lines) > 600


def test_an_expert_that_is_not_as_its_training_left_it_rates_nothing(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other weights used to change the output of `rate`, and a NaN was printed unchanged."""
    first, other, *_ = (s for s in study.plan.stages if (s.kind, s.seed) == ("expert", 0))
    pair = tmp_path / "pair.jsonl"
    pair.write_text('{"context": ["Good morning."], "response": "We leave the harbour."}\n')
    arguments = ["rate", "--config", study.config_file, str(pair)]
    kept, record = Path(study.get_checkpoint_folder(first)), Path(study.get_record_path(first))
    shutil.copytree(kept, tmp_path / "kept")
    recorded = record.read_text()
    for name in (ADAPTERS_FILE, "heads.safetensors"):
        shutil.copy(Path(study.get_checkpoint_folder(other), name), kept / name)
    assert main(arguments) == 6
    seen = capsys.readouterr()
    assert seen.out == ""
    assert f"error: {kept}/{ADAPTERS_FILE}: The SHA-256 of the file does not match" in seen.err
    assert f"Delete {record} and run the study with snakemake" in seen.err
    assert inspect_nodes(study).damaged.keys() == {first.digest}
    # A record without checksums, as in old releases, and one NaN.
    shutil.copytree(tmp_path / "kept", kept, dirs_exist_ok=True)
    old = json.loads(recorded)
    del old["artefacts"]
    record.write_text(json.dumps(old))
    weights = load_file(kept / "heads.safetensors")
    weights[min(weights)].view(-1)[0] = float("nan")
    save_file(weights, kept / "heads.safetensors")
    assert main(arguments) == 4
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "heads.safetensors: " in seen.err
    assert "are NaN or infinite" in seen.err
    shutil.copytree(tmp_path / "kept", kept, dirs_exist_ok=True)
    record.write_text(recorded)
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["panel"] > 0
