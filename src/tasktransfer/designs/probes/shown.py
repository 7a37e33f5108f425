"""Tables and figures of the probe study: the paper's Tables 3 to 9, further tables, and figures.

The Snakefile imports this module, so pandas and matplotlib are imported only when a table or a
figure is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tasktransfer.core.lazy import LazyPackage
from tasktransfer.designs.probes.frames import (
    ABOUT,
    FRAMES,
    has_built_models,
    has_training_stages,
    make_corpus_condition,
    probes_layers,
    probes_word_counts,
)
from tasktransfer.present.columns import (
    make_estimate_column,
    make_long_text_column,
    make_number_column,
    make_p_value_column,
    make_published_column,
    make_text_column,
)
from tasktransfer.present.declared import Analysis, Figure, FlatTable, PivotTable, Table
from tasktransfer.present.numbers import DIFFERENCES, SCORES
from tasktransfer.results.study import Study

if TYPE_CHECKING:
    from tasktransfer.designs.probes import answer, collect, effects, figures, printed
else:
    package = LazyPackage(__package__)
    answer, collect = package.answer, package.collect
    effects, figures, printed = package.effects, package.figures, package.printed

QUESTION = (
    "What information about the dialogue do encoders of dialogue models represent before and "
    "after training, and does BLEU reflect this information?"
)
PAPER = "Parthasarathi et al. 2021"
VOCABULARIES = ("13,000 words", "16,000 words", "17,000 words")
CORPUS, MODEL = make_text_column("corpus", "Corpus"), make_text_column("model", "Model")
F1 = make_number_column("f1", "F1", ".1f")
SNAPSHOT, PROBE = make_text_column("snapshot", "Snapshot"), make_text_column("probe", "Probe")


def _make_table_condition(number: int) -> Callable[[Study], bool]:
    """Return a predicate for studies with a probe of a table (8 or 9)."""
    return lambda study: (
        make_corpus_condition("MultiWOZ")(study) and printed.has_probes_of_table(study, number)
    )


def _declare_score_table(number: int, corpus: str) -> Table:
    return Table(
        f"table{number}",
        f"Table {number}",
        getattr(printed, f"compute_table{number}"),
        PivotTable(
            (MODEL, SNAPSHOT),
            "probe",
            make_estimate_column("f1", "F1", ".1f", bounds=SCORES),
            make_published_column(".1f"),
        ),
        keys=("model", "snapshot", "probe"),
        paper=f"Table {number} of {PAPER}",
        nothing=f"has no probes on {corpus}",
        planned=make_corpus_condition(corpus),
    )


def _declare_selection_table(number: int) -> Table:
    return Table(
        f"table{number}",
        f"Table {number}",
        getattr(printed, f"compute_table{number}"),
        PivotTable(
            (MODEL, make_text_column("selected_by", "Selected by")),
            "probe",
            F1,
            make_published_column(".1f"),
        ),
        keys=("model", "selected_by", "probe"),
        paper=f"Table {number} of {PAPER}",
        nothing="trains no model on MultiWOZ with these probes",
        planned=_make_table_condition(number),
        certain=False,
        folded=True,
    )


TABLES = (
    Table(
        "table3",
        "Table 3",
        printed.compute_table3,
        PivotTable(
            (MODEL,),
            "corpus",
            make_estimate_column("bleu2", "BLEU-2", ".2f", bounds=SCORES),
            make_published_column(".1f"),
        ),
        keys=("model", "corpus"),
        paper=f"Table 3 of {PAPER}",
        nothing="trains no model",
        planned=has_training_stages,
    ),
    _declare_score_table(4, "PersonaChat"),
    _declare_score_table(5, "MultiWOZ"),
    Table(
        "table6",
        "Table 6",
        printed.compute_table6,
        PivotTable(
            (make_text_column("groups", "Groups"), MODEL), "group", F1, make_published_column(".1f")
        ),
        keys=("groups", "model", "group"),
        paper=f"Table 6 of {PAPER}, for the groups as used",
        nothing="trains no model on MultiWOZ",
        planned=make_corpus_condition("MultiWOZ"),
        certain=False,
        runs=printed.is_source_of_group_mean,
    ),
    Table(
        "table7",
        "Table 7",
        printed.compute_table7,
        FlatTable(
            (
                MODEL,
                *(make_number_column(words, words, ".1f") for words in VOCABULARIES),
            )
        ),
        keys=("model",),
        nothing="builds no model",
        section="made",
        planned=has_built_models,
        cited=True,
    ),
    _declare_selection_table(8),
    _declare_selection_table(9),
    Table(
        "claims",
        "BLEU and probes",
        printed.list_claims,
        FlatTable(
            (
                CORPUS,
                PROBE,
                make_text_column("over", "Over"),
                make_number_column("points", "Points", "d"),
                make_estimate_column("rho", "Spearman", ".2f"),
            ),
            blocks="corpus",
        ),
        keys=("corpus", "probe", "over"),
        nothing="trains no model",
        planned=has_training_stages,
        certain=False,
    ),
    Table(
        "layers",
        "Probe F1 by layer",
        printed.list_layers,
        FlatTable(
            (
                CORPUS,
                MODEL,
                make_number_column("layer", "Layer", "d"),
                make_estimate_column("f1", "F1", ".1f", bounds=SCORES),
                make_number_column("words", "Word counts", ".1f"),
                make_estimate_column(
                    "above_words", "Difference", "+.1f", "above_low", "above_high", DIFFERENCES
                ),
                make_p_value_column("q", "q"),
                make_number_column("higher", "Higher", "d"),
                make_number_column("lower", "Lower", "d"),
                make_number_column("probes", "Probes", "d"),
            ),
            blocks="model",
        ),
        keys=("corpus", "model", "layer"),
        nothing="does not probe single layers",
        planned=probes_layers,
        runs=printed.is_source_of_layer_mean,
    ),
    Table(
        "above_words",
        "Encoders and word counts",
        printed.list_means_above_words,
        FlatTable(
            (
                CORPUS,
                MODEL,
                SNAPSHOT,
                F1,
                make_estimate_column("value", "Minus word counts", "+.1f", bounds=DIFFERENCES),
                make_p_value_column("q", "q"),
                make_number_column("seeds", "Seeds", "d"),
                make_number_column("probes", "Probes", "d"),
                make_number_column("higher", "Higher", "d"),
                make_number_column("lower", "Lower", "d"),
            ),
            blocks="corpus",
        ),
        keys=("corpus", "model", "snapshot"),
        nothing="fits no probe on word counts",
        planned=probes_word_counts,
        runs=printed.is_source_of_words_mean,
    ),
    Table(
        "unsolved",
        "Unsolved probes",
        printed.list_unsolved_probes,
        FlatTable(
            (
                CORPUS,
                PROBE,
                MODEL,
                SNAPSHOT,
                make_estimate_column("above_prior", "Above the prior", "+.1f", bounds=DIFFERENCES),
                make_number_column("cells", "Cells", "d"),
                make_p_value_column("p_times_cells", "p times cells"),
            )
        ),
        keys=("corpus", "probe"),
        notes=printed.format_single_seed_note,
        nothing="does not contain a probe that every trained model fails",
        certain=False,
    ),
    Table(
        "beyond",
        "Beyond the paper",
        printed.list_differences,
        FlatTable(
            (
                CORPUS,
                MODEL,
                SNAPSHOT,
                PROBE,
                make_text_column("compared_with", "Minus"),
                make_estimate_column("value", "Difference", "+.1f", bounds=DIFFERENCES),
                make_p_value_column("q", "q"),
                make_number_column("seeds", "Seeds", "d"),
                make_number_column("f1", "F1", ".1f"),
                make_number_column("prior", "Prior", ".1f"),
                make_number_column("words", "Words", ".1f"),
                make_number_column("minority", "Minority", ".1f"),
                make_number_column("mlp", "MLP", ".1f"),
            ),
            blocks="corpus",
        ),
        keys=("corpus", "model", "snapshot", "probe", "compared_with"),
        section="sure",
        folded=True,
    ),
    Table(
        "agreement",
        "Rankings of models",
        printed.list_agreement,
        FlatTable(
            (
                CORPUS,
                SNAPSHOT,
                make_text_column("first", "Probe"),
                make_text_column("second", "Other probe"),
                make_number_column("models", "Models", "d"),
                make_number_column("rho", "Spearman", ".2f"),
            )
        ),
        keys=("corpus", "snapshot", "first", "second"),
        nothing="does not have two models to rank",
        section="sure",
        folded=True,
        certain=False,
        runs=printed.is_source_of_agreement,
    ),
    Table(
        "probe_labels",
        "Labels",
        printed.list_probe_labels,
        FlatTable(
            (
                CORPUS,
                PROBE,
                make_text_column("split", "Split"),
                make_text_column("most_frequent", "Most frequent"),
                make_number_column("turns", "Turns", ",d"),
                make_number_column("classes", "Classes", ",d"),
                make_number_column("share", "Share, %", ".1f"),
                make_number_column("empty", "Without a label, %", ".1f"),
            ),
            blocks="corpus",
        ),
        keys=("corpus", "probe", "split"),
        section="made",
        folded=True,
    ),
    Table(
        "one_dialogue",
        "One dialogue with its labels",
        printed.list_first_dialogue,
        FlatTable(
            (
                CORPUS,
                make_text_column("turn", "Turn"),
                make_long_text_column("context", "Context"),
                PROBE,
                make_long_text_column("labels", "Labels"),
            )
        ),
        keys=("corpus", "turn", "probe"),
        nothing="has no labels of probes on this machine",
        section="made",
        folded=True,
        certain=False,
    ),
)  # fmt: skip

FIGURES = (
    Figure(
        "difference_from_words",
        "Probe F1 minus the F1 of word counts",
        effects.plot_difference_from_words,
        ("above_words",),
        nothing="compares no encoder with word counts",
        section="answer",
        certain=False,
    ),
    Figure(
        "training_effects",
        "Effect of training on probe F1",
        effects.plot_training_effects,
        ("intervals",),
        nothing="compares no trained encoder with its untrained version",
        planned=has_training_stages,
        certain=False,
    ),
    Figure(
        "f1_by_layer",
        "Probe F1 by layer",
        figures.plot_f1_by_layer,
        ("layers",),
        nothing="does not probe single layers",
        planned=probes_layers,
    ),
    Figure(
        "f1_by_epoch",
        "Probe F1 by epoch of training",
        figures.plot_f1_by_epoch,
        ("probed",),
        nothing="has no probed epochs",
        planned=has_training_stages,
    ),
    Figure(
        "bleu_against_f1",
        "BLEU-2 and mean probe F1 of each epoch",
        figures.plot_bleu_against_f1,
        ("probed", "rounds", "claims"),
        nothing="trains no model",
        planned=has_training_stages,
    ),
    Figure(
        "representations",
        "Representations projected onto two principal components",
        figures.plot_representations,
        ("projections",),
        nothing="has no stored representations",
        certain=False,
    ),
    Figure(
        "ties",
        "Percentage of ties in small samples of judgements",
        figures.plot_ties,
        (),
        section="sure",
    ),
)


def build_analysis(study: Study) -> Analysis:
    """Return the frames, tables and figures of a probing study."""
    return Analysis(
        question=QUESTION,
        answer=answer.write_answer,
        frames=FRAMES,
        about=ABOUT,
        metadata=collect.build_study_metadata,
        tables=TABLES,
        figures=FIGURES,
        captions="probes",
    )
