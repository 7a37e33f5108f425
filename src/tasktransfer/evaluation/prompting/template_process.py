"""A process that renders chats with a template, within limits of time and memory.

A chat template is a program from a model's checkpoint. It may fail, not end, or fill the memory.
``chat_template.render_in_process`` starts the process and exchanges JSON with it.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from typing import Any

from transformers import PreTrainedTokenizerBase

SECONDS = 6
"""Limit of processor time in seconds, including the start of Python."""
BYTES = 400 << 20
MAX_CHARACTERS = 200_000
"""Maximum length of a rendered probe, which itself has some thousand characters."""
REPETITIONS = 4
"""Number of times that a chat is rendered, because a template may be random or count its calls."""


def render_chats(template: str, special_tokens: dict[str, Any], chats: list[Any]) -> list[Any]:
    """Render each chat to a dictionary with ``text``, or with ``error`` if it fails."""
    tokenizer: Any = PreTrainedTokenizerBase()  # type: ignore[no-untyped-call]

    def render_chat(chat: Any) -> dict[str, str]:
        try:
            texts: set[str] = {
                tokenizer.apply_chat_template(
                    chat,
                    chat_template=template,
                    tokenize=False,
                    add_generation_prompt=True,
                    **special_tokens,
                )
                for _ in range(REPETITIONS)
            }
        except Exception as error:  # The template's code may raise anything.
            return {"error": f"{type(error).__name__}: {error}"}
        if len(texts) > 1:
            return {"error": "its output differs each time"}
        (text,) = texts
        if len(text) > MAX_CHARACTERS:
            return {"error": f"its output has {len(text):,} characters"}
        return {"text": text}

    return [render_chat(chat) for chat in chats]


def main() -> None:
    """Read a request from standard input, and write the answer to standard output."""
    for limit, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, BYTES)):
        with suppress(OSError, ValueError):  # Some systems do not have these limits.
            resource.setrlimit(limit, (most, most))
    json.dump(render_chats(**json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
