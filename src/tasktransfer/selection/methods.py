"""Selectors, one function each, and registration of plugins' selectors.

Each function takes a ``selection.inputs.SelectorInput``, a target with its sources. Imports are
inside the functions, because plans only need the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tasktransfer.core.specs import Family
from tasktransfer.errors import ConfigError
from tasktransfer.selection.selector import Selector

if TYPE_CHECKING:
    from tasktransfer.selection.inputs import SelectorInput

RANK_OFFSET = 60
"""Constant of reciprocal rank fusion, as in Vu et al. 2020."""

Values = Mapping[str, float | None]


def score_by_random(inputs: SelectorInput) -> Values:
    """Return equal scores for all sources, which stand for a random order."""
    return dict.fromkeys(inputs.sources, 0.0)


def score_by_size(inputs: SelectorInput) -> Values:
    """Score sources by their numbers of training instances."""
    return {source: float(inputs.sizes[source]) for source in inputs.sources}


def score_by_kind(inputs: SelectorInput) -> Values:
    """Score sources by task type: 1 if it equals the target's, otherwise 0."""
    return {s: float(inputs.kinds[s] == inputs.kinds[inputs.target]) for s in inputs.sources}


def score_by_source_mean(inputs: SelectorInput) -> Values:
    """Score sources by their mean dev gains on other targets."""
    gains = {source: inputs.transfers[source] for source in inputs.sources}
    return {source: float(of.mean()) if len(of) else None for source, of in gains.items()}


def score_by_tfidf(inputs: SelectorInput) -> Values:
    """Score sources by the cosine of mean TF-IDF vectors of source and target inputs."""
    from tasktransfer.selection.transferability import compute_cosine, compute_mean_tfidf

    means = compute_mean_tfidf(
        {task: inputs.texts(task) for task in (inputs.target, *inputs.sources)}
    )
    return {
        source: compute_cosine(means[source], means[inputs.target]) for source in inputs.sources
    }


def score_by_embedding(inputs: SelectorInput) -> Values:
    """Score sources by the cosine of mean input embeddings (Vu 2020, Poth 2021)."""
    from tasktransfer.selection.transferability import compute_cosine

    target = inputs.embeddings(inputs.target).mean(axis=0)
    return {s: compute_cosine(inputs.embeddings(s).mean(axis=0), target) for s in inputs.sources}


def score_by_roe(inputs: SelectorInput) -> Values:
    """Score sources by the similarity of target inputs to their nearest source inputs."""
    from tasktransfer.selection.transferability import compute_retrieval_similarity

    target = inputs.embeddings(inputs.target)
    return {s: compute_retrieval_similarity(target, inputs.embeddings(s)) for s in inputs.sources}


def score_by_logme(inputs: SelectorInput) -> Values:
    """Score sources by LogME, the log evidence of target classes given features (You 2021)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_logme(inputs.features(s), inputs.classes) for s in inputs.sources
    }


def score_by_esm_logme(inputs: SelectorInput) -> Values:
    """Score sources by LogME after a map from base features to theirs (Schulte 2024)."""
    from tasktransfer.selection import transferability

    base = inputs.embeddings(inputs.target)
    return {
        source: transferability.compute_esm_logme(
            inputs.embeddings(source), inputs.own_embeddings(source), base, inputs.classes
        )
        for source in inputs.sources
    }


def score_by_leep(inputs: SelectorInput) -> Values:
    """Score sources by LEEP, the log likelihood of target classes (Nguyen 2020)."""
    from tasktransfer.selection import transferability

    found: dict[str, float | None] = {}
    for source in inputs.sources:
        theta = inputs.probabilities(source)
        found[source] = (
            None if theta is None else transferability.compute_leep(theta, inputs.classes)
        )
    return found


def score_by_nleep(inputs: SelectorInput) -> Values:
    """Score sources by LEEP with Gaussian mixture components instead of labels (Li 2021)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_nleep(inputs.features(s), inputs.classes) for s in inputs.sources
    }


