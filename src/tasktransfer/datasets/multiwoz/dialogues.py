"""Dialogues and probe labels from MultiWOZ 2.0's JSON (Budzianowski et al. 2018).

A folder ``multiwoz20`` contains the validation and test sets as ``val.json`` and ``test.json``, and
optionally the training set as ``train.json``. Each may be in a zip of the same name. A log begins
with a user turn. The ``metadata`` of a system turn is the belief state after the user turn before
it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasktransfer.errors import DataError, describe_wrong_value
from tasktransfer.files.data_files import parse_json, read_content, read_zip_member

# --- labels of the probes at each system turn, from belief states and dialogue acts ---
# The authors' script is not public, so these definitions are this project's (docs/probes.md,
# Parthasarathi et al. 2021, Table 1). A label of turn t depends on turns up to t, except
# ``UtteranceLoc``, which depends on the dialogue's length. The three downstream tasks use the acts
# of system turn t itself.

DIALOGUE_PARTS = 5
NONE = "none"

State = Mapping[str, str]
"""domain-slot → value, without empty slots."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user turn and the system turn after it.

    Args:
        state: belief state after the user turn.
        user_domains: domains of the user's acts, in their order.
        acts: domain-act → (slot, value) pairs of the system turn.
    """

    state: State
    user_domains: tuple[str, ...]
    acts: Mapping[str, Sequence[Sequence[str]]]


Labels = dict[str, tuple[str, ...]]
"""Probe → labels, without probes that have no label at a turn."""


def build_turn_labels(dialogue: str, exchanges: Sequence[Exchange]) -> list[Labels]:
    """Return the labels of all probes at each system turn."""
    before: State = {}
    topic, earlier_names, labelled = NONE, frozenset[str](), []
    for index, exchange in enumerate(exchanges):
        recent = {s: v for s, v in exchange.state.items() if before.get(s) != v}
        topic = _find_topic(recent, exchange.user_domains, topic)
        names = {_get_slot_name(slot) for slot in recent}
        labels = {
            "UtteranceLoc": (str(index * DIALOGUE_PARTS // len(exchanges)),),
            "RecentTopic": (topic,),
            **_build_state_labels(exchange.state),
            "RecentSlots": tuple(sorted(recent)),
            "RecentValues": tuple(sorted(set(recent.values()))),
            "NumRecentInfo": (str(len(recent)),),
            "RepeatInfo": tuple(sorted(names & earlier_names)) or (NONE,),
            "NumRepeatInfo": (str(len(names & earlier_names)),),
            "Coin": (sample_coin(dialogue),),
        }
        labelled.append(labels | _build_act_labels(exchange.acts))
        before, earlier_names = exchange.state, earlier_names | names
    return labelled


def sample_coin(dialogue: str) -> str:
    """Sample a random label for a dialogue, which cannot be predicted from text."""
    return ("heads", "tails")[hashlib.sha256(dialogue.encode()).digest()[0] % 2]


def _find_topic(recent: State, user_domains: Sequence[str], before: str) -> str:
    """Return the topic of the turn's slots, of the user's acts, or of the last turn."""
    if recent:
        return Counter(map(_get_domain, recent)).most_common(1)[0][0]
    return user_domains[0] if user_domains else before


def _build_state_labels(state: State) -> Labels:
    topics = tuple(sorted({_get_domain(slot) for slot in state}))
    return {
        "AllTopics": topics,
        "NumAllTopics": (str(len(topics)),),
        "IsMultiTopic": (str(len(topics) > 1),),
        "AllSlots": tuple(sorted(state)),
        "AllValues": tuple(sorted(set(state.values()))),
        "NumAllInfo": (str(len(state)),),
    }


def _build_act_labels(acts: Mapping[str, Sequence[Sequence[str]]]) -> Labels:
    """Return the labels from the system's acts, or {} without acts."""
    if not acts:
        return {}
    pairs = [pair for pairs in acts.values() for pair in pairs]
    return {
        "ActionSelect": tuple(sorted(acts)),
        "EntitySlots": tuple(sorted({slot for slot, _ in pairs} - {NONE})),
        "EntityValues": tuple(sorted({value for _, value in pairs} - {NONE, "?"})),
    }


def _get_domain(slot: str) -> str:
    return slot.partition("-")[0]


def _get_slot_name(slot: str) -> str:
    """Return the name of a slot, without its domain and the prefix of bookings."""
    return slot.partition("-")[2].removeprefix("book ")


# --- parsing, with checks ---

FOLDER = "multiwoz20"
FILES = {"train": "train.json", "dev": "val.json", "test": "test.json"}
"""Official split → its file."""

DOMAINS = ("attraction", "hotel", "restaurant", "taxi", "train", "hospital", "police", "bus")
OTHER_ACT_PREFIXES = ("booking", "general")
"""Prefixes of acts that are not domains."""

EMPTY_VALUES = ("", "not mentioned", "none")
"""Values of slots that are not filled."""


@dataclass(frozen=True, slots=True)
class MultiwozDialogue:
    """A dialogue: alternating user and system turns, and one exchange per two turns."""

    name: str
    turns: tuple[str, ...]
    exchanges: tuple[Exchange, ...]


