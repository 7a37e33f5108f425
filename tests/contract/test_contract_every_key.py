"""Every config key is tested, by a small study that sets it or by a test named here.

A new key without either makes these tests fail.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from every_key_inputs import write_inputs
from every_key_studies import STUDIES

from empathetic_study import make
from tasktransfer.cli import main
from tasktransfer.config import WholeData
from tasktransfer.designs import DESIGNS, open_study

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {"transfer": "config", "empathetic": "empathetic", "panel": "panel", "probes": "probes"}

_ADAPTERS = "unit/test_low_rank.py::test_an_adapter_is_saved_with_its_heads_and_loads_as_it_was"
_CHOOSERS = "contract/test_contract_choosers.py::test_a_selector_chooses_sources_by_its_values"
_HUB = "unit/test_declared.py::test_a_name_on_the_hub_is_loaded_by_its_card"
_WORLDS = "contract/test_contract_published.py::test_published_values_stand_beside_a_real_study"
_RETRIES = "unit/test_endpoint_faults.py::test_a_failure_ends_the_pauses_of_other_requests"

ELSEWHERE = {
    "brought[].*": "unit/test_brought_answers.py::test_a_rater_with_our_ratings_has_our_numbers",
    "check_baselines": "unit/test_baseline_check.py::test_transfers_to_learned_targets_follow",
    "data.release": _WORLDS,
    "datasets.*.config": _HUB,
    "datasets.*.hub": _HUB,
    "datasets.*.revision": _HUB,
    "datasets.*.splits.*": _HUB,
    "design": "contract/test_contract_choices.py::test_other_test_scores_change_no_choice",
    "learning_curve": "unit/test_learning_curve.py"
    "::test_fine_tuning_is_in_the_curve_if_its_samples_were_trained",
    "models[].adapter.*": _ADAPTERS,
    "models[].reads": "unit/test_panel_twin.py"
    "::test_a_classifier_reads_the_first_token_and_not_the_pooler",
    "models[].revision": "unit/test_study.py::test_hub_names_and_folders",
    "multi_source.choose_by": _CHOOSERS,
    "multi_source.sources_per_target": _CHOOSERS,
    "multi_source.targets_per_dataset": _CHOOSERS,
    "pairs.labels": "contract/test_contract_choices.py::test_other_test_scores_change_no_choice",
    "pairs[].*": "unit/test_across_datasets.py::test_all_pairs_and_listed_pairs",
    "plugins": "workflow/test_toy_design.py::test_every_node_left_its_record",
    "pretraining.retrieval": "contract/test_contract_choices.py"
    "::test_other_test_scores_change_no_choice",
    "prompted[].concurrency": _RETRIES,
    "prompted[].endpoint": "unit/test_endpoint.py::test_choices_are_scored_by_their_tokens",
    "prompted[].key_variable": "unit/test_endpoint_keys.py"
    "::test_a_key_is_sent_without_the_blanks_around_it",
    "prompted[].retries": _RETRIES,
    "prompted[].served": "unit/test_endpoint.py::test_choices_are_scored_by_their_tokens",
    "prompted[].thinking_tokens": "unit/test_endpoint_probes.py"
    "::test_thoughts_get_tokens_and_are_no_answer",
    "prompted[].timeout": "unit/test_endpoint_faults.py::test_a_server_that_drips_is_late",
    "references": "unit/test_references.py::test_the_job_predicts_the_test_split_within_the_limits",
    "tracking": "unit/test_tracking.py::test_the_key_changes_no_digest_and_no_record",
    "rules": "unit/test_challenge_round_trip.py::test_records_say_their_rules_and_their_data",
}
"""Key → test that covers it; ``section.*`` stands for all keys of a section."""
REFUSED = "unit/test_keys_without_effect.py::test_a_key_without_effect_is_refused"
"""Test of keys without an effect in a design."""

Schema = dict[str, Any]


@cache
def schema_of(design: str) -> Schema:
    schema: Schema = json.loads(
        (ROOT / "workflow" / "schemas" / f"{SCHEMAS[design]}.schema.json").read_text()
    )
    return schema


def options_of(node: Schema, root: Schema) -> Iterator[Schema]:
    """Yield a node of a schema with all its references and alternatives."""
    if "$ref" in node:
        node = {**root["$defs"][node["$ref"].rpartition("/")[2]], **node}
    yield node
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from options_of(option, root)


def keys_of(node: Schema, root: Schema, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf key as a path, with its default.

    ``*`` stands for keys named by the user, ``[]`` for the items of a list.
    """
    inner = False
    for option in options_of(node, root):
        for key, value in option.get("properties", {}).items():
            inner = True
            yield from keys_of(value, root, f"{path}.{key}".lstrip("."))
        for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
            below = option.get(key)
            if isinstance(below, dict) and has_keys(below, root):
                inner = True
                yield from keys_of(below, root, path + suffix)
    if not inner:
        yield path, node.get("default")


