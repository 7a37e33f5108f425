"""Frames of a panel study: their columns, and the functions that compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.panel.config import get_config
from tasktransfer.results.frames import FLAG, NUMBER, NUMBERS, TEXT, WHOLE, Columns, Frame
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.panel import collect, prompted, statistics
else:
    package = LazyPackage(__package__)
    collect, prompted, statistics = package.collect, package.prompted, package.statistics

ABOUT = ("domain", "persona", "set", "by", "percent", "draw", "of")
"""Keys of ``Run.about`` that identify a run."""

_CORRELATION: Columns = (
    ("value", NUMBER, "Spearman's correlation x 100, mean over seeds"),
    ("low", NUMBER, "lower end of the 95 % interval over contexts and seeds"),
    ("high", NUMBER, "upper end of the interval"),
    ("p", NUMBER, "two-sided p-value of the null hypothesis of no correlation"),
)

RATINGS: Columns = (
    ("method", TEXT, "rating method"),
    ("domain", TEXT, "domain of the expert or model; empty if it has all domains"),
    ("seed", WHOLE, "seed of the training"),
    ("set", TEXT, "rated set"),
    ("item", TEXT, "rated item"),
    (
        "value",
        NUMBER,
        "the method's rating, 0 to 1; on the set's scale for prompted models; on any scale for the "
        "user's own raters",
    ),
)
ITEMS: Columns = (
    ("set", TEXT, "rated set"),
    ("item", TEXT, "rated item"),
    ("context", TEXT, "context ID, shared by several responses"),
    ("gold", NUMBER, "mean human rating, as a fraction of the scale"),
    ("ratings", NUMBERS, "ratings of single annotators, or only their mean"),
    ("utterances", WHOLE, "number of utterances in context and response"),
    ("context_words", WHOLE, "number of words in the context, separated by spaces"),
    ("response_words", WHOLE, "number of words in the response"),
    ("overlap", NUMBER, "fraction of the response's distinct words that the context contains"),
)
CHOICES: Columns = (
    ("method", TEXT, "selection-direct, selection-adapter or selection-cosine"),
    ("persona", TEXT, "persona before the context: none, original or revised"),
    ("seed", WHOLE, "seed"),
    ("context", TEXT, "context ID"),
    ("right", NUMBER, "1 if the true response is rated highest, 1/n in an n-way tie, otherwise 0"),
    ("candidates", WHOLE, "number of candidate responses"),
)
FEW_SHOT: Columns = (
    ("method", TEXT, "method that transfer starts from"),
    ("set", TEXT, "rated set"),
    ("by", TEXT, "sampling unit: contexts with all their items, or single items as in the paper"),
    ("percent", WHOLE, "percentage of the items that are used for training and validation"),
    ("draw", WHOLE, "number of the sample"),
    ("all_items", NUMBER, "Spearman's correlation x 100 on all items, including training items"),
    ("held_out", NUMBER, "Spearman's correlation x 100 on the items that were not sampled"),
    ("items", WHOLE, "number of all items"),
    ("held_out_items", WHOLE, "number of items that were not sampled"),
)
PAIRS: Columns = (
    ("data", TEXT, "with or without the leak filter; 'of the twin' for pairs of the twin only"),
    ("domain", TEXT, "domain"),
    ("split", TEXT, "train or dev"),
    ("how", TEXT, "origin of the response; empty for all"),
    ("made", WHOLE, "number of pairs built"),
    ("kept", WHOLE, "number of pairs with a label of sufficient probability"),
    ("relabelled", WHOLE, "number of kept pairs whose label differs from the one by construction"),
    ("requested", WHOLE, "number of pairs requested"),
    ("pairs", WHOLE, "number of pairs after balancing"),
)
CORPORA: Columns = (
    ("corpus", TEXT, "corpus"),
    ("split", TEXT, "train or dev"),
    ("dialogues", WHOLE, "number of dialogues, before the leak filter"),
    ("utterances", WHOLE, "number of their utterances"),
    ("words", WHOLE, "number of their words, separated by spaces"),
)
LEAKS: Columns = (
    ("corpus", TEXT, "corpus"),
    ("split", TEXT, "split of the corpus; empty for all"),
    ("set", TEXT, "rated set; empty for all"),
    ("dialogues", WHOLE, "number of dialogues; with a set, those that share an utterance with it"),
    ("kept", WHOLE, "number of dialogues that share no utterance with any set"),
    ("items", WHOLE, "number of items of the set that share an utterance with the corpus"),
    ("dropped", FLAG, "true if dialogues with shared utterances were left out"),
)
TRAININGS: Columns = (
    ("kind", TEXT, "kind of training"),
    ("label", TEXT, "name of the training"),
    ("seed", WHOLE, "seed"),
    ("rounds", WHOLE, "number of rounds (epochs or evaluation steps) until the training ended"),
    ("best_round", WHOLE, "selected round"),
    ("dev_score", NUMBER, "dev score that selected the round, percent or x 1"),
    ("hours", NUMBER, "wall time, hours"),
    ("parameters", WHOLE, "number of parameters of the whole model; null for older records"),
    ("trained", WHOLE, "number of parameters that this training updates"),
    ("hardware", TEXT, "GPU, or CPU with its number of threads"),
    ("test_accuracy", NUMBER, "test accuracy; null if not tested, or if there are no two classes"),
    ("test_constant", NUMBER, "test accuracy of the majority class"),
    ("test_balanced", NUMBER, "balanced test accuracy (mean recall of both classes; 50 by chance)"),
)
CORRELATIONS: Columns = (
    ("method", TEXT, "rating method"),
    ("set", TEXT, "rated set"),
    ("in_domain", FLAG, "true if the set belongs to a trained domain"),
    ("domain", TEXT, "the set's domain; empty if it has none"),
    ("seeds", WHOLE, "number of seeds"),
    *_CORRELATION,
    ("q", NUMBER, "p after false-discovery control over the sets; null for one seed"),
    (
        "bootstrap_low",
        NUMBER,
        "lower end of the interval from resampling contexts and seeds together",
    ),
    ("bootstrap_high", NUMBER, "upper end of that interval, which is too narrow with few seeds"),
    ("pearson", NUMBER, "Pearson's correlation x 100, mean over seeds"),
    ("kendall", NUMBER, "Kendall's tau-b x 100, mean over seeds"),
    ("items", WHOLE, "number of rated items"),
    ("contexts", WHOLE, "number of contexts, which are resampled as clusters"),
    ("constant", WHOLE, "number of seeds with constant ratings, which count as a correlation of 0"),
)
EXPERTS: Columns = (
    ("method", TEXT, "panel or collection"),
    ("expert", TEXT, "domain of the expert, or 'own - others' for the difference"),
    ("set", TEXT, "rated set"),
    ("own", FLAG, "true if the set belongs to the expert's domain"),
    ("seeds", WHOLE, "number of seeds"),
    *_CORRELATION,
)
TESTS: Columns = (
    ("method", TEXT, "compared method"),
    ("against", TEXT, "method that it is compared with"),
    ("set", TEXT, "rated set; an average of sets has no Williams' test"),
    ("seed", TEXT, "seed, or 'mean' for ratings averaged over seeds"),
    ("r_method", NUMBER, "the method's Spearman correlation x 100"),
    ("r_against", NUMBER, "the other method's Spearman correlation x 100"),
    ("r_both", NUMBER, "Spearman correlation x 100 between the two methods"),
    ("items", WHOLE, "number of rated items"),
    ("difference", NUMBER, "r_method minus r_against, x 100"),
    ("low", NUMBER, "lower end of its 95 % interval from resampling contexts"),
    ("high", NUMBER, "upper end of that interval"),
    ("p", NUMBER, "two-sided p-value of no difference, from resampling contexts"),
    ("q", NUMBER, "p after false-discovery control over the sets; null for one seed"),
    (
        "seeds_low",
        NUMBER,
        "lower end of the interval over contexts and seeds; null except for the mean over seeds",
    ),
    ("seeds_high", NUMBER, "upper end of that interval"),
    ("t", NUMBER, "Williams' t, which assumes independent items"),
    ("t_p", NUMBER, "two-sided p-value of Williams' t"),
    ("t_q", NUMBER, "t_p after false-discovery control over the sets; null for one seed"),
)
AVERAGES: Columns = (
    ("method", TEXT, "rating method"),
    ("over", TEXT, "domain, in-domain, out-of-domain or all"),
    ("sets", WHOLE, "number of rated sets"),
    ("seeds", WHOLE, "number of seeds"),
    *_CORRELATION,
)
FEW: Columns = (
    ("method", TEXT, "method that transfer starts from"),
    ("set", TEXT, "rated set"),
    (
        "by",
        TEXT,
        "sampling unit: contexts with all their items, or single items; empty for controls",
    ),
    ("percent", WHOLE, "percentage of the items that are sampled; 0 before transfer"),
    ("draws", WHOLE, "number of samples"),
    ("all_items", NUMBER, "Spearman's correlation x 100 on all items, mean over samples"),
    ("all_sd", NUMBER, "standard deviation of all_items over samples"),
    ("held_out", NUMBER, "Spearman's correlation x 100 on held-out items, mean over samples"),
    ("held_out_sd", NUMBER, "standard deviation of held_out over samples"),
)
HITS: Columns = (
    ("method", TEXT, "selection-direct, selection-adapter or selection-cosine"),
    ("persona", TEXT, "persona before the context: none, original or revised"),
    ("candidates", WHOLE, "number of candidate responses"),
    ("contexts", WHOLE, "number of contexts"),
    ("hits_at_1", NUMBER, "percentage of true responses rated above all other candidates"),
    ("low", NUMBER, "lower end of the 95 % interval (Wilson)"),
    ("high", NUMBER, "upper end of the interval"),
)
CEILINGS: Columns = (
    ("set", TEXT, "rated set"),
    ("items", WHOLE, "number of rated items"),
    ("contexts", WHOLE, "number of contexts"),
    ("annotators", NUMBER, "mean number of ratings per item; 1 if only the mean is released"),
    (
        "split_half",
        NUMBER,
        "Spearman's correlation x 100 between two halves of the annotators",
    ),
    ("reliability", NUMBER, "Spearman-Brown reliability x 100 of the mean of all annotators"),
    ("ceiling", NUMBER, "its square root x 100: the highest possible correlation with the mean"),
    ("cosine_last", NUMBER, "Spearman's correlation x 100 of the cosine with the last utterance"),
    ("cosine_whole", NUMBER, "Spearman's correlation x 100 of the cosine with the whole context"),
    (
        "cosine_max",
        NUMBER,
        "Spearman's correlation x 100 of the cosine with the nearest utterance",
    ),
    ("overlap", NUMBER, "Spearman's correlation x 100 of word overlap with the context"),
    ("length", NUMBER, "Spearman's correlation x 100 of the response's length"),
    ("utterances", NUMBER, "mean number of utterances in context and response"),
    ("context_words", NUMBER, "mean number of words in the context"),
    ("response_words", NUMBER, "mean number of words in the response"),
)

PROMPTED: Columns = (
    ("method", TEXT, "prompted model"),
    ("set", TEXT, "rated set"),
    ("template", WHOLE, "number of the prompt template, from 1"),
    ("value", NUMBER, "Spearman's correlation x 100 of this template's ratings"),
    ("mean", NUMBER, "mean rating, on the set's scale"),
    ("items", WHOLE, "number of rated items"),
    ("unreadable", NUMBER, "answers that are not a rating, percent; the middle of the scale"),
    ("tokens", WHOLE, "tokens read and generated"),
    ("seconds", NUMBER, "wall time of the evaluation"),
    ("test_data_seen", TEXT, "whether the model saw the set in its training: yes, no, unknown"),
)

RATED = ("ratings", "items")


def has_prompted(study: Study) -> bool:
    """Return whether the study prompts language models for ratings."""
    return bool(get_config(study).prompted)


FRAMES = (
    Frame("ratings", RATINGS, collect.make_ratings),
    Frame("choices", CHOICES, collect.make_choices),
    Frame("few_shot", FEW_SHOT, collect.make_few_shot_rows),
    Frame("pairs", PAIRS, collect.make_pairs),
    Frame("leaks", LEAKS, collect.make_leaks),
    Frame("trainings", TRAININGS, collect.make_trainings),
    Frame("corpora", CORPORA, collect.make_corpora, from_dialogues=True),
    Frame("prompted", PROMPTED, prompted.make_prompted, planned=has_prompted),
    Frame("items", ITEMS, collect.make_items, from_dialogues=True),
    Frame("correlations", CORRELATIONS, statistics.make_correlations, RATED),
    Frame("experts", EXPERTS, statistics.make_experts, RATED),
    Frame("tests", TESTS, statistics.make_tests, RATED),
    Frame("averages", AVERAGES, statistics.make_averages, RATED),
    Frame("few", FEW, statistics.make_few_shot, (*RATED, "few_shot")),
    Frame("hits", HITS, statistics.make_hits, ("choices",)),
    Frame("ceilings", CEILINGS, statistics.make_ceilings, RATED),
)
