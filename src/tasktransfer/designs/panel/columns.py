"""The columns of the study's tables, once each: name, type, meaning."""

from __future__ import annotations

import pyarrow as pa

from tasktransfer.tables.store import Columns

ABOUT = ("domain", "persona", "set", "by", "percent", "draw", "of")
"""What runs are about, as ``Run.about`` has it."""

TEXT, NUMBER, WHOLE, YES = pa.string(), pa.float64(), pa.int64(), pa.bool_()

_CORRELATION: Columns = (
    ("value", NUMBER, "Spearman's correlation, x 100, mean over seeds"),
    ("low", NUMBER, "lower end of the 95 % interval over contexts and seeds"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of 0"),
)

RATINGS: Columns = (
    ("method", TEXT, "what rates"),
    ("domain", TEXT, "domain of the expert or model; empty: it is of all"),
    ("seed", WHOLE, "seed of the training"),
    ("set", TEXT, "rated set"),
    ("item", TEXT, "rated item"),
    ("value", NUMBER, "the rating given, 0 to 1"),
)
ITEMS: Columns = (
    ("set", TEXT, "rated set"),
    ("item", TEXT, "rated item"),
    ("context", TEXT, "context, which several responses share"),
    ("gold", NUMBER, "mean human rating, as a share of the scale"),
    ("ratings", pa.list_(NUMBER), "ratings of single annotators, or their mean alone"),
    ("utterances", WHOLE, "utterances of context and response"),
    ("context_words", WHOLE, "words of the context, between spaces"),
    ("response_words", WHOLE, "words of the response"),
    ("overlap", NUMBER, "share of the response's distinct words that the context has"),
)
CHOICES: Columns = (
    ("method", TEXT, "selection-direct or selection-adapter"),
    ("persona", TEXT, "what came before the context: none or original"),
    ("seed", WHOLE, "seed"),
    ("context", TEXT, "what is answered"),
    ("right", NUMBER, "1: the true response was rated highest; its share of a tie"),
    ("candidates", WHOLE, "responses to choose from"),
)
FEW_SHOT: Columns = (
    ("method", TEXT, "what transfer starts from"),
    ("set", TEXT, "rated set"),
    ("by", TEXT, "contexts: drawn whole; items: each by itself, as in the paper"),
    ("percent", WHOLE, "share of the items that train and validate"),
    ("draw", WHOLE, "number of the draw"),
    ("all_items", NUMBER, "Spearman's correlation x 100 on all items, those of training included"),
    ("held_out", NUMBER, "the same on the items that were not drawn"),
    ("items", WHOLE, "all items"),
    ("held_out_items", WHOLE, "those that were not drawn"),
)
PAIRS: Columns = (
    ("data", TEXT, "with or without the leak filter; of the twin: those that it alone learns"),
    ("domain", TEXT, "domain"),
    ("split", TEXT, "train or dev"),
    ("how", TEXT, "how the response came about; empty: all"),
    ("made", WHOLE, "pairs made"),
    ("kept", WHOLE, "pairs that the labeller is sure of"),
    ("relabelled", WHOLE, "kept pairs whose label is not the one by construction"),
    ("asked", WHOLE, "pairs asked for"),
    ("pairs", WHOLE, "pairs left after balancing"),
)
LEAKS: Columns = (
    ("corpus", TEXT, "corpus"),
    ("split", TEXT, "its split; empty: all"),
    ("set", TEXT, "rated set; empty: all"),
    ("dialogues", WHOLE, "dialogues; beside a set those that share an utterance with it"),
    ("kept", WHOLE, "dialogues that share none with any set"),
    ("items", WHOLE, "items of the set that share an utterance with the corpus"),
    ("dropped", YES, "whether the dialogues that share were left out"),
)
TRAININGS: Columns = (
    ("kind", TEXT, "kind of training"),
    ("label", TEXT, "training"),
    ("seed", WHOLE, "seed"),
    ("rounds", WHOLE, "rounds until it ended"),
    ("best_round", WHOLE, "the round that was kept"),
    ("dev_score", NUMBER, "what selected it, percent or x 1"),
    ("hours", NUMBER, "wall time, hours"),
    ("parameters", WHOLE, "of the whole model; null: an older record"),
    ("trained", WHOLE, "those that this training moves"),
    ("hardware", TEXT, "GPU, or CPU with threads"),
    ("test_accuracy", NUMBER, "accuracy on the test split; null: not tested, or no two classes"),
    ("test_constant", NUMBER, "accuracy of the test split's more frequent class"),
    ("test_balanced", NUMBER, "mean over both classes of the share that is found; a constant: 50"),
)
CORRELATIONS: Columns = (
    ("method", TEXT, "what rates"),
    ("set", TEXT, "rated set"),
    ("in_domain", YES, "whether the set is of a domain that was trained on"),
    ("domain", TEXT, "the set's domain; empty: none"),
    ("seeds", WHOLE, "seeds"),
    *_CORRELATION,
    ("q", NUMBER, "p after control of the false discovery rate over the sets; null: one seed"),
    ("drawn_low", NUMBER, "the interval's lower end by drawing contexts and seeds together"),
    ("drawn_high", NUMBER, "upper end: narrow with few seeds"),
    ("pearson", NUMBER, "Pearson's correlation x 100, mean over seeds"),
    ("kendall", NUMBER, "Kendall's tau-b x 100, mean over seeds"),
    ("items", WHOLE, "rated items"),
    ("contexts", WHOLE, "contexts, which are resampled whole"),
    ("constant", WHOLE, "seeds that rated all items alike, whose correlation counts as 0"),
)
EXPERTS: Columns = (
    ("method", TEXT, "panel or collection"),
    ("expert", TEXT, "domain of the expert; 'own - others': the difference"),
    ("set", TEXT, "rated set"),
    ("own", YES, "whether the set is of the expert's domain"),
    ("seeds", WHOLE, "seeds"),
    *_CORRELATION,
)
TESTS: Columns = (
    ("method", TEXT, "what is compared"),
    ("against", TEXT, "with what"),
    ("set", TEXT, "rated set; an average of sets has no Williams' test"),
    ("seed", TEXT, "seed; mean: ratings averaged over seeds"),
    ("r_method", NUMBER, "Spearman's correlation x 100"),
    ("r_against", NUMBER, "the same of the other"),
    ("r_both", NUMBER, "of the two with each other"),
    ("items", WHOLE, "rated items"),
    ("difference", NUMBER, "r_method less r_against, x 100"),
    ("low", NUMBER, "lower end of its 95 % interval by drawing contexts"),
    ("high", NUMBER, "upper end"),
    ("p", NUMBER, "two-sided p of no difference, by drawing contexts"),
    ("q", NUMBER, "after control of the false discovery rate over the sets; null: of one seed"),
    ("seeds_low", NUMBER, "lower end over contexts and seeds, of the mean over seeds; else null"),
    ("seeds_high", NUMBER, "upper end"),
    ("t", NUMBER, "Williams' t, which takes items for independent"),
    ("t_p", NUMBER, "its p, two-sided"),
    ("t_q", NUMBER, "its p after that control over the sets; null: of one seed"),
)
AVERAGES: Columns = (
    ("method", TEXT, "what rates"),
    ("over", TEXT, "domain, in-domain, out-of-domain or all"),
    ("sets", WHOLE, "rated sets"),
    ("seeds", WHOLE, "seeds"),
    *_CORRELATION,
)
FEW: Columns = (
    ("method", TEXT, "what transfer starts from"),
    ("set", TEXT, "rated set"),
    ("by", TEXT, "contexts: drawn whole; items: each by itself, as in the paper; empty: control"),
    ("percent", WHOLE, "share of the items that are drawn; 0: before"),
    ("draws", WHOLE, "draws"),
    ("all_items", NUMBER, "Spearman's correlation x 100 on all items, mean over draws"),
    ("all_sd", NUMBER, "standard deviation over draws"),
    ("held_out", NUMBER, "the same on held-out items"),
    ("held_out_sd", NUMBER, "standard deviation over draws"),
)
HITS: Columns = (
    ("method", TEXT, "selection-direct or selection-adapter"),
    ("persona", TEXT, "none or original"),
    ("candidates", WHOLE, "responses to choose from"),
    ("contexts", WHOLE, "contexts"),
    ("hits_at_1", NUMBER, "share of true responses rated above all others, percent"),
    ("low", NUMBER, "lower end of the 95 % interval (Wilson)"),
    ("high", NUMBER, "upper end"),
)
CEILINGS: Columns = (
    ("set", TEXT, "rated set"),
    ("items", WHOLE, "rated items"),
    ("contexts", WHOLE, "contexts"),
    ("annotators", NUMBER, "ratings of an item, mean; 1: only the mean is released"),
    (
        "split_half",
        NUMBER,
        "Spearman's correlation x 100 of half of the annotators with the others",
    ),
    ("reliability", NUMBER, "of the mean of all annotators x 100, by Spearman and Brown"),
    ("ceiling", NUMBER, "its square root x 100: the most that a correlation with the mean can be"),
    ("cosine_last", NUMBER, "Spearman's correlation x 100: cosine with the last utterance"),
    ("cosine_whole", NUMBER, "the same of the cosine with the whole context"),
    ("cosine_max", NUMBER, "the same of the cosine with the nearest utterance"),
    ("overlap", NUMBER, "the same of word overlap with the context"),
    ("length", NUMBER, "the same of the response's length"),
    ("utterances", NUMBER, "utterances of context and response, mean"),
    ("context_words", NUMBER, "words of the context, mean"),
    ("response_words", NUMBER, "words of the response, mean"),
)
TABLES = {
    "ratings": RATINGS,
    "items": ITEMS,
    "choices": CHOICES,
    "few_shot": FEW_SHOT,
    "pairs": PAIRS,
    "leaks": LEAKS,
    "trainings": TRAININGS,
}
STATISTICS = {
    "correlations": CORRELATIONS,
    "experts": EXPERTS,
    "tests": TESTS,
    "averages": AVERAGES,
    "few": FEW,
    "hits": HITS,
    "ceilings": CEILINGS,
}
