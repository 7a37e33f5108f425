"""Dialogues that a source trains on and a target of another dataset is tested with.

Within a dataset the reader refuses a dialogue in two splits. Across datasets, which may be made of
the same texts, a dialogue of the target's test split leaks if half of its words or more, and
``LEAST_WORDS``, are in utterances of one training dialogue of the source. Case, punctuation and
speakers are left aside, and utterances of fewer than ``LONG`` words, which anyone may say.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from tasktransfer.config.fields import Text
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.one_split import LEARNT, LEAST_WORDS
from tasktransfer.errors import DataError
from tasktransfer.files import json_text, replacing
from tasktransfer.results.revisions import UNKNOWN, is_generated
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

Leak = Annotated[str, Text(r"[\w-]+ ?> ?[\w-]+", "write the two datasets as 'Source > Target'")]
"""Names two datasets, of which the first may train on dialogues that the second tests."""

LONG = 6
"""Words of an utterance that is compared, as in the panel's filter."""
HALF = 0.5
SEVERAL = 2
VERSION = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """``count`` of ``of`` test dialogues are in the source's training data, such as ``example``
    (names of the two)."""

    count: int
    of: int
    example: tuple[str, str] | None = None


def refuse_leaks(
    study: Study, pairs: Iterable[tuple[str, str, str, str]], allowed: set[str]
) -> None:
    """Count what pairs of two datasets share, say it, and refuse what is not allowed.

    Args:
        pairs: dataset and task of a source, dataset and task of its target.
        allowed: ``Source>Target`` for datasets that may.

    Raises:
        DataError: a target's test dialogues are among those that its source trains on.
    """
    memo = Path(study.config.results, "data", "shared-dialogues.json")
    known = json_text.read_object(memo)
    refused: list[str] = []
    for home, source, dataset, target in dict.fromkeys(pairs):
        shared = _shared(study, (home, source), (dataset, target), known)
        if shared is None or not shared.count:
            continue
        what = (
            f"{shared.count:,} of {shared.of:,} test dialogues of {dataset}/{target} are among the "
            f"training dialogues of {home}/{source}"
        )
        print(f"note: {what}", file=sys.stderr)
        if f"{home}>{dataset}" not in allowed:
            first, second = shared.example or ("", "")
            refused.append(
                f"{what} ({first!r} is {second!r} there): leave out the source or these dialogues, "
                f"{LEARNT}; or allow it: allow_leaks: ['{home} > {dataset}']"
            )
    with replacing(memo) as part:
        part.write_text(json.dumps(known, indent=1) + "\n")
    if refused:
        raise DataError("\n".join(refused))


def _shared(
    study: Study, source: tuple[str, str], target: tuple[str, str], known: dict[str, object]
) -> Shared | None:
    """What two tasks share, remembered by their data; None where these are not there or generated,
    and then nobody else's."""
    names = {source[0], target[0]}
    revisions = [study.revisions.data[name] for name in sorted(names)]
    if UNKNOWN in revisions or any(is_generated(study.config, name) for name in names):
        return None
    few = study.config.data.few_sample
    key = json.dumps([VERSION, source, target, few, *revisions])
    if key not in known:
        try:
            train = _instances(study, *source, "train", few)
            test = _instances(study, *target, "test", few)
            found = shared_dialogues(train, test)
        except DataError:
            return None  # told where the data are asked for
        known[key] = [found.count, found.of, found.example]
    counted: Any = known[key]
    return Shared(counted[0], counted[1], tuple(counted[2]) if counted[2] else None)


def _instances(
    study: Study, dataset: str, task: str, split: str, few_sample: bool
) -> Iterable[Instance]:
    release = DATASETS[dataset].reader.open(Path(study.release_of(dataset)), few_sample)
    return release.instances(task, split) if task in release.tasks else ()


def shared_dialogues(train: Iterable[Instance], test: Iterable[Instance]) -> Shared:
    """Which test dialogues are among training dialogues."""
    there: dict[str, set[str]] = {}
    for name, utterances in _by_dialogue(train).items():
        for text in utterances:
            there.setdefault(text, set()).add(name)
    tested = _by_dialogue(test)
    leaks: dict[str, str] = {}
    for name, utterances in tested.items():
        words = Counter[str]()
        for text, count in utterances.items():
            for other in there.get(text, ()):
                words[other] += count
        whole = sum(utterances.values())
        for other, count in words.most_common(1):
            if count >= max(LEAST_WORDS, HALF * whole):
                leaks[name] = other
    example = next(iter(leaks.items()), None)
    return Shared(len(leaks), len(tested), example)


def _by_dialogue(instances: Iterable[Instance]) -> dict[str, Mapping[str, int]]:
    """Dialogue → its long utterances, as they are compared, with the number of their words."""
    found: dict[str, Mapping[str, int]] = {}
    for one in instances:
        long = (text for text in _utterances(one) if len(text.split()) >= LONG)
        words = {"".join(filter(str.isalnum, text.lower())): len(text.split()) for text in long}
        found[one.dialogue_id] = {**found.get(one.dialogue_id, {}), **words}
    return found


def _utterances(instance: Instance) -> Iterator[str]:
    """The turns of a context without their speakers; all of it where it says no turns."""
    for start, end in pairwise([*(instance.turns or (0,)), len(instance.context)]):
        text = instance.context[start:end]
        speaker, mark, rest = text.partition(": ")
        yield rest if mark and len(speaker.split()) <= SEVERAL else text
