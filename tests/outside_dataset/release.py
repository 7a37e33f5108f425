"""Makes a release of Errands: short dialogues in which the thing bought tells the shop."""

from __future__ import annotations

import json
import random
from pathlib import Path

GOODS = {
    "bakery": ("bread", "cake", "pie", "roll"),
    "chemist": ("soap", "tape", "cream", "pills"),
    "market": ("apples", "carrots", "cheese", "fish"),
}
FRAMES = ("I would like the {thing} please.", "Do you have {thing} today?", "Some {thing} for me.")
SIZES = {"train": 48, "dev": 12, "test": 18}


def write_release(folder: Path) -> Path:
    """Write ``Errands`` under ``folder`` and return it."""
    release = folder / "Errands"
    release.mkdir(parents=True)
    chance = random.Random(0)
    for split, size in SIZES.items():
        turns, answers = [], []
        for number in range(size):
            name, shop = f"{split}-{number}", list(GOODS)[number % len(GOODS)]
            thing = chance.choice(GOODS[shop])
            said = chance.choice(FRAMES).format(thing=thing)
            turns.append({"id": name, "turns": [["clerk", "Good morning."], ["customer", said]]})
            both = {"dialogue": name, "question": "What does the customer buy?"}
            answers += [
                {"id": f"{name}-s", "task": "shop_classification", "answer": shop, **both},
                {"id": f"{name}-p", "task": "purchase_extraction", "answer": thing, **both},
            ]
        for kind, rows in (("turns", turns), ("answers", answers)):
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            (release / f"{split}.{kind}.jsonl").write_text(lines, encoding="utf-8")
    return release
