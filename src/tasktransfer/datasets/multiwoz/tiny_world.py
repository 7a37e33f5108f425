"""Generated dialogues in MultiWOZ's format: three domains, belief states and acts.

The context contains the current topic and all slots. It does not contain ``Coin``, which is
computed from the dialogue's name. ``python -m tasktransfer.datasets.multiwoz.tiny_world FOLDER``
writes the dialogues, and does nothing if the folder has them with the same seed and size.
"""

from __future__ import annotations

import argparse
import json
import random
import zipfile
from pathlib import Path
from typing import Any

from tasktransfer.datasets.multiwoz.dialogues import FILES, FOLDER
from tasktransfer.files import Maker, replace_folder

VERSION = 1
MAKER = Maker("tiny world of task-oriented dialogues", "synthetic.json", "version")

DOMAINS: dict[str, dict[str, tuple[str, ...]]] = {
    "restaurant": {"food": ("thai", "greek", "indian"), "area": ("north", "south", "centre")},
    "hotel": {"stars": ("two", "three", "four"), "area": ("north", "south", "centre")},
    "train": {"day": ("monday", "friday", "sunday"), "destination": ("ely", "london", "norwich")},
}
_ASKS = {
    "restaurant": "i want a place to eat",
    "hotel": "i need a room to sleep",
    "train": "i have to catch a train",
}
_GIVES = {
    "food": "with {} food please",
    "area": "it should be in the {}",
    "stars": "one with {} stars",
    "day": "i travel on {}",
    "destination": "i go to {}",
}
_OFFERS = {
    "restaurant": "there is a nice table at the kitchen for you",
    "hotel": "the guest house has a room for you",
    "train": "a train leaves soon and has seats for you",
}


def generate_release(folder: Path, *, seed: int = 0, dialogues: int = 160) -> None:
    """Write a generated release into the folder ``multiwoz20`` under ``folder``.

    One half of the dialogues is the validation set, and the other half is the test set. The folder
    appears only when it is complete.
    """
    path = folder / FOLDER
    manifest = {"version": VERSION, "synthetic": True, "seed": seed, "dialogues": dialogues}
    if MAKER.read_object(path) == manifest:
        return
    chance = random.Random(seed)
    named = {f"TINY{n:04d}.json": _build_dialogue(chance) for n in range(dialogues)}
    names = sorted(named)
    halves = {"dev": names[::2], "test": names[1::2]}
    with replace_folder(path, MAKER) as building:
        for split, half in halves.items():
            content = json.dumps({name: named[name] for name in half})
            with zipfile.ZipFile(
                building / f"{FILES[split]}.zip", "w", zipfile.ZIP_DEFLATED
            ) as archive:
                archive.writestr(zipfile.ZipInfo(FILES[split]), content)
        (building / MAKER.file).write_text(json.dumps(manifest) + "\n", encoding="utf-8")


def _build_dialogue(chance: random.Random) -> dict[str, Any]:
    """Generate a dialogue about one or two domains, with one slot per user turn."""
    log: list[dict[str, Any]] = []
    state: dict[str, dict[str, str]] = {domain: {} for domain in DOMAINS}
    for domain in chance.sample(sorted(DOMAINS), chance.choice((1, 2, 2))):
        slots = chance.sample(sorted(DOMAINS[domain]), 2)
        for number, slot in enumerate(slots):
            value = chance.choice(DOMAINS[domain][slot])
            state[domain][slot] = value
            words = _GIVES[slot].format(value)
            text = f"{_ASKS[domain]} {words}" if number == 0 else words
            log.append(_build_turn(text, {}, {f"{domain.title()}-Inform": [[slot, value]]}))
            if number + 1 < len(slots):
                asked = slots[number + 1]
                acts = {f"{domain.title()}-Request": [[asked, "?"]]}
                log.append(
                    _build_turn(f"which {asked} would you like", _build_metadata(state), acts)
                )
            else:
                acts = {f"{domain.title()}-Inform": [[slot, value]]}
                reply = f"{_OFFERS[domain]} , {value}"
                log.append(_build_turn(reply, _build_metadata(state), acts))
    log.append(_build_turn("thank you , good bye", {}, {"general-bye": [["none", "none"]]}))
    log.append(
        _build_turn("have a good day", _build_metadata(state), {"general-bye": [["none", "none"]]})
    )
    return {"goal": {}, "log": log}


def _build_turn(text: str, metadata: dict[str, Any], acts: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "metadata": metadata, "dialog_act": acts}


def _build_metadata(state: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {
        domain: {
            "book": {"booked": []},
            "semi": {slot: state[domain].get(slot, "") for slot in slots},
        }
        for domain, slots in DOMAINS.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dialogues", type=int, default=160)
    chosen = parser.parse_args()
    generate_release(chosen.folder, seed=chosen.seed, dialogues=chosen.dialogues)
