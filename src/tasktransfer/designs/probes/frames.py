"""Frames of the probe study: columns, and the functions that make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.probes.config import get_config
from tasktransfer.results.frames import FLAG, NUMBER, TEXT, WHOLE, Columns, Frame
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.probes import claims, collect, intervals
else:
    package = LazyPackage(__package__)
    claims, collect, intervals = package.claims, package.collect, package.intervals

ABOUT = ("corpus", "probe")
"""Keys of ``Run.about`` that identify a run."""

PROBED: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config; words for counts of words that models read"),
    ("snapshot", TEXT, "untrained, best, last, epoch n, as it is, or words"),
    ("epoch", WHOLE, "probed round; null if nothing was trained"),
    ("seed", WHOLE, "seed of the training"),
    ("probe", TEXT, "probe"),
    ("f1", NUMBER, "micro-F1 on the test split, 0-100"),
    ("prior", NUMBER, "micro-F1 of the best constant answer of the training split"),
    ("shuffled", NUMBER, "micro-F1 of the same probe on labels shuffled by type of dialogue"),
    ("selectivity", NUMBER, "f1 - shuffled, points"),
    ("minority", NUMBER, "micro-F1 without the most frequent training label"),
    ("mlp", NUMBER, "micro-F1 of an MLP; null if none was fitted"),
    ("classes", WHOLE, "number of labels in the training split"),
    ("train_rows", WHOLE, "number of turns that the probe is fitted on"),
    ("test_rows", WHOLE, "number of turns that it is scored on"),
    ("record", TEXT, "folder of the fit, relative to the results folder"),
)
ROUNDS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("seed", WHOLE, "seed of the training"),
    ("epoch", WHOLE, "epoch; 0 before training"),
    ("best", FLAG, "true if the selecting measure chose this epoch"),
    ("bleu2", NUMBER, "mean sentence BLEU-2 on the dev split, 0-100"),
    ("bleu2_exchanged", NUMBER, "dev BLEU-2 with reply and reference exchanged"),
    ("rouge_l", NUMBER, "mean ROUGE-L F1 on the dev split"),
    ("meteor", NUMBER, "mean METEOR (exact matches) on the dev split"),
    ("vectors", NUMBER, "negated mean squared difference of summed word vectors on the dev split"),
    ("test_bleu2", NUMBER, "BLEU-2 on the test split; null except for the best epoch"),
)
LABELS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("probe", TEXT, "probe"),
    ("sets", FLAG, "true if a turn has a set of labels"),
    ("split", TEXT, "train, dev or test"),
    ("turns", WHOLE, "number of turns to which the probe applies"),
    ("classes", WHOLE, "number of distinct labels"),
    ("most_frequent", TEXT, "most frequent label"),
    ("share", NUMBER, "percentage of turns with the most frequent label"),
    ("empty", NUMBER, "percentage of turns without any label"),
)
PROJECTIONS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("snapshot", TEXT, "first or last probed snapshot"),
    ("variance", NUMBER, "percentage of variance on both components"),
    ("first", NUMBER, "a training turn's representation on the first principal component"),
    ("second", NUMBER, "its representation on the second principal component"),
)
_CELL: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config, or words for counts of words"),
    ("snapshot", TEXT, "snapshot that was probed"),
    ("probe", TEXT, "probe"),
)
INTERVALS: Columns = (
    *_CELL,
    ("compared_with", TEXT, "nothing (the score itself), prior, shuffled or untrained"),
    ("seeds", WHOLE, "number of seeds; for a difference, seeds that both sides have"),
    ("value", NUMBER, "mean micro-F1, or its mean difference, points"),
    ("sd", NUMBER, "sample standard deviation of the score over seeds; null for one seed"),
    ("low", NUMBER, "lower end of the 95 % interval over seeds and dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over seeds and dialogues"),
    ("p", NUMBER, "two-sided p-value of no difference; null for the score itself"),
    (
        "q",
        NUMBER,
        "p after false-discovery control over all comparisons with the same reference; null for "
        "one seed",
    ),
    ("constant", WHOLE, "number of seeds whose probe gives one answer to at least 99 % of turns"),
)
ABOVE_WORDS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config, or all for the mean over models"),
    ("snapshot", TEXT, "snapshot that was probed"),
    ("probe", TEXT, "probe, or all for the mean over probes without the control"),
    ("probes", WHOLE, "number of pairs of model and probe in the mean; 1 for a single pair"),
    ("seeds", WHOLE, "number of seeds of the encoder"),
    ("f1", NUMBER, "mean micro-F1 of the encoder's probes"),
    ("value", NUMBER, "f1 minus micro-F1 of the same probes on counts of the words it reads"),
    ("low", NUMBER, "lower end of the 95 % interval over seeds and dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over seeds and dialogues"),
    ("p", NUMBER, "two-sided p-value of no difference"),
    (
        "q",
        NUMBER,
        "p after false-discovery control over all single pairs, all models' means, or all means "
        "over models; null for one seed",
    ),
)
LAYERS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("layer", WHOLE, "number of the layer; 0 for the input embeddings"),
    ("probe", TEXT, "probe, or all for the mean over probes without the control"),
    ("probes", WHOLE, "number of probes in the mean; 1 for a single probe"),
    ("f1", NUMBER, "micro-F1 on the test split"),
    ("low", NUMBER, "lower end of the 95 % interval over dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over dialogues"),
    ("prior", NUMBER, "micro-F1 of the best constant answer of the training split"),
    ("words", NUMBER, "micro-F1 of the same probe on counts of the words that the model reads"),
    ("above_words", NUMBER, "f1 - words, points"),
    ("above_low", NUMBER, "lower end of its 95 % interval over dialogues"),
    ("above_high", NUMBER, "upper end of its 95 % interval over dialogues"),
    ("q", NUMBER, "q of the difference from word counts, as in above_words"),
)
REPLIES: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("model", TEXT, "name of the model in the config"),
    ("seeds", WHOLE, "number of seeds"),
    ("bleu2", NUMBER, "mean BLEU-2 on the test split, for the best epoch by the dev split"),
    ("sd", NUMBER, "sample standard deviation over seeds; null for one seed"),
    ("low", NUMBER, "lower end of the 95 % interval over seeds and dialogues"),
    ("high", NUMBER, "upper end of the 95 % interval over seeds and dialogues"),
)
CLAIMS: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("probe", TEXT, "probe, or 'all' for the mean over probes without the control"),
    (
        "over",
        TEXT,
        "points of the correlation: all; trained (without the untrained models); between (the "
        "models' means); within (mean of the models' own correlations); or one model's points",
    ),
    ("points", WHOLE, "number of points; a point is a model, seed and epoch"),
    ("rho", NUMBER, "Spearman's correlation of dev BLEU-2 and probe F1"),
    (
        "low",
        NUMBER,
        "lower end of the 95 % interval, models resampled with their seeds; null under four models",
    ),
    (
        "high",
        NUMBER,
        "upper end of the 95 % interval, models resampled with their seeds; null under four models",
    ),
)
AGREEMENT: Columns = (
    ("corpus", TEXT, "corpus of dialogues"),
    ("snapshot", TEXT, "snapshot that was probed"),
    ("first", TEXT, "first probe"),
    ("second", TEXT, "second probe"),
    ("models", WHOLE, "number of models that both probes rank"),
    ("rho", NUMBER, "Spearman's correlation of the two rankings of models"),
)


def make_corpus_condition(corpus: str) -> Callable[[Study], bool]:
    """Return a predicate for studies that probe a corpus."""
    return lambda study: bool(
        corpus in study.config.dataset_names and get_config(study).select_probes(corpus)
    )


def has_training_stages(study: Study) -> bool:
    """Return whether a study trains a model."""
    return bool(study.plan.stages)


def probes_word_counts(study: Study) -> bool:
    """Return whether a study probes word counts and a model that is not probed by layer."""
    config = get_config(study)
    return config.probes.bag_of_words and any(not model.probed_layers for model in config.models)


def has_built_models(study: Study) -> bool:
    """Return whether a study builds a model from an architecture."""
    return any(model.architecture for model in get_config(study).models)


def probes_layers(study: Study) -> bool:
    """Return whether a study probes individual layers of checkpoints."""
    return any(model.probed_layers for model in get_config(study).models)


FRAMES = (
    Frame("probed", PROBED, collect.make_probed),
    Frame("rounds", ROUNDS, collect.make_rounds),
    Frame("labels", LABELS, collect.make_labels, from_dialogues=True),
    Frame("projections", PROJECTIONS, collect.make_projections, ("probed",)),
    Frame("intervals", INTERVALS, intervals.make_intervals, ("probed",)),
    Frame("above_words", ABOVE_WORDS, intervals.make_above_words, ("probed",)),
    Frame(
        "layers", LAYERS, intervals.make_layers, ("probed", "above_words"), planned=probes_layers
    ),
    Frame("replies", REPLIES, intervals.make_replies, ("rounds",)),
    Frame("claims", CLAIMS, claims.make_claims, ("probed", "rounds")),
    Frame("agreement", AGREEMENT, claims.make_agreement, ("probed",)),
)
