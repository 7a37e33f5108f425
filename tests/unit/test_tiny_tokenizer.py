"""The tiny models' tokenizers are the same in every process."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from tasktransfer.core.specs import FAMILIES, Family
from tasktransfer.training.tiny import create_tokenizer

WORDS = (
    ("dog", "cat", "bird", "horse", "whale"),
    ("sees", "wants", "finds", "loses"),
    ("red", "blue", "green"),
    ("house", "mouse", "cheese", "bicycle"),
)
TEXTS = [
    f"speaker{n % 2}: the {animal} {verb} the {colour} {thing}, or so we are told."
    for n, (animal, verb, colour, thing) in enumerate(itertools.product(*WORDS))
]

PROGRAM = """
import sys
from tasktransfer.training.tiny import create_tokenizer
texts = sys.stdin.read().split("\\n")
print(create_tokenizer(sys.argv[1], texts).backend_tokenizer.to_str())
"""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_another_process_makes_the_same_tokenizer(family: Family) -> None:
    """The library has hash tables whose seeds differ between processes."""
    command, text = [sys.executable, "-c", PROGRAM, family], "\n".join(TEXTS)
    made = {subprocess.check_output(command, input=text, text=True) for _ in range(3)}
    assert len(made) == 1


def test_the_pieces_of_words_are_no_special_tokens() -> None:
    tokenizer = create_tokenizer("encoder", TEXTS)
    assert set(tokenizer.all_special_tokens) == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    ids = tokenizer("the whale sees a mousecat")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True).startswith("the whale sees")
    assert tokenizer.unk_token_id not in tokenizer("mousecat")["input_ids"]
