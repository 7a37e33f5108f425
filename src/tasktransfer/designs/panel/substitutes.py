"""Substitutes for inputs of the paper."""

from __future__ import annotations

from collections.abc import Mapping

from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.names import REDDIT_SET

LEAKS_KEPT = "LEAKS ARE NOT DROPPED"


def list_substitutes(config: PanelConfig) -> dict[str, str]:
    """Return substitutes for inputs of the paper, by the input's name in the paper.

    Inputs that are left out have the value ``none``.
    """
    found: dict[str, str] = {}
    if not config.data.leaks.drop:
        found[LEAKS_KEPT] = "training data contains utterances of rated items"
    if config.data.generated:
        return found
    models = {model.name: model.checkpoint.removeprefix("./") for model in config.models}
    panel = models[config.models[0].name]
    if "roberta" not in panel.lower():
        found["RoBERTa-base"] = panel
    reddit = "Reddit" in config.domains
    if config.methods:
        found |= _list_training_substitutes(config, models)
    if REDDIT_SET in config.rated_sets:
        half = ", without those used for training" if reddit else ""
        found["the conversations of Reddit-DSTC7"] = f"their grounding paragraphs{half}"
    if config.selection:
        found["the candidates of response selection"] = (
            f"{config.selection.candidates - 1} responses sampled from the same split"
        )
    return found


def _list_training_substitutes(config: PanelConfig, models: Mapping[str, str]) -> dict[str, str]:
    """Return substitutes for inputs of the paper's training pairs."""
    found: dict[str, str] = {}
    if config.labeller:
        found["DEB"] = f"{models[config.labeller.model]}, trained on DailyDialog++"
    elif config.pairs.labels == "made":
        found["DEB"] = "none: a pair's label follows from its construction"
    found["back-translation, DialoGPT and BlenderBot"] = "none"
    found["the infilling model"] = "words of a random context"
    found["REDDIT conversations"] = (
        "(paragraph, reply) pairs of DSTC7" if "Reddit" in config.domains else "none"
    )
    if "ConvAI2" in config.domains:
        found["ConvAI2's training set"] = "its validation set, split into train, dev and test"
    if "TopicalChat" in config.domains:
        found["TopicalChat's training set"] = "its validation sets, split into train, dev and test"
    return found
