"""List of substitutes for inputs of the paper."""

from __future__ import annotations

from tasktransfer.designs.empathetic.config import EmpatheticConfig
from tasktransfer.designs.empathetic.sources.cards import DAILY


def list_substitutes(config: EmpatheticConfig) -> dict[str, str]:
    """Map each input of the paper that the study replaces to its substitute."""
    found: dict[str, str] = {}
    models = {model.name: model for model in config.models}
    if config.retrieval and not config.pretraining.retrieval:
        found["Pretrained (retrieval)"] = f"{models[config.retrieval.model].checkpoint} as released"
    if config.pretrains and config.pretraining.dataset == DAILY:
        found["1.7 billion Reddit conversations"] = "DailyDialog's training dialogues"
    built = [m for m in config.models if m.architecture is not None]
    if any(m.architecture.vectors is None for m in built if m.architecture):
        found["fastText vectors of common crawl"] = "none"
    if not any("R" in pool.split("+") for pool in config.evaluation.pools):
        found["Reddit candidates"] = "none, their rows stay empty"
    if "DailyDialog" in config.dataset_names and config.topics.dataset == "DailyDialog":
        found["20 Newsgroups"] = "DailyDialog's ten topics"
    names = {"ensemble-plain": "DeepMoji as released", "ensemble-tuned": "DeepMoji fine-tuned"}
    if config.classifier:
        what = models[config.classifier.model].checkpoint
        for method, name in names.items():
            if method in config.methods:
                found[name] = f"{what}" + (", trained on situations" if "tuned" in method else "")
        if "ensemble-tags" in config.methods:
            found["Transformer trained on tagged posts"] = f"{what}, trained on GoEmotions"
    return {name.replace("./", ""): text.replace("./", "") for name, text in found.items()}
