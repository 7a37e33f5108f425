"""Selectors, one function each, and registration of plugins' selectors.

Each function takes a ``selection.inputs.Asked``, a target with its sources. Imports are inside the
functions, because plans only need the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.core.specs import Family
from tasktransfer.errors import ConfigError
from tasktransfer.selection.selector import Selector

if TYPE_CHECKING:
    from tasktransfer.selection.inputs import Asked

RANK_OFFSET = 60
"""Constant of reciprocal rank fusion, as in Vu et al. 2020."""

Values = Mapping[str, float | None]


def random(asked: Asked) -> Values:
    """Return equal values: a random order, whose regret is computed in closed form."""
    return dict.fromkeys(asked.sources, 0.0)


def size(asked: Asked) -> Values:
    """Return the number of the source's training instances."""
    return {source: float(asked.sizes[source]) for source in asked.sources}


def kind(asked: Asked) -> Values:
    """Return 1 if source and target have the same task type."""
    return {s: float(asked.kinds[s] == asked.kinds[asked.target]) for s in asked.sources}


def source_mean(asked: Asked) -> Values:
    """Return the mean dev gain of the source over other targets."""
    gains = {source: asked.transfers[source] for source in asked.sources}
    return {source: float(of.mean()) if len(of) else None for source, of in gains.items()}


def tfidf(asked: Asked) -> Values:
    """Return the cosine of mean TF-IDF vectors of the inputs."""
    from tasktransfer.selection.similarity import compute_cosine, compute_mean_tfidf

    means = compute_mean_tfidf({task: asked.texts(task) for task in (asked.target, *asked.sources)})
    return {source: compute_cosine(means[source], means[asked.target]) for source in asked.sources}


def embedding(asked: Asked) -> Values:
    """Return the cosine of the inputs' mean embeddings by the base model (Vu 2020, Poth 2021)."""
    from tasktransfer.selection.similarity import compute_cosine

    target = asked.embeddings(asked.target).mean(axis=0)
    return {s: compute_cosine(asked.embeddings(s).mean(axis=0), target) for s in asked.sources}


def roe(asked: Asked) -> Values:
    """Return how near the closest source inputs are to target inputs (retrieval of experts)."""
    from tasktransfer.selection.similarity import score_by_retrieval

    target = asked.embeddings(asked.target)
    return {s: score_by_retrieval(target, asked.embeddings(s)) for s in asked.sources}


def logme(asked: Asked) -> Values:
    """Return the log evidence of the target's classes given the source's features (You 2021)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_logme(asked.features(s), asked.classes) for s in asked.sources
    }


def esm_logme(asked: Asked) -> Values:
    """Return LogME of base features under a linear map learnt on the source (Schulte 2024)."""
    from tasktransfer.selection import transferability

    base = asked.embeddings(asked.target)
    return {
        source: transferability.compute_esm_logme(
            asked.embeddings(source), asked.own_embeddings(source), base, asked.classes
        )
        for source in asked.sources
    }


def leep(asked: Asked) -> Values:
    """Return the log likelihood of the target's classes via the source's labels (Nguyen 2020)."""
    from tasktransfer.selection import transferability

    found: dict[str, float | None] = {}
    for source in asked.sources:
        theta = asked.probabilities(source)
        found[source] = (
            None if theta is None else transferability.compute_leep(theta, asked.classes)
        )
    return found


def nleep(asked: Asked) -> Values:
    """Return LEEP with the components of a Gaussian mixture as labels (Li 2021)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_nleep(asked.features(s), asked.classes) for s in asked.sources
    }


def hscore(asked: Asked) -> Values:
    """Return the spread of class means relative to that of the source's features (Bao 2019)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_hscore(asked.features(s), asked.classes) for s in asked.sources
    }


def taskemb(asked: Asked) -> Values:
    """Return cosines of diagonal Fisher information by tensor, fused by rank (Vu 2020)."""
    from tasktransfer.selection.similarity import compute_cosine

    target, fused = asked.fisher(asked.target), dict.fromkeys(asked.sources, 0.0)
    of = {source: asked.fisher(source) for source in asked.sources}
    for name in target:
        alike = {
            s: compute_cosine(of[s][name].ravel(), target[name].ravel()) for s in asked.sources
        }
        for rank, source in enumerate(sorted(alike, key=lambda one: -alike[one]), start=1):
            fused[source] += 1 / (RANK_OFFSET + rank)
    return dict(fused)


def gradient(asked: Asked) -> Values:
    """Return the cosine of the mean gradients at the base model (Albalak 2023, Xia 2024)."""
    from tasktransfer.selection.similarity import compute_cosine

    target = asked.gradient(asked.target)
    return {source: compute_cosine(asked.gradient(source), target) for source in asked.sources}


def warmup_drop(asked: Asked) -> Values:
    """Return how much the target's baseline lowers the loss on the source's instances."""
    found: dict[str, float | None] = {}
    for source in asked.sources:
        base, warm = asked.losses(None, source), asked.losses(asked.target, source)
        found[source] = float(((base - warm) / base).mean())
    return found


GENERATIVE: tuple[Family, ...] = ("decoder", "encoder_decoder")

_PACKAGE = (
    Selector("random", (), random),
    Selector("size", (), size),
    Selector("kind", (), kind),
    Selector("source_mean", ("transfers",), source_mean),
    Selector("tfidf", ("texts",), tfidf),
    Selector("embedding", ("embeddings",), embedding),
    Selector("roe", ("embeddings",), roe),
    Selector("logme", ("features",), logme, of_labels=True),
    Selector("esm_logme", ("embeddings", "own_embeddings"), esm_logme, of_labels=True),
    Selector("leep", ("features",), leep, of_labels=True, source_labels=True),
    Selector("nleep", ("features",), nleep, of_labels=True),
    Selector("hscore", ("features",), hscore, of_labels=True),
    Selector("taskemb", ("fisher",), taskemb),
    Selector("gradient", ("gradients",), gradient),
    Selector("warmup_drop", ("losses",), warmup_drop, families=GENERATIVE),
    Selector("probe", ("probe",)),
)

SELECTORS: dict[str, Selector] = {selector.name: selector for selector in _PACKAGE}
"""Selectors by name: the package's, and those that plugins have added in this process."""

_OF_PACKAGE = frozenset(SELECTORS)


def add(selector: Selector) -> None:
    """Register a plugin's selector in this process; an earlier one with its name is replaced.

    Raises:
        ConfigError: its name is taken by the package, or it has no function.
    """
    if not isinstance(selector, Selector):
        raise ConfigError(
            f"SELECTORS contains {selector!r}, which is not a Selector. Replace or remove it."
        )
    if selector.name in _OF_PACKAGE:
        raise ConfigError(
            f"The selector {selector.name!r} has the name of one of the package. Choose another "
            "name."
        )
    if selector.values is None:
        raise ConfigError(
            f"The selector {selector.name!r} has no values. Add a function that computes them."
        )
    SELECTORS[selector.name] = selector