def has_keys(node: Schema, root: Schema) -> bool:
    return any(
        "properties" in option or isinstance(option.get("additionalProperties"), dict)
        for option in options_of(node, root)
    )


def set_keys(value: Any, known: set[str], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys that a study sets, in the form of ``keys_of``, with their values."""
    yield path, value
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        named = any(key.startswith(f"{path}.*") for key in known)
        items = [(".*" if named else f".{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [("[]", item) for item in value]
    for suffix, item in items:
        yield from set_keys(item, known, f"{path}{suffix}".lstrip("."))


def keys_run(design: str) -> set[str]:
    """Return the keys that studies of a design set to another value than the default."""
    defaults = dict(keys_of(schema_of(design), schema_of(design)))
    studies = [s for s in STUDIES.values() if s.get("design", "transfer") == design]
    return {
        key
        for study in studies
        for key, value in set_keys(study, {*defaults})
        if key in defaults and value != defaults[key]
    }


def keys_elsewhere(design: str) -> dict[str, str]:
    """Return the keys of a design that other tests cover."""
    keys = [key for key, _ in keys_of(schema_of(design), schema_of(design))]
    tests = {
        key: test
        for key in keys
        for named, test in ELSEWHERE.items()
        if key == named or (named.endswith(".*") and key.startswith(named[:-1]))
    }
    config = DESIGNS[design].config
    training: Any = config.model_fields["training"].annotation
    tests |= {f"training.{key}": REFUSED for key in training.without_effect}
    data: Any = config.model_fields["data"].annotation
    return {**tests, **({"data.few_sample": REFUSED} if issubclass(data, WholeData) else {})}


@pytest.mark.parametrize("design", SCHEMAS)
def test_every_key_has_a_run(design: str) -> None:
    keys = {key for key, _ in keys_of(schema_of(design), schema_of(design))}
    assert len(keys) > 50
    without = keys - keys_run(design) - keys_elsewhere(design).keys()
    assert not without, "set it in every_key_studies.py, or name the test that runs it here"


def test_the_tests_that_are_named_are_there() -> None:
    for key, name in (*ELSEWHERE.items(), ("without effect", REFUSED)):
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in functions, f"{key}: {name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_every_key_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_inputs(name)
    Path("study.yaml").write_text(yaml.safe_dump(STUDIES[name], sort_keys=False))
    make(open_study("study.yaml"))
    while open_study("study.yaml").pending_choices:
        assert main(["choose", "--config", "study.yaml"]) == 0
        make(open_study("study.yaml"))
    for command in ("collect --complete", "statistics", "figures"):
        assert main([*command.split()[:1], "--config", "study.yaml", *command.split()[1:]]) == 0
    study = open_study("study.yaml")
    assert all(Path(study.get_record_path(node)).is_file() for node in study.plan.nodes)
