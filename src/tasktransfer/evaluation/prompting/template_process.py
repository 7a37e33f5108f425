"""A process that renders chats by a template, within limits of time and memory.

A chat template is a program that came with a model: it may fail, never end or fill the memory.
``chat_template.probe`` starts it and speaks JSON with it.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from typing import Any

from transformers import PreTrainedTokenizerBase

SECONDS = 6
"""Of processor time, the start of Python among them."""
BYTES = 400 << 20
MOST_CHARACTERS = 200_000
"""Of a text that is rendered of a probe of some thousands."""
TIMES = 4
"""Renderings of a chat: a template may draw by chance, or count."""


def render_chats(template: str, special_tokens: dict[str, Any], chats: list[Any]) -> list[Any]:
    """Return a mapping for each chat: ``text``, or ``error`` if it cannot be rendered."""
    tokenizer: Any = PreTrainedTokenizerBase()  # type: ignore[no-untyped-call]

    def render(chat: Any) -> dict[str, str]:
        try:
            texts: set[str] = {
                tokenizer.apply_chat_template(
                    chat,
                    chat_template=template,
                    tokenize=False,
                    add_generation_prompt=True,
                    **special_tokens,
                )
                for _ in range(TIMES)
            }
        except Exception as error:  # whatever the template's code raises
            return {"error": f"{type(error).__name__}: {error}"}
        if len(texts) > 1:
            return {"error": "it gives another text each time"}
        (text,) = texts
        if len(text) > MOST_CHARACTERS:
            return {"error": f"it gives {len(text):,} characters"}
        return {"text": text}

    return [render(chat) for chat in chats]


def main() -> None:
    """Read a request from standard input, and write the answer to standard output."""
    for limit, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES)):
        with suppress(OSError, ValueError):  # not every system has it
            resource.setrlimit(limit, (most, most))
    json.dump(render_chats(**json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
