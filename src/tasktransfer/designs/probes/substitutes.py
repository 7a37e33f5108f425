"""Substitutes for the paper's inputs, which are listed in records and in the captions of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tasktransfer.config.places import expand_path
from tasktransfer.datasets import multiwoz, personachat
from tasktransfer.datasets.multiwoz import dialogues
from tasktransfer.designs.probes.config import ProbesConfig

PAPERS_EPOCHS = 25

_FILES = {
    "MultiWOZ": (dialogues.FOLDER, dialogues.FILES["train"], multiwoz.SYNTHETIC),
    "PersonaChat": (personachat.FOLDER, personachat.FILES["train"], None),
}
"""Corpus → its folder in a release, the file of its training set, and the marker file of synthetic
dialogues."""


def list_substitutes(config: ProbesConfig) -> dict[str, str]:
    """Map each input of the paper that the study replaces to its substitute.

    Synthetic dialogues have no entry, because they are marked as synthetic.
    """
    made = (
        corpus
        for corpus in config.corpora
        if config.data.generated or _is_synthetic(config, corpus)
    )
    return list_recorded_substitutes(config, (), frozenset(made))


def list_recorded_substitutes(
    config: ProbesConfig, recorded: Iterable[Mapping[str, str]], synthetic: frozenset[str]
) -> dict[str, str]:
    """Map each replaced input of the paper to its substitute, according to the study's records.

    The dialogues need not be available.

    Args:
        config: the study's config.
        recorded: substitutes in the study's records.
        synthetic: corpora that are synthetic according to the records.
    """
    names = {name for replaced in recorded for name in replaced}
    real = [corpus for corpus in config.corpora if corpus not in synthetic]
    named = {
        _format_training_set(corpus): "its other sets, split at random into train, dev and test"
        for corpus in real
        if _format_training_set(corpus) in names or _has_no_training_set(config, corpus)
    }
    if real:
        named["the authors' labels"] = "labels by our definitions"
        trained = any(model.architecture for model in config.models)
        if trained and config.training.epochs < PAPERS_EPOCHS:
            named[f"{PAPERS_EPOCHS} epochs"] = f"{config.training.epochs}"
    if config.probes.word_vectors is not None:
        named["BERT's word vectors"] = Path(config.probes.word_vectors).name
    return named


def _format_training_set(corpus: str) -> str:
    return f"the training set of {corpus}"


def _is_synthetic(config: ProbesConfig, corpus: str) -> bool:
    """Return whether the release marks a corpus as synthetic."""
    folder, _, mark = _FILES[corpus]
    return mark is not None and _locate_in_release(config, folder, mark).is_file()


def _has_no_training_set(config: ProbesConfig, corpus: str) -> bool:
    """Return whether the release has a corpus without its training set."""
    folder, file, _ = _FILES[corpus]
    there = any(
        _locate_in_release(config, folder, name).is_file() for name in (file, f"{file}.zip")
    )
    return _locate_in_release(config, folder).is_dir() and not there


def _locate_in_release(config: ProbesConfig, *parts: str) -> Path:
    return Path(expand_path(config.data.release), *parts)
