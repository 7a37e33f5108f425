"""A model's chat template: how prompts become turns of a chat.

Before a template is used, a process of its own renders a probe with it (``template_process``).
Every prompt is then checked for the text that the template was given: a template that expects
another form of messages drops it without an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.template_process import BYTES, SECONDS
from tasktransfer.tasks.asking import Prompt

TEMPLATE_DATE = datetime(2024, 7, 26)
"""The date for templates that ask for today's: a prompt is the same on every day. Llama 3's
templates have it by themselves."""
DATE_FUNCTION = "strftime_now"
"""Transformers' name of the function by which templates ask for the date."""
DATE_NOTE = (
    "its chat template asks for today's date: prompts have "
    f"{TEMPLATE_DATE:%d %B %Y} on every day, so that they do not change"
)
PARTS_NOTE = "its chat template takes messages as lists of parts, and gets them so"

FILE = "chat_template.jinja"
REMEDY = "Mend the template, or set chat: no for this prompted model, which then gets plain text"
LONGEST_WAIT = 120
"""Seconds on the clock for the process that tries a template."""

PROBE = "Is this “Straße” <b>&amp; 12 % of {{ it }}?\n\nDialogue: " + " ".join(
    f"Word{number} it's," for number in range(400)
)
"""A text with what templates may change: letters of both cases, marks, lines, its length."""

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A chat template that renders prompts whole.

    ``place``: its file, for messages. ``parts``: whether it takes the content of a message as a
    list of parts. ``notes``: what a record says about it.
    """

    tokenizer: Any
    template: str
    place: str
    parts: bool
    notes: tuple[str, ...]

    def render(self, prompt: Prompt) -> str:
        """Return the text that the model reads.

        Raises:
            ModelError: the template fails, or leaves out or changes a text of the prompt.
        """
        try:
            text: str = self.tokenizer.apply_chat_template(
                _chat(prompt, parts=self.parts),
                chat_template=self.template,
                tokenize=False,
                add_generation_prompt=True,
            )
        except Exception as error:  # whatever the template's code raises
            raise _error(self.place, f"cannot render a prompt: {_say(error)}") from error
        if (missing := missing_turn(text, prompt.turns)) is not None:
            raise _error(self.place, f"leaves out or changes a text of the prompt: {missing}")
        return text


def open_template(tokenizer: Any, start: str) -> ChatTemplate:
    """Return the chat template of a tokenizer, tried on a probe.

    Args:
        start: folder or name of the checkpoint.

    Raises:
        ModelError: there is no default template, or it does not render a prompt of one turn.
    """
    file = Path(start, FILE if Path(start, FILE).is_file() else "tokenizer_config.json")
    place = str(file) if file.is_file() else start
    template = tokenizer.chat_template
    if isinstance(template, dict):
        if "default" not in template:
            raise _error(place, f"is one of {', '.join(sorted(template))}, and none is the default")
        template = template["default"]
    if not isinstance(template, str):
        raise _error(place, f"is no text but {type(template).__name__}")
    special_tokens = json.dumps(tokenizer.special_tokens_map, default=str)
    parts, problem = choose_form(pin_date(template), special_tokens)
    if problem is not None:
        raise _error(place, problem)
    asks = DATE_FUNCTION in template
    notes = (*([DATE_NOTE] if asks else []), *([PARTS_NOTE] if parts else []))
    return ChatTemplate(tokenizer, pin_date(template), place, parts, notes)


@cache
def choose_form(template: str, special_tokens: str) -> tuple[bool, str | None]:
    """Return whether a template takes lists of parts, and what is wrong with it if it renders
    neither form. Plain texts come first, and a form that renders several turns.

    Args:
        special_tokens: the tokenizer's, as JSON.
    """
    one, several = Prompt((PROBE,)), Prompt((PROBE, "An answer.", f"Then: {PROBE}"))
    prompts = [(parts, prompt) for parts in (False, True) for prompt in (one, several)]
    request = {
        "template": template,
        "special_tokens": json.loads(special_tokens),
        "chats": [_chat(prompt, parts=parts) for parts, prompt in prompts],
    }
    answers, problem = probe(json.dumps(request))
    if problem is not None:
        return False, problem
    problems = [
        _problem(prompt, answer) for (_, prompt), answer in zip(prompts, answers, strict=True)
    ]
    (text, texts), (part, parts) = problems[:2], problems[2:]
    if text is not None and part is not None:
        return False, text
    return text is not None or (texts is not None and part is None and parts is None), None


def probe(request: str) -> tuple[list[dict[str, str]], str | None]:
    """Render the chats of a request in a process of its own; return the answers, or what is wrong
    with the template."""
    command = [sys.executable, "-m", "tasktransfer.evaluation.prompting.template_process"]
    try:
        done = subprocess.run(
            command,
            input=request,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=LONGEST_WAIT,
            check=False,
            env={**os.environ, "USE_TORCH": "0", "PYTHONIOENCODING": "utf-8"},
        )
        answers: list[dict[str, str]] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return [], f"does not end within {SECONDS} seconds and {BYTES >> 20} MiB"
    return answers, None


def _problem(prompt: Prompt, answer: dict[str, str]) -> str | None:
    if "error" in answer:
        return f"cannot render a prompt: {answer['error'][:300]}"
    missing = missing_turn(answer["text"], prompt.turns)
    if missing is not None:
        return f"leaves out or changes a text of the prompt: {missing}"
    return None


def missing_turn(text: str, turns: Sequence[str]) -> str | None:
    """Return the beginning of the first turn that a rendered text does not hold whole and in
    order, None if it holds all. White space does not count."""
    whole, begin = " ".join(text.split()), 0
    for turn in turns:
        words = " ".join(turn.split())
        found = whole.find(words, begin)
        if found < 0:
            return repr(words if len(words) <= 60 else f"{words[:57]}...")
        begin = found + len(words)
    return None


def pin_date(template: str) -> str:
    """Return a template in which ``strftime_now`` formats ``TEMPLATE_DATE``, by a macro of that
    name before it."""
    return _DATE_MACRO + template if DATE_FUNCTION in template else template


def _date_macro() -> str:
    """Return the macro: a fixed date has one text for each directive. The line end behind it is
    removed with it, so that the template begins on a line of its own."""
    percent = "\uf8ff"  # for private use: no template has it
    texts = {"%%": percent}
    for directive in "aAbBcdDeFgGhHIjmMnprRStTuUVwWxXyYzZ":
        text = TEMPLATE_DATE.strftime(f"%{directive}")
        texts[f"%{directive}"] = text
        if text.isdigit():
            texts[f"%-{directive}"] = str(int(text))
    texts[percent] = "%"
    replaced = "".join(f"|replace({a!r}, {b!r})" for a, b in texts.items())
    return f"{{%- macro {DATE_FUNCTION}(format) -%}}{{{{ format{replaced} }}}}{{%- endmacro %}}\n"


_DATE_MACRO = _date_macro()


def _chat(prompt: Prompt, *, parts: bool) -> Messages:
    if not parts:
        return list(prompt.messages)
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        for message in prompt.messages
    ]


def _say(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _error(place: str, problem: str) -> ModelError:
    return ModelError(f"{place}: the chat template {problem}. {REMEDY}")
