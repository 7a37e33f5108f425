"""Generator of synthetic datasets in FETA's release format, the tiny world.

It samples at random, assigns roles to dialogues, and writes texts, metadata and files. The words
and scenes of a dataset are in its folder, and ``datasets.tiny_world`` generates all datasets.

Everything on which a planted transfer effect depends is decided by a dialogue's role, before texts
are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias, TypeVar

from tasktransfer.datasets.dataset import GENERATOR_VERSION
from tasktransfer.tasks.card import MetricSpec, Task

# --- random sampling ---
# Python guarantees identical values on all machines and versions only for
# ``random.Random(str).random()``, not for ``choice``, ``shuffle`` and ``sample``.

T = TypeVar("T")


def create_generator(*parts: object) -> Random:
    """Create a random generator for a named part of the generated data.

    Parts are independent, so more samples for one dialogue do not change the others.
    """
    return Random("-".join(str(part) for part in parts))


def sample_integer(rng: Random, end: int) -> int:
    """Return a random integer from 0 to ``end - 1``."""
    return int(rng.random() * end)


def sample_value(rng: Random, values: Sequence[T]) -> T:
    """Return a random element of ``values``."""
    return values[sample_integer(rng, len(values))]


def shuffle_values(rng: Random, values: Sequence[T]) -> list[T]:
    """Return ``values`` in random order (Fisher-Yates)."""
    result = list(values)
    for last in range(len(result) - 1, 0, -1):
        other = sample_integer(rng, last + 1)
        result[last], result[other] = result[other], result[last]
    return result


def cycle_shuffled(rng: Random, values: Sequence[T]) -> Iterator[T]:
    """Yield ``values`` endlessly, and shuffle them before each pass.

    Each value occurs once per pass, so even a small split has all of them.
    """
    while True:
        yield from shuffle_values(rng, values)


# --- roles of dialogues: split, mood word, scene and annotations ---

Portion: TypeAlias = Literal["few_train", "rest_train", "few_dev", "rest_dev", "test"]
Group: TypeAlias = Literal["source", "target"]

TRAIN_SHARE, DEV_SHARE = 0.60, 0.15
"""Fractions of all dialogues. The rest is the test split."""

FEW_SHARE = 5 / 6
"""Fraction of the train and dev dialogues in the few-sample setting. FETA uses a tenth of 13,118
dialogues. A tenth of these generated ones would be a dozen dialogues."""


@dataclass(frozen=True, slots=True)
class MoodWords:
    """Words that express one mood, the hidden attribute, which no text or label names.

    The training dialogues of the source have all words, and those of the target have only the
    common ones.
    """

    common: tuple[str, ...]
    rare: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """Role of one dialogue.

    Args:
        dialogue_id: name of the dialogue.
        portion: portion of the dialogues to which it belongs.
        group: task, source or target, for which its opening is annotated in training.
        scene: type of the scene.
        mood: the hidden attribute.
        word: mood word of the opening.
        opens_neutral: whether the first turn has no mood word.
    """

    dialogue_id: str
    portion: Portion
    group: Group
    scene: str
    mood: str
    word: str
    opens_neutral: bool

    @property
    def split(self) -> str:
        """Split of the dialogue in the full-data setting: train, dev or test."""
        return self.portion.rpartition("_")[2]


def compute_portion_sizes(dialogues: int) -> dict[Portion, int]:
    """Return the sizes of the five disjoint portions of the ID files."""
    train, dev = round(dialogues * TRAIN_SHARE), round(dialogues * DEV_SHARE)
    few_train, few_dev = round(train * FEW_SHARE), round(dev * FEW_SHARE)
    return {
        "few_train": few_train,
        "rest_train": train - few_train,
        "few_dev": few_dev,
        "rest_dev": dev - few_dev,
        "test": dialogues - train - dev,
    }


def assign_roles(
    seed: int,
    dataset: str,
    ids: list[str],
    words: dict[str, MoodWords],
    scenes: tuple[str, ...],
) -> list[Role]:
    """Assign a role to each dialogue, balanced within each portion."""
    waiting = iter(shuffle_values(create_generator(seed, dataset, "split"), ids))
    roles: list[Role] = []
    for portion, size in compute_portion_sizes(len(ids)).items():
        roles += _assign_portion_roles(seed, dataset, portion, size, waiting, words, scenes)
    order = {dialogue_id: index for index, dialogue_id in enumerate(ids)}
    return sorted(roles, key=lambda role: order[role.dialogue_id])


def _assign_portion_roles(
    seed: int,
    dataset: str,
    portion: Portion,
    size: int,
    ids: Iterator[str],
    words: dict[str, MoodWords],
    scenes: tuple[str, ...],
) -> list[Role]:
    rng = create_generator(seed, dataset, portion, "roles")
    moods = {
        "source": cycle_shuffled(rng, _list_mood_words(words, with_rare=True)),
        "target": cycle_shuffled(
            rng, _list_mood_words(words, with_rare=not portion.endswith("train"))
        ),
    }
    roles = []
    for index in range(size):
        group: Group = "source" if index % 2 == 0 else "target"
        mood, word = next(moods[group])
        roles.append(
            Role(
                dialogue_id=next(ids),
                portion=portion,
                group=group,
                scene=scenes[index // 2 % len(scenes)],
                mood=mood,
                word=word,
                opens_neutral=rng.random() < 0.3,
            )
        )
    return roles


def _list_mood_words(words: dict[str, MoodWords], *, with_rare: bool) -> list[tuple[str, str]]:
    return [
        (mood, word)
        for mood, mood_words in words.items()
        for word in mood_words.common + (mood_words.rare if with_rare else ())
    ]


# --- texts, metadata and files ---
# The metadata is computed from the cards. A test compares it with the official release if
# available.

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """A known effect of one transfer in a generated dataset, and its reason."""

    dataset: str
    source: str
    target: str
    why: str


def build_task_metadata(card: Task) -> Json:
    """Return a task's labels and metrics in the release's usual format.

    A metric that is computed once has one object of settings. Otherwise it has a list of objects.
    """
    settings: dict[str, list[Json]] = {}
    for spec in card.metrics:
        settings.setdefault(spec.name, []).append(_build_settings(spec))
    kwargs = {
        name: items if len(items) > 1 else items[0]
        for name, items in settings.items()
        if any(items)
    }
    return {
        **({"labels": list(card.labels)} if card.labels else {}),
        "metrics": list(settings),
        **({"metric_kwargs": kwargs} if kwargs else {}),
    }


def _build_settings(spec: MetricSpec) -> Json:
    settings: Json = {}
    if spec.unanswerable_phrases:
        settings["unanswerable_phrases"] = list(spec.unanswerable_phrases)
    if spec.ignore_unanswerable:
        settings["ignore_unanswerable"] = True
    if spec.average:
        settings["average"] = spec.average
    if spec.label_indices is not None:
        settings["labels"] = list(spec.label_indices)
    return settings


def build_release_metadata(
    dataset: str, tasks: Mapping[str, Json], seed: int, dialogues: int
) -> Json:
    """Return the ``metadata`` object of a dataset's JSON, marked as synthetic."""
    return {
        "dataset_name": dataset,
        "tasks": list(tasks),
        "task_metadata": dict(tasks),
        "synthetic": True,
        "generator": {
            "name": "tiny-world",
            "version": GENERATOR_VERSION,
            "seed": seed,
            "dialogues": dialogues,
        },
    }