def find_files(folder: Path) -> dict[str, Path]:
    """Map official splits to their files, for files that exist.

    Raises:
        DataError: the validation or test set is missing.
    """
    path = folder / FOLDER
    files: dict[str, Path] = {}
    for split, name in FILES.items():
        for file in (path / f"{name}.zip", path / name):
            if file.is_file():
                files.setdefault(split, file)
        if split != "train" and split not in files:
            raise DataError(
                f"{path / name}.zip: The file is missing. Copy MultiWOZ 2.0's {name} or {name}.zip "
                f"into {path}, or change data.release."
            )
    return files


def read_dialogues(file: Path) -> Iterator[MultiwozDialogue]:
    """Yield the dialogues of a file.

    Raises:
        DataError: the file is damaged or a dialogue is not valid. The message names file, dialogue,
            turn and value.
    """
    packed = file.suffix == ".zip"
    content = (
        read_zip_member(file, file.name.removesuffix(".zip")) if packed else read_content(file)
    )
    value = parse_json(content, file)
    if not isinstance(value, dict):
        raise DataError(
            f"{file}: {describe_wrong_value(value, 'an object that maps names to dialogues')} "
            "Fetch the file again."
        )
    for name, dialogue in value.items():
        yield parse_dialogue(file, name, dialogue)


def parse_dialogue(file: Path, name: str, dialogue: Any) -> MultiwozDialogue:
    """Parse a dialogue from JSON. Raises DataError if it is invalid."""
    log = dialogue.get("log") if isinstance(dialogue, dict) else None
    if not isinstance(log, list) or not log:
        raise DataError(
            f"{file}, dialogue {name}: The dialogue has no log of turns. Fetch the file again."
        )
    turns, exchanges = [], []
    user: dict[str, Any] = {}
    for number, turn in enumerate(log):
        where = f"{file}, dialogue {name}, turn {number}"
        if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
            raise DataError(f"{where}: The turn has no text. Fix the turn.")
        if "metadata" not in turn:
            raise DataError(
                f"{where}: The turn has no metadata (belief state). Use the original release "
                "of MultiWOZ 2.0."
            )
        if not isinstance(turn["metadata"], dict):
            raise DataError(
                f"{where}: The metadata is {str(turn['metadata'])[:60]!r}, but it must be an "
                "object that maps domains to slots (empty in user turns). Use the original "
                "release of MultiWOZ 2.0."
            )
        turns.append(" ".join(turn["text"].split()))
        if _is_system_turn(turn) != bool(number % 2):
            side = ("user", "system")[_is_system_turn(turn)]
            raise DataError(
                f"{where}: The turn is a {side} turn (its metadata has {len(turn['metadata'])} "
                "domains), but user and system must alternate, beginning with the user. Fix the "
                "dialogue."
            )
        acts = _parse_acts(where, turn.get("dialog_act", {}))
        if number % 2:
            exchanges.append(
                Exchange(_parse_state(where, turn["metadata"]), _list_domains(user), acts)
            )
        user = acts
    if not exchanges:
        raise DataError(
            f"{file}, dialogue {name}: The dialogue consists of one user turn without a system "
            "reply. Remove the dialogue."
        )
    return MultiwozDialogue(name, tuple(turns[: 2 * len(exchanges)]), tuple(exchanges))


def _is_system_turn(turn: Mapping[str, Any]) -> bool:
    return bool(turn["metadata"])


def _parse_acts(where: str, acts: Any) -> dict[str, list[list[str]]]:
    """Return the acts of a turn, or {} if a text replaces the annotation."""
    if not isinstance(acts, dict):
        return {}
    for act, slots in acts.items():
        if act.partition("-")[0].lower() not in (*DOMAINS, *OTHER_ACT_PREFIXES):
            raise DataError(
                f"{where}: The domain of act {act!r} is unknown. Use one of the domains "
                f"{', '.join((*DOMAINS, *OTHER_ACT_PREFIXES))}."
            )
        right = isinstance(slots, list) and all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
            for pair in slots
        )
        if not right or not slots:
            raise DataError(
                f"{where}: The slots of act {act!r} are {str(slots)[:60]!r}, but they must be a "
                "list of [slot, value] pairs. Write [none, none] for an act without slots."
            )
    return acts


def _list_domains(acts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the domains of a user's acts, except general acts."""
    named = (act.partition("-")[0].lower() for act in acts)
    return tuple(dict.fromkeys(domain for domain in named if domain in DOMAINS))


def _parse_state(where: str, metadata: Any) -> dict[str, str]:
    """Map filled slots (``domain-slot``, for bookings ``domain-book slot``) to values."""
    state = {}
    for domain, parts in metadata.items():
        if domain not in DOMAINS:
            raise DataError(
                f"{where}: The domain {domain!r} is unknown. Use one of the domains "
                f"{', '.join(DOMAINS)}."
            )
        for part, prefix in (("semi", ""), ("book", "book ")):
            slots = parts.get(part, {}) if isinstance(parts, dict) else None
            if not isinstance(slots, dict):
                raise DataError(
                    f"{where}: The domain {domain} contains {str(parts)[:60]!r}, but it must "
                    "contain semi and book with slots and values. Use the original release of "
                    "MultiWOZ 2.0."
                )
            for slot, value in slots.items():
                if slot != "booked" and value not in EMPTY_VALUES:
                    state[f"{domain}-{prefix}{slot}"] = str(value)
    return state
