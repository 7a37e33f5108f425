"""Frames of an empathetic study: their columns, and the functions that compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.empathetic.config import get_config
from tasktransfer.designs.empathetic.methods import CONTROLS_OF_ENSEMBLES
from tasktransfer.results.frames import FLAG, NUMBER, NUMBERS, TEXT, WHOLE, Columns, Frame
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.empathetic import collect, human_frames, prompted, statistics
else:
    package = LazyPackage(__package__)
    collect, statistics = package.collect, package.statistics
    human_frames, prompted = package.human_frames, package.prompted


def has_controls_of_ensembles(study: Study) -> bool:
    """Return whether a study has controls that its ensembles are compared with."""
    return not {*CONTROLS_OF_ENSEMBLES.values()}.isdisjoint(get_config(study).controls)


def has_judgements(study: Study) -> bool:
    """Return whether a study has human judgements of its replies."""
    return get_config(study).human is not None


def has_ratings(study: Study) -> bool:
    """Return whether a study has human ratings of its replies."""
    human = get_config(study).human
    return human is not None and human.ratings is not None


def has_choices(study: Study) -> bool:
    """Return whether a study has human choices between its replies."""
    human = get_config(study).human
    return human is not None and human.choices is not None


def has_prompted(study: Study) -> bool:
    """Return whether a study prompts language models for replies."""
    return bool(get_config(study).prompted)


ABOUT = ("setting",)
"""Keys of ``Run.about`` that identify a run."""

_RUN: Columns = (
    ("setting", TEXT, "retrieval, generation or classifier"),
    ("method", TEXT, "evaluated method"),
    ("model", TEXT, "name of the model in the config"),
    ("seed", WHOLE, "random seed"),
)
_CELL: Columns = (
    ("setting", TEXT, "retrieval, generation or classifier"),
    ("method", TEXT, "evaluated method"),
    ("measure", TEXT, "measure, in its own unit (percent, or a perplexity)"),
    ("pool", TEXT, "datasets that the candidates come from; empty if there is no pool"),
)
MEASURED: Columns = (
    *_RUN,
    ("measure", TEXT, "measure, in its own unit (percent, or a perplexity)"),
    ("pool", TEXT, "datasets that the candidates come from; empty if there is no pool"),
    ("value", NUMBER, "the measure on the test split"),
    ("instances", WHOLE, "number of test instances"),
    ("record", TEXT, "path of the evaluation's record, relative to the results folder"),
    ("constant", FLAG, "true if at least 99 % of the answers are identical"),
)
ROWS: Columns = (
    *_RUN,
    ("measure", TEXT, "measure that is computed from the tally"),
    ("pool", TEXT, "datasets that the candidates come from; empty if there is no pool"),
    ("dialogue", TEXT, "dialogue ID; dialogues are resampled as clusters"),
    ("instance", TEXT, "instance ID"),
    ("emotion", TEXT, "emotion of the dialogue"),
    ("chosen_from", TEXT, "dataset of the retrieved reply; empty if none was retrieved"),
    ("tally", NUMBERS, "the instance's contribution to the measure's sums"),
)
COSTS: Columns = (
    *_RUN,
    (
        "parameters",
        WHOLE,
        "number of parameters, including fixed positions for retrieval only; 0 if unknown",
    ),
    ("hours", NUMBER, "wall time of the method's last training, hours"),
    ("all_hours", NUMBER, "wall time of all trainings of the method, hours"),
    ("hardware", TEXT, "GPU, or CPU with its number of threads"),
    ("examples", WHOLE, "number of training instances of the last training"),
)
LABELS: Columns = (
    ("label", TEXT, "emotion"),
    ("dialogues", WHOLE, "number of dialogues with this emotion, all splits"),
    ("percent", NUMBER, "percentage of all dialogues"),
)
SHARED: Columns = (
    ("what", TEXT, "a situation in several splits, or test utterances found in training"),
    ("text", TEXT, "the situation in lower case; empty for utterances"),
    ("splits", TEXT, "splits that share the texts"),
    ("count", WHOLE, "number of shared texts"),
    ("of", WHOLE, "total number of dialogues, or of distinct test utterances"),
)
SUMMARY: Columns = (
    *_CELL,
    ("seeds", WHOLE, "number of seeds; 1 for a model that is evaluated as released"),
    ("value", NUMBER, "mean over seeds (geometric mean for perplexities)"),
    ("low", NUMBER, "lower end of the 95 % interval over dialogues and, if several, seeds"),
    ("high", NUMBER, "upper end of the interval"),
    ("dialogues", WHOLE, "number of dialogues, which are resampled as clusters"),
)
DIFFERENCES: Columns = (
    *_CELL,
    ("seeds", WHOLE, "number of seeds that both methods have"),
    (
        "difference",
        NUMBER,
        "method - Base, mean over seeds; log perplexities (nats) for perplexity",
    ),
    ("low", NUMBER, "lower end of the 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end of the interval"),
    ("p", NUMBER, "two-sided p-value of the null hypothesis of no difference"),
    (
        "q",
        NUMBER,
        "p after false-discovery control over all methods; null for controls and one seed",
    ),
    ("comparable", FLAG, "false if the method is given the gold label"),
)
CONTROL_DIFFERENCES: Columns = (
    *_CELL,
    ("against", TEXT, "control: ensemble-untrained or base-longer"),
    ("seeds", WHOLE, "number of seeds that both methods have"),
    ("difference", NUMBER, "ensemble - control, mean over seeds; nats for perplexity"),
    ("low", NUMBER, "lower end of the 95 % interval over dialogues and seeds"),
    ("high", NUMBER, "upper end of the interval"),
    ("p", NUMBER, "two-sided p-value of the null hypothesis of no difference"),
    ("q", NUMBER, "p after false-discovery control over ensembles; null for one seed"),
)
BY_EMOTION: Columns = (
    ("method", TEXT, "evaluated method"),
    ("emotion", TEXT, "emotion of the dialogue"),
    ("p_at_1", NUMBER, "P@1 of its instances, mean over seeds, percent"),
    ("instances", WHOLE, "number of instances per seed"),
)
POOLS_CHOSEN: Columns = (
    ("method", TEXT, "evaluated method"),
    ("pool", TEXT, "pool of candidates"),
    ("chosen_from", TEXT, "dataset of the retrieved replies"),
    ("percent", NUMBER, "percentage of retrieved replies from it, mean over seeds"),
)
HUMAN_RATINGS: Columns = (
    ("model", TEXT, "rated system, as in the ratings file"),
    ("ratings", WHOLE, "number of ratings"),
    ("empathy", NUMBER, "mean rating of empathy, 1 to 5"),
    ("relevance", NUMBER, "mean rating of relevance, 1 to 5"),
    ("fluency", NUMBER, "mean rating of fluency, 1 to 5"),
    ("empathy_sem", NUMBER, "standard error of empathy, for independent ratings"),
    ("relevance_sem", NUMBER, "standard error of relevance, for independent ratings"),
    ("fluency_sem", NUMBER, "standard error of fluency, for independent ratings"),
    ("empathy_low", NUMBER, "lower end of the 95 % interval of empathy over contexts"),
    ("relevance_low", NUMBER, "lower end for relevance"),
    ("fluency_low", NUMBER, "lower end for fluency"),
    ("empathy_high", NUMBER, "upper end for empathy"),
    ("relevance_high", NUMBER, "upper end for relevance"),
    ("fluency_high", NUMBER, "upper end for fluency"),
)
HUMAN_CHOICES: Columns = (
    ("model", TEXT, "compared system, the first of the pair in alphabetical order"),
    ("other", TEXT, "the other system of the pair"),
    ("chosen", WHOLE, "number of times the model was chosen"),
    ("other_chosen", WHOLE, "number of times the other system was chosen"),
    ("equal", WHOLE, "number of times both were equally good"),
    ("neither", WHOLE, "number of times neither was good"),
)
HUMAN_AGREEMENT: Columns = (
    ("question", TEXT, "scale of the ratings (ordinal), or choice (nominal)"),
    ("alpha", NUMBER, "Krippendorff's alpha; null if all answers are equal"),
    ("low", NUMBER, "lower end of the 95 % interval over contexts; null for fewer than 5"),
    ("high", NUMBER, "upper end of the interval"),
    ("items", WHOLE, "number of items with at least two answers"),
    ("contexts", WHOLE, "number of contexts of these items"),
    ("raters", WHOLE, "number of raters"),
)
PROMPTED: Columns = (
    ("method", TEXT, "prompted model"),
    ("template", WHOLE, "number of the prompt template, from 1"),
    ("measure", TEXT, "bleu, p_at_1, p_at_1_permuted (chance) or word_perplexity"),
    ("value", NUMBER, "the measure on the test split, in its own unit"),
    ("instances", WHOLE, "number of test contexts"),
    ("unreadable", NUMBER, "percentage of answers that cannot be read; they are empty replies"),
    ("tokens", WHOLE, "tokens of the prompts and of generated replies, without candidates of P@1"),
    ("seconds", NUMBER, "wall time of the evaluation"),
    ("test_data_seen", TEXT, "whether the model saw the test dialogues: yes, no, unknown"),
)

FRAMES = (
    Frame("measured", MEASURED, collect.make_measured),
    Frame("rows", ROWS, collect.make_rows),
    Frame("costs", COSTS, collect.make_costs),
    Frame("prompted", PROMPTED, prompted.make_prompted, planned=has_prompted),
    Frame("labels", LABELS, collect.make_labels, from_dialogues=True),
    Frame("shared", SHARED, collect.make_shared, from_dialogues=True),
    Frame(
        "human_ratings",
        HUMAN_RATINGS,
        human_frames.make_ratings,
        planned=has_ratings,
        from_dialogues=True,
    ),
    Frame(
        "human_choices",
        HUMAN_CHOICES,
        human_frames.make_choices,
        planned=has_choices,
        from_dialogues=True,
    ),
    Frame(
        "human_agreement",
        HUMAN_AGREEMENT,
        human_frames.make_agreement,
        planned=has_judgements,
        from_dialogues=True,
    ),
    Frame("summary", SUMMARY, statistics.make_summary, ("rows", "measured")),
    Frame("differences", DIFFERENCES, statistics.make_differences, ("rows", "measured")),
    Frame(
        "control_differences",
        CONTROL_DIFFERENCES,
        statistics.make_control_differences,
        ("rows", "measured"),
        planned=has_controls_of_ensembles,
    ),
    Frame("by_emotion", BY_EMOTION, statistics.make_by_emotion, ("rows",)),
    Frame("pools_chosen", POOLS_CHOSEN, statistics.make_pools_chosen, ("rows",)),
)
