"""Task cards of MultiWOZ 2.0: the next utterance, 16 probes and a control."""

from __future__ import annotations

from tasktransfer.datasets.reply_pairs import build_probe_task, build_reply_task

NAME = "MultiWOZ"
_CITATION = "Budzianowski et al. 2018, MultiWOZ (EMNLP); probes: Parthasarathi et al. 2021, Table 1"
_LICENCE = "CC BY 4.0"

REPLY = build_reply_task("MultiWOZ_reply", NAME, _CITATION, _LICENCE)

PROBES = {
    "UtteranceLoc": "Which fifth of the dialogue the turn is in.",
    "RecentTopic": "The current domain.",
    "AllTopics": "The domains with a known slot.",
    "NumAllTopics": "How many domains have a known slot.",
    "IsMultiTopic": "Whether more than one domain has a known slot.",
    "RecentSlots": "The slots that the user's last turn has changed.",
    "RecentValues": "The values of these slots.",
    "NumRecentInfo": "How many slots the user's last turn has changed.",
    "AllSlots": "The slots that are known.",
    "AllValues": "The values of the slots that are known.",
    "NumAllInfo": "How many slots are known.",
    "RepeatInfo": "The names of changed slots that were given before, in any domain.",
    "NumRepeatInfo": "How many of these names there are.",
    "ActionSelect": "The acts of the system's turn.",
    "EntitySlots": "The slots of these acts.",
    "EntityValues": "The values of these acts.",
    "Coin": "A control: a random label per dialogue that no turn contains.",
}
"""Probe → description, in the order of Table 1 with the control last. IsMultiTopic is called
IsMultiTask in Tables 5 and 9."""

CARDS = (
    REPLY,
    *(build_probe_task(name, NAME, asks, _CITATION, _LICENCE) for name, asks in PROBES.items()),
)
