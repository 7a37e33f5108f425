"""DailyDialog: two anonymous speakers, everyday talk; ten tasks (FETA, Table 1).

A task is a card and a row in this file. To add it to the generated data, also write a scene and a
row in ``tiny_world``.
"""

from __future__ import annotations

from tasktransfer.datasets.dailydialog import cards
from tasktransfer.datasets.dailydialog.layouts import (
    read_causal_entailments,
    read_context_choices,
    read_context_spans,
    read_dialogue_labels,
    read_relation_labels,
    read_response_choices,
    read_triple_entailments,
)
from tasktransfer.datasets.dailydialog.tiny_world import TINY
from tasktransfer.datasets.dataset import TaskSize
from tasktransfer.datasets.feta.annotations import AnnotatedTask, read_utterance_labels
from tasktransfer.datasets.feta.reader import build_feta_dataset

TASKS: tuple[AnnotatedTask, ...] = (
    AnnotatedTask(
        cards.EMOTION_RECOGNITION, read_utterance_labels, TaskSize(7230, 1269, 15885, 90)
    ),
    AnnotatedTask(
        cards.DIALOGUE_ACT_CLASSIFICATION, read_utterance_labels, TaskSize(7230, 1269, 15885, 90)
    ),
    AnnotatedTask(cards.TOPIC_CLASSIFICATION, read_dialogue_labels, TaskSize(958, 161, 1919, 131)),
    AnnotatedTask(
        cards.CAUSAL_EMOTION_SPAN_EXTRACTION,
        read_context_spans,
        TaskSize(2141, 169, 9133, 214),
    ),
    AnnotatedTask(
        cards.CAUSAL_EMOTION_ENTAILMENT, read_causal_entailments, TaskSize(2141, 169, 9133, 187)
    ),
    AnnotatedTask(cards.DIALOGUE_NLI, read_triple_entailments, TaskSize(569, 52, 1302, 145)),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_SPAN_EXTRACTION,
        read_context_spans,
        TaskSize(123, 13, 244, 143),
    ),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_MULTIPLE_CHOICE_SPAN_SELECTION,
        read_context_choices,
        TaskSize(224, 26, 496, 575, sequences=4),
    ),
    AnnotatedTask(
        cards.DIALOGUE_REASONING_COMMONSENSE_RELATION_PREDICTION,
        read_relation_labels,
        TaskSize(350, 38, 851, 137),
    ),
    AnnotatedTask(
        cards.ADVERSARIAL_RESPONSE_SELECTION,
        read_response_choices,
        TaskSize(3400, 895, 10750, 243, sequences=3),
    ),
)
"""Tasks in the order of the release's metadata."""

ALLOWED_SHARED = 0.12
"""Allowed fraction of a split's texts that are also in another split. FETA made new splits of
DailyDialog's 13,118 dialogues, which contain hundreds of duplicates: 220 of 1,919 test dialogues
and 187 of 1,616 dev dialogues are in train."""

DAILYDIALOG = build_feta_dataset("DailyDialog", TASKS, TINY, ALLOWED_SHARED)