def format_line(turn: Json) -> str:
    """Format a turn as ``speaker: utterance``, or a note without speakers as its text."""
    speakers = " ".join(turn["speakers"])
    return f"{speakers}: {turn['utterance']}" if speakers else str(turn["utterance"])


def join_lines(turns: Sequence[Json]) -> str:
    """Join turns by spaces, as in contexts of the release's span tasks."""
    return " ".join(format_line(turn) for turn in turns)


def find_span(context: str, text: str) -> Json:
    """Annotate the first occurrence of ``text`` in ``context`` as a span."""
    return {"text": text, "answer_start": context.index(text)}


ID_FILES: dict[str, tuple[Portion, ...]] = {
    "TTiDB_train_ids.txt": ("few_train", "rest_train"),
    "TTiDB_dev_ids.txt": ("few_dev", "rest_dev"),
    "TTiDB_test_ids.txt": ("test",),
    "TTiDB_0.1_percent_few_shot_train_ids.txt": ("few_train",),
    "TTiDB_0.1_percent_few_shot_dev_ids.txt": ("few_dev",),
}
"""File names of the release. They always contain 0.1, but the fraction is ``FEW_SHARE``."""

Generate: TypeAlias = Callable[[int, int], list[tuple[Role, Json]]]
"""(seed, number of dialogues) → dialogues with their roles, in the order of the file."""


def build_release_writer(
    name: str, tasks: Mapping[str, Json], generate: Generate
) -> Callable[[Path, int, int], None]:
    """Return a function that writes a dataset's release under a folder.

    Args:
        name: name of the dataset.
        tasks: task → its part of the release's metadata.
        generate: generator of the dialogues.
    """

    def write_release(world: Path, seed: int, dialogues: int) -> None:
        metadata = build_release_metadata(name, tasks, seed, dialogues)
        _write_release(world / f"TLiDB_{name}", name, metadata, generate(seed, dialogues))

    return write_release


def _write_release(
    folder: Path, name: str, metadata: Json, generated: list[tuple[Role, Json]]
) -> None:
    folder.mkdir()
    data = [dialogue for _, dialogue in generated]
    write_json(folder / f"TLiDB_{name}.json", {"metadata": metadata, "data": data})
    for file_name, portions in ID_FILES.items():
        ids = [role.dialogue_id for role, _ in generated if role.portion in portions]
        _write_text(folder / file_name, "".join(f"{dialogue_id}\n" for dialogue_id in ids))


def write_json(path: Path, value: Json) -> None:
    """Write a value as compact JSON."""
    _write_text(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def _write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8 with line feeds on all platforms."""
    path.write_bytes(text.encode("utf-8"))
