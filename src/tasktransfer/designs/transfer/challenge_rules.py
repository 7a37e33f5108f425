"""Rules of the FETA challenge, for configs, plans and records.

``find_broken_rules`` checks one run, and ``check_challenge_rules`` a run of a plan.
``list_forbidden_keys`` lists the keys of a config that would lead to a forbidden run, so that the
config is rejected before training. ``explain_ineligibility`` checks finished records.

Participants must check rules that no config can show: see ``OUT_OF_SCOPE``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tasktransfer.datasets import DATASETS
from tasktransfer.errors import ConfigError

if TYPE_CHECKING:
    from tasktransfer.designs.transfer.config import TransferConfig
    from tasktransfer.designs.transfer.runs import RunName

Rules = Literal["challenge", "free"]

FEW_SAMPLE = "few-sample data"
WHOLE_TEST = "whole test set"
SAME_DATASET = "sources from the same dataset"
SOURCES = "1 to n - 1 sources"
NOT_ITSELF = "no target among its own sources"

MEANING = {
    FEW_SAMPLE: "only dialogues of the few-sample ids train a model or select it",
    WHOLE_TEST: "every instance of the test set is predicted",
    SAME_DATASET: "a target and its sources are tasks of one dataset",
    SOURCES: "a target has at most as many sources as its dataset has other tasks",
    NOT_ITSELF: "a target is not one of its own sources",
}
"""Rule → its text in messages (the challenge's page, section Rules)."""

OUT_OF_SCOPE = (
    "It is not checked whether a checkpoint has seen the test data, because no file records it. A "
    "model that is known to have been trained on these data may not be submitted."
)


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A broken rule: its name in ``MEANING``, and what breaks it (a sentence without full stop)."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.what}, against the challenge's rule {self.rule!r} ({MEANING[self.rule]})"


# --- runs and records ----------------------------------------------------------------------------


def find_broken_rules(
    dataset: str,
    sources: Sequence[str],
    target: str,
    *,
    few_sample: bool,
    limit_test: int | None,
) -> list[BrokenRule]:
    """Return the rules of the challenge that a run breaks, or an empty list for an eligible run."""
    rules = []
    if not few_sample:
        rules.append(BrokenRule(FEW_SAMPLE, "The value of data.few_sample is false"))
    if limit_test is not None:
        rules.append(BrokenRule(WHOLE_TEST, f"The value of training.limit_test is {limit_test}"))
    rules += [
        _describe_foreign_task(dataset, s)
        for s in (*sources, target)
        if s not in DATASETS[dataset].tasks
    ]
    if len(sources) >= len(DATASETS[dataset].tasks):
        rules.append(_describe_excess_sources(dataset, target, len(sources)))
    if target in sources:
        rules.append(_describe_self_source(target))
    return rules


def check_challenge_rules(config: TransferConfig, run_name: RunName) -> None:
    """Raise ConfigError if a run breaks the challenge's rules.

    The config is checked when it is read. This check covers plans that are built in other ways.
    """
    dataset, model, algorithm, sources, target, _ = run_name
    problems = find_broken_rules(
        dataset,
        sources,
        target,
        few_sample=config.data.few_sample,
        limit_test=config.get_training_hyperparameters(dataset).limit_test,
    )
    if problems:
        raise ConfigError(
            f"study {config.study}: The algorithm {algorithm} cannot run on the target {target} "
            f"with the model {model}. {problems[0]}. Fix the config, or set rules: free (then the "
            "study cannot be submitted)."
        )


def explain_ineligibility(
    dataset: str, sources: Sequence[str], target: str, record: Mapping[str, Any]
) -> list[str]:
    """Return sentences on why a run's record may not be submitted.

    The list is empty if the record may be submitted.

    The training data are read from the identity of the run's stage, which the digest secures, and
    the rules of its study from ``provenance.rules``. A record of a free study is excluded even if
    it satisfies every rule. Older records, which lack this key, are judged by their content.
    """
    if record["rows"] is None:
        return ["It has no predictions for a test set."]
    if dataset not in DATASETS:
        return [f"{dataset} is not a dataset of the challenge."]
    stage = record["node"]
    rules = find_broken_rules(
        dataset,
        sources,
        target,
        few_sample=stage["identity"].get("few_sample") is True and record["few_sample"] is True,
        limit_test=_get_nested_value(stage["identity"], "training", "limit_test"),
    )
    reasons = [str(rule) for rule in rules]
    if record["provenance"].get("rules") == "free":
        reasons.append(
            "It comes from a study with `rules: free`. Delete the record and run the study with "
            "`rules: challenge`, which repeats the training."
        )
    foreign = [task for task in stage["train_tasks"] if task not in DATASETS[dataset].tasks]
    if foreign:
        reasons.append(f"It was trained on {', '.join(foreign)}, which {dataset} does not have.")
    return reasons


def _describe_foreign_task(dataset: str, name: str) -> BrokenRule:
    owner = next((other for other in DATASETS if name in DATASETS[other].tasks), "no dataset")
    return BrokenRule(SAME_DATASET, f"{name!r} is a task of {owner}, not of {dataset}")


def _describe_excess_sources(dataset: str, target: Any, count: int) -> BrokenRule:
    most = len(DATASETS[dataset].tasks) - 1
    return BrokenRule(
        SOURCES, f"{target} has {count} sources, but {dataset} has {most} other tasks"
    )


def _describe_self_source(target: str) -> BrokenRule:
    return BrokenRule(NOT_ITSELF, f"{target!r} is its own source")


# --- configs -------------------------------------------------------------------------------------


def list_forbidden_keys(study: Any) -> dict[str, str]:
    """Map the path of every config key that the challenge's rules forbid to a message.

    Empty for a study without ``rules: challenge``. ``study`` is the mapping from the file, which
    may have other errors.
    """
    if _get_nested_value(study, "rules") != "challenge":
        return {}
    messages: dict[str, str] = {}
    for path, rule, remedy in _find_forbidden_keys(study):
        messages.setdefault(path, f"{rule}. {remedy}.")
    return messages


ForbiddenKey = tuple[str, BrokenRule, str]
"""Key path, broken rule and remedy (a sentence)."""


def _find_forbidden_keys(study: Any) -> Iterator[ForbiddenKey]:
    free = "rules: free allows it, but its records cannot be submitted"
    if _get_nested_value(study, "data", "few_sample") is False:
        yield (
            "data.few_sample",
            BrokenRule(FEW_SAMPLE, "The value is false"),
            f"Set it to true ({free})",
        )
    limit = _get_nested_value(study, "training", "limit_test")
    if limit is not None:
        what = BrokenRule(WHOLE_TEST, f"The value is {limit!r}")
        yield "training.limit_test", what, f"Remove it ({free})"
    for dataset in DATASETS:
        section, path = _get_nested_value(study, "datasets", dataset), f"datasets.{dataset}"
        for role in ("tasks", "sources", "targets"):
            for index, name in enumerate(_get_nested_list(section, role)):
                yield from _check_task_owner(dataset, name, f"{path}.{role}[{index}]")
        for index, pair in enumerate(_get_nested_list(section, "pairs")):
            for role in ("source", "target"):
                yield from _check_task_owner(
                    dataset, _get_nested_value(pair, role), f"{path}.pairs[{index}].{role}"
                )
            source = _get_nested_value(pair, "source")
            if source is not None and source == _get_nested_value(pair, "target"):
                yield (
                    f"{path}.pairs[{index}]",
                    _describe_self_source(source),
                    "Choose another source",
                )
    for index, item in enumerate(_get_nested_list(study, "multi_source", "named")):
        yield from _check_named_target(f"multi_source.named[{index}]", item)
    if _get_nested_value(study, "multi_source", "mode") == "auto":
        count = _get_nested_value(study, "multi_source", "sources_per_target")
        for dataset in DATASETS:
            studied = _get_nested_value(study, "datasets", dataset) is not None
            if studied and isinstance(count, int) and count >= len(DATASETS[dataset].tasks):
                what = _describe_excess_sources(dataset, "A target", count)
                yield "multi_source.sources_per_target", what, "Reduce it"


def _check_named_target(path: str, item: Any) -> Iterator[ForbiddenKey]:
    dataset, target = _get_nested_value(item, "dataset"), _get_nested_value(item, "target")
    sources = _get_nested_list(item, "sources")
    if not isinstance(dataset, str) or dataset not in DATASETS:
        return
    if len(sources) >= len(DATASETS[dataset].tasks):
        yield (
            f"{path}.sources",
            _describe_excess_sources(dataset, target, len(sources)),
            "Remove some of them",
        )
    yield from _check_task_owner(dataset, target, f"{path}.target")
    for index, source in enumerate(sources):
        yield from _check_task_owner(dataset, source, f"{path}.sources[{index}]")
        if source == target:
            yield f"{path}.sources[{index}]", _describe_self_source(source), "Remove it"


def _check_task_owner(dataset: str, name: Any, path: str) -> Iterator[ForbiddenKey]:
    """Yield the key if its task belongs to another dataset, ignoring unknown names."""
    elsewhere = isinstance(name, str) and any(name in each.tasks for each in DATASETS.values())
    if elsewhere and name not in DATASETS[dataset].tasks:
        yield path, _describe_foreign_task(dataset, name), f"Use tasks of {dataset}"


def _get_nested_value(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _get_nested_list(value: Any, *keys: str) -> list[Any]:
    items = _get_nested_value(value, *keys)
    return items if isinstance(items, list) else []
