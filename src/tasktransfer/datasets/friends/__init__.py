"""Friends: several recurring speakers, television scenes; seven tasks (FETA, Table 1).

A task is a card and a row in this file. To add it to the generated data, also write a scene and a
row in ``tiny_world``.
"""

from __future__ import annotations

from tasktransfer.datasets.dataset import TaskSize
from tasktransfer.datasets.feta.annotations import AnnotatedTask, read_utterance_labels
from tasktransfer.datasets.feta.reader import build_feta_dataset
from tasktransfer.datasets.friends import cards
from tasktransfer.datasets.friends.layouts import (
    read_entity_pairs,
    read_masked_entities,
    read_mentions,
    read_spans_in_turns,
    read_traits,
)
from tasktransfer.datasets.friends.tiny_world import TINY

TASKS: tuple[AnnotatedTask, ...] = (
    AnnotatedTask(
        cards.EMORY_EMOTION_RECOGNITION, read_utterance_labels, TaskSize(844, 207, 1912, 211)
    ),
    AnnotatedTask(cards.READING_COMPREHENSION, read_masked_entities, TaskSize(912, 181, 2284, 393)),
    AnnotatedTask(cards.CHARACTER_IDENTIFICATION, read_mentions, TaskSize(3593, 638, 7803, 308)),
    AnnotatedTask(cards.QUESTION_ANSWERING, read_spans_in_turns, TaskSize(819, 191, 1937, 395)),
    AnnotatedTask(cards.PERSONALITY_DETECTION, read_traits, TaskSize(54, 15, 110, 207)),
    AnnotatedTask(cards.RELATION_EXTRACTION, read_entity_pairs, TaskSize(519, 121, 1188, 317)),
    AnnotatedTask(
        cards.MELD_EMOTION_RECOGNITION, read_utterance_labels, TaskSize(616, 148, 1247, 228)
    ),
)
"""Tasks in the order of the release's metadata."""

ALLOWED_SHARED = 0.005
"""Allowed fraction of a split's texts that are also in another split. Episodes begin with scenes of
the previous one: 1 of 466 test dialogues and 1 of 466 dev dialogues are in train."""

FRIENDS = build_feta_dataset("Friends", TASKS, TINY, ALLOWED_SHARED)
