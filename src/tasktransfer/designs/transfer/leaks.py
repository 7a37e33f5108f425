"""Detection of a target's test dialogues in the training data of sources from other datasets.

Within a dataset, the reader rejects a dialogue in two splits. Different datasets may contain the
same texts. A test dialogue of the target leaks if at least half of its words, and at least
``MIN_WORDS``, are in utterances of one training dialogue of the source. Case, punctuation and
speakers are ignored, and so are utterances shorter than ``LONG`` words, which are common phrases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tasktransfer.datasets import DATASETS, resolve_task
from tasktransfer.datasets.disjoint_splits import LEAK_REASON, MIN_WORDS
from tasktransfer.designs.transfer.config import TransferConfig, get_transfer_config
from tasktransfer.designs.transfer.dataset_section import is_foreign
from tasktransfer.errors import DataError, print_note
from tasktransfer.files import json_text, replace_file
from tasktransfer.results.revisions import UNKNOWN, is_generated
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

LONG = 6
"""Minimum number of words in a compared utterance, as in the leak filter of the panel design."""
HALF = 0.5
SEVERAL = 2
VERSION = 1


@dataclass(frozen=True, slots=True)
class SharedDialogues:
    """Number of the target's test dialogues that are in the source's training data.

    Attributes:
        count: number of shared test dialogues.
        of: number of all test dialogues.
        example: names of one test dialogue and of the training dialogue with its texts.
    """

    count: int
    of: int
    example: tuple[str, str] | None = None


Pair = tuple[str, str, str, str]
"""Dataset and task of a source, then dataset and task of its target."""


def list_cross_dataset_pairs(config: TransferConfig) -> list[Pair]:
    """Return the distinct pairs whose source and target are from different datasets."""
    pairs = (
        (*resolve_task(dataset.name, source), dataset.name, target)
        for dataset in config.datasets
        for source, target in dataset.pairs
        if is_foreign(source)
    )
    return list(dict.fromkeys(pairs))


def check_leaks(study: Study) -> None:
    """Count and report dialogues that pairs of datasets share, and raise if any dialogue leaks.

    Raises:
        DataError: a target's test dialogues are among those that its source trains on.
    """
    config = get_transfer_config(study)
    pairs = list_cross_dataset_pairs(config)
    if not pairs:
        return
    allowed = {leak.replace(" ", "") for leak in config.allow_leaks}
    cache, cached = _locate_cache(study), json_text.read_object(_locate_cache(study))
    leaks: list[str] = []
    for owner, source, dataset, target in pairs:
        shared = _find_shared_dialogues(study, (owner, source), (dataset, target), cached)
        if shared is None or not shared.count:
            continue
        what = (
            f"The training dialogues of {owner}/{source} contain {shared.count:,} of the "
            f"{shared.of:,} test dialogues of {dataset}/{target}"
        )
        print_note(f"{what}.")
        if f"{owner}>{dataset}" not in allowed:
            first, second = shared.example or ("", "")
            leaks.append(
                f"{what} (for example {first!r}, which is {second!r} there). Leave out the source "
                f"or these dialogues, {LEAK_REASON}, or set allow_leaks: ['{owner} > {dataset}'] "
                "to train on them."
            )
    with replace_file(cache) as part:
        part.write_text(json.dumps(cached, indent=1) + "\n")
    if leaks:
        raise DataError("\n".join(leaks))


def read_shared_dialogues(study: Study) -> dict[Pair, SharedDialogues]:
    """Return the shared dialogues of each cross-dataset pair for which they were counted."""
    cached = json_text.read_object(_locate_cache(study))
    shared: dict[Pair, SharedDialogues] = {}
    for pair in list_cross_dataset_pairs(get_transfer_config(study)):
        if (key := _build_cache_key(study, pair[:2], pair[2:])) in cached:
            shared[pair] = _parse_cached(cached[key])
    return shared


def _locate_cache(study: Study) -> Path:
    return Path(study.config.results, "data", "shared-dialogues.json")


def _build_cache_key(study: Study, source: tuple[str, str], target: tuple[str, str]) -> str:
    """Return the cache key of a count: the two tasks and the revisions of their data."""
    revisions = [study.revisions.data[name] for name in sorted({source[0], target[0]})]
    return json.dumps([VERSION, source, target, study.config.data.few_sample, *revisions])


def _parse_cached(value: Any) -> SharedDialogues:
    return SharedDialogues(value[0], value[1], tuple(value[2]) if value[2] else None)


def _find_shared_dialogues(
    study: Study, source: tuple[str, str], target: tuple[str, str], cached: dict[str, object]
) -> SharedDialogues | None:
    """Count the dialogues that two tasks share, or take the count from ``cached``.

    New counts are added to ``cached``. Return None if data are missing, or if they are generated
    and therefore share nothing with other data.
    """
    names = {source[0], target[0]}
    if any(
        study.revisions.data[name] == UNKNOWN or is_generated(study.config, name) for name in names
    ):
        return None
    key, few = _build_cache_key(study, source, target), study.config.data.few_sample
    if key not in cached:
        try:
            train = _read_instances(study, *source, "train", few)
            test = _read_instances(study, *target, "test", few)
            shared = count_shared_dialogues(train, test)
        except DataError:
            return None  # missing data are reported when they are requested
        cached[key] = [shared.count, shared.of, shared.example]
    return _parse_cached(cached[key])


def _read_instances(
    study: Study, dataset: str, task: str, split: str, few_sample: bool
) -> Iterable[Instance]:
    release = DATASETS[dataset].reader.open(Path(study.get_release(dataset)), few_sample)
    return release.instances(task, split) if task in release.tasks else ()


def count_shared_dialogues(train: Iterable[Instance], test: Iterable[Instance]) -> SharedDialogues:
    """Count the test dialogues of one task that are training dialogues of another."""
    there: dict[str, set[str]] = {}
    for name, utterances in _group_long_utterances(train).items():
        for text in utterances:
            there.setdefault(text, set()).add(name)
    tested = _group_long_utterances(test)
    leaks: dict[str, str] = {}
    for name, utterances in tested.items():
        words = Counter[str]()
        for text, count in utterances.items():
            for other in there.get(text, ()):
                words[other] += count
        whole = sum(utterances.values())
        for other, count in words.most_common(1):
            if count >= max(MIN_WORDS, HALF * whole):
                leaks[name] = other
    example = next(iter(leaks.items()), None)
    return SharedDialogues(len(leaks), len(tested), example)


def _group_long_utterances(instances: Iterable[Instance]) -> dict[str, Mapping[str, int]]:
    """Map each dialogue to its long normalised utterances and their numbers of words."""
    found: dict[str, Mapping[str, int]] = {}
    for instance in instances:
        long = (text for text in _iterate_utterances(instance) if len(text.split()) >= LONG)
        words = {"".join(filter(str.isalnum, text.lower())): len(text.split()) for text in long}
        found[instance.dialogue_id] = {**found.get(instance.dialogue_id, {}), **words}
    return found


def _iterate_utterances(instance: Instance) -> Iterator[str]:
    """Yield a context's turns without speakers, or the whole context if it has no turns."""
    for start, end in pairwise([*(instance.turns or (0,)), len(instance.context)]):
        text = instance.context[start:end]
        speaker, mark, rest = text.partition(": ")
        yield rest if mark and len(speaker.split()) <= SEVERAL else text
