"""DailyDialog: two anonymous speakers, everyday talk; ten tasks (FETA, Table 1).

A task is a card and a row in this file. To add it to the tiny world, also write a scene and a row
in ``tiny_world``.
"""

from __future__ import annotations

from tasktransfer.datasets.dailydialog import cards
from tasktransfer.datasets.dailydialog.layouts import (
    causal_entailment,
    dialogue_label,
    own_context_choice,
    relation_label,
    response_choice,
    spans_in_own_context,
    triple_entailment,
)
from tasktransfer.datasets.dailydialog.tiny_world import TINY
from tasktransfer.datasets.dataset import TaskSize
from tasktransfer.datasets.feta.annotations import Annotated, utterance_label
from tasktransfer.datasets.feta.reader import feta_dataset

TASKS: tuple[Annotated, ...] = (
    Annotated(cards.EMOTION_RECOGNITION, utterance_label, TaskSize(7230, 1269, 15885, 90)),
    Annotated(cards.DIALOGUE_ACT_CLASSIFICATION, utterance_label, TaskSize(7230, 1269, 15885, 90)),
    Annotated(cards.TOPIC_CLASSIFICATION, dialogue_label, TaskSize(958, 161, 1919, 131)),
    Annotated(
        cards.CAUSAL_EMOTION_SPAN_EXTRACTION, spans_in_own_context, TaskSize(2141, 169, 9133, 214)
    ),
    Annotated(cards.CAUSAL_EMOTION_ENTAILMENT, causal_entailment, TaskSize(2141, 169, 9133, 187)),
    Annotated(cards.DIALOGUE_NLI, triple_entailment, TaskSize(569, 52, 1302, 145)),
    Annotated(
        cards.DIALOGUE_REASONING_SPAN_EXTRACTION, spans_in_own_context, TaskSize(123, 13, 244, 143)
    ),
    Annotated(
        cards.DIALOGUE_REASONING_MULTIPLE_CHOICE_SPAN_SELECTION,
        own_context_choice,
        TaskSize(224, 26, 496, 575, sequences=4),
    ),
    Annotated(
        cards.DIALOGUE_REASONING_COMMONSENSE_RELATION_PREDICTION,
        relation_label,
        TaskSize(350, 38, 851, 137),
    ),
    Annotated(
        cards.ADVERSARIAL_RESPONSE_SELECTION,
        response_choice,
        TaskSize(3400, 895, 10750, 243, sequences=3),
    ),
)
"""Tasks in the order of the release's metadata."""

SHARED = 0.12
"""Allowed fraction of a split's texts that are also in another split. FETA made new splits of
DailyDialog's 13,118 dialogues, which contain hundreds of duplicates: 220 of 1,919 test dialogues
and 187 of 1,616 dev dialogues are in train."""

DAILYDIALOG = feta_dataset("DailyDialog", TASKS, TINY, SHARED)
