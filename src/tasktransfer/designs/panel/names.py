"""Names of methods and rated sets, and their names in the paper."""

from __future__ import annotations

from collections.abc import Iterable

from tasktransfer.designs.panel.sources.cards import RATED, TINY_RATED

SELECTION_DIRECT, SELECTION_ADAPTER = "selection-direct", "selection-adapter"
SELECTION_COSINE = "selection-cosine"
"""Methods of response selection."""
DOMAIN_METHODS = ("panel", "collection")
"""Methods with one model per domain."""
EXCHANGED = "-exchanged"
"""End of the name of a method that rates items with the contexts of other items."""
COMPARED_WITH = ("single", "collection", "cosine-last")
OF_CEILINGS = ("cosine-last", "cosine-whole", "cosine-max", "word-overlap", "length")
"""Controls in the table of ceilings; the last two are computed from the words alone."""
EMBEDDINGS = "cosine-embeddings"
"""The cosine of the last utterance by the encoder's input embeddings, before any layer."""
CONTROLS = (*OF_CEILINGS, EMBEDDINGS)
"""Methods that the study does not train."""
BROUGHT = "brought"
"""Model of a run whose ratings come from the user's own rater.

Also the key of the order of raters that the study does not train: the user's own, then the prompted
models.
"""
PROMPTED = "prompted"
"""Model of a run whose ratings come from a prompted language model."""
REDDIT_SET = "Reddit_DSTC7"
"""Rated set of which a part is training data if Reddit is a domain."""
OTHERS, OWN_MINUS_OTHERS = "others", "own - others"
PUBLISHED = {
    "collection": "CoE+",
    "single": "Single-T+",
    "panel-mean": "PoE-avg",
    "panel": "PoE",
}
"""Method → its name in Tables III and IV, in their order."""
MERGED = {"panel-max": "PoE-max", "panel-mean": "PoE-avg", "panel-min": "PoE-min"}
"""Method → its name in Table VIII, in its order."""

RESERVED = (
    *(f"{method}{end}" for method in (*PUBLISHED, *MERGED, "twin") for end in ("", EXCHANGED)),
    *(*CONTROLS, "untrained", "single-leaky", "twin-leaky", OTHERS, "labeller"),
)
"""Names that no rater of the user can have."""
PERSONAS = {"none": "dialogue_only", "original": "original", "revised": "revised"}
"""Persona before a context → its column of Table VII."""
FEW_NAMES = {"single": "Single-T", "panel-mean": "PoE-avg"}
"""Method that few-shot transfer starts from → its name in Table V."""


def has_domain_models(method: str) -> bool:
    """Return whether a method (also in its exchanged-context variant) has one model per domain."""
    return method.removesuffix(EXCHANGED) in DOMAIN_METHODS


def get_domain(rated: str) -> str:
    """Return the domain of a rated set, or an empty string if it has none."""
    return {**RATED, **TINY_RATED}[rated].domain


def get_paper_name(rated: str) -> str:
    """Return the paper's name of a rated set."""
    return RATED[rated].published if rated in RATED else rated


def group_sets_by_average(sets: Iterable[tuple[str, bool]]) -> dict[str, list[str]]:
    """Map each average (per domain, in-domain, out-of-domain, all) to the rated sets in it.

    Args:
        sets: name of each set, and whether it belongs to a trained domain.
    """
    named = list(sets)
    by: dict[str, list[str]] = {}
    for name, inside in named:
        if inside:
            by.setdefault(get_domain(name), []).append(name)
    by["in-domain"] = [name for name, inside in named if inside]
    by["out-of-domain"] = [name for name, inside in named if not inside]
    by["all"] = [name for name, _ in named]
    return {group: names for group, names in by.items() if names}


def format_transfer_column(method: str, percent: int) -> str:
    """Return the name of a column of Tables V and VI, from the method and percentage of ratings.

    The command ``explain`` finds either part.
    """
    return f"{method}+{percent}%" if percent else f"{method}+before"