def score_by_hscore(inputs: SelectorInput) -> Values:
    """Score sources by the H-score, the spread of class means in their features (Bao 2019)."""
    from tasktransfer.selection import transferability

    return {
        s: transferability.compute_hscore(inputs.features(s), inputs.classes)
        for s in inputs.sources
    }


def score_by_taskemb(inputs: SelectorInput) -> Values:
    """Score sources by the cosine of Fisher information, fused over tensors (Vu 2020)."""
    from tasktransfer.selection.transferability import compute_cosine

    target, fused = inputs.fisher(inputs.target), dict.fromkeys(inputs.sources, 0.0)
    of = {source: inputs.fisher(source) for source in inputs.sources}
    for name in target:
        alike = {
            s: compute_cosine(of[s][name].ravel(), target[name].ravel()) for s in inputs.sources
        }
        for rank, source in enumerate(sorted(alike, key=lambda one: -alike[one]), start=1):
            fused[source] += 1 / (RANK_OFFSET + rank)
    return dict(fused)


def score_by_gradient(inputs: SelectorInput) -> Values:
    """Score sources by the cosine of mean gradients (Albalak 2023, Xia 2024)."""
    from tasktransfer.selection.transferability import compute_cosine

    target = inputs.gradient(inputs.target)
    return {source: compute_cosine(inputs.gradient(source), target) for source in inputs.sources}


def score_by_warmup_drop(inputs: SelectorInput) -> Values:
    """Score sources by how much the target's baseline lowers the loss on their instances."""
    found: dict[str, float | None] = {}
    for source in inputs.sources:
        base, warm = inputs.losses(None, source), inputs.losses(inputs.target, source)
        found[source] = float(((base - warm) / base).mean())
    return found


GENERATIVE: tuple[Family, ...] = ("decoder", "encoder_decoder")

_PACKAGE = (
    Selector("random", (), score_by_random),
    Selector("size", (), score_by_size),
    Selector("kind", (), score_by_kind),
    Selector("source_mean", ("transfers",), score_by_source_mean),
    Selector("tfidf", ("texts",), score_by_tfidf),
    Selector("embedding", ("embeddings",), score_by_embedding),
    Selector("roe", ("embeddings",), score_by_roe),
    Selector("logme", ("features",), score_by_logme, of_labels=True),
    Selector("esm_logme", ("embeddings", "own_embeddings"), score_by_esm_logme, of_labels=True),
    Selector("leep", ("features",), score_by_leep, of_labels=True, source_labels=True),
    Selector("nleep", ("features",), score_by_nleep, of_labels=True),
    Selector("hscore", ("features",), score_by_hscore, of_labels=True),
    Selector("taskemb", ("fisher",), score_by_taskemb),
    Selector("gradient", ("gradients",), score_by_gradient),
    Selector("warmup_drop", ("losses",), score_by_warmup_drop, families=GENERATIVE),
    Selector("probe", ("probe",)),
)

SELECTORS: dict[str, Selector] = {selector.name: selector for selector in _PACKAGE}
"""Selectors by name: the package's, and those that plugins have added in this process."""

_OF_PACKAGE = frozenset(SELECTORS)


def register_selector(selector: Selector) -> None:
    """Register a selector from a plugin in this process.

    It replaces an earlier selector of a plugin with the same name.

    Raises:
        ConfigError: the object is not a selector, the package has a selector with its name, or it
            has no function.
    """
    if not isinstance(selector, Selector):
        raise ConfigError(
            f"The list SELECTORS contains {selector!r}, which is not a Selector. Replace or "
            "remove this item."
        )
    if selector.name in _OF_PACKAGE:
        raise ConfigError(
            f"The package already contains a selector with the name {selector.name!r}. Choose "
            "another name."
        )
    if selector.values is None:
        raise ConfigError(
            f"The selector {selector.name!r} cannot compute values. Add a function that computes "
            "the selector's values."
        )
    SELECTORS[selector.name] = selector
