"""A model's chat template, which renders prompts as turns of a chat.

Before a template is used, a separate process renders a probe with it (``template_process``). Every
rendered prompt is then checked for the text of its messages. A template that expects another form
of messages drops their text without an error.
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
"""Fixed date for templates that ask for today's, so that prompts do not change from day to day.

It is the default date in Llama 3's templates."""
DATE_FUNCTION = "strftime_now"
"""Name of the function by which templates get the date in transformers."""
DATE_NOTE = (
    "its chat template asks for today's date, but prompts always have "
    f"{TEMPLATE_DATE:%d %B %Y}, so that they do not change"
)
PARTS_NOTE = "its chat template takes messages as lists of parts, so they are passed as lists"

FILE = "chat_template.jinja"
REMEDY = "Fix the template, or set chat: no for this prompted model to send plain text"
MAX_SECONDS = 120
"""Time limit in seconds (wall clock) for the process that probes a template."""

PROBE_TEXT = "Is this “Straße” <b>&amp; 12 % of {{ it }}?\n\nDialogue: " + " ".join(
    f"Word{number} it's," for number in range(400)
)
"""Text with everything that templates may change: both cases, punctuation, lines, length."""

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A chat template that renders prompts completely.

    Attributes:
        place: its file, which messages name.
        parts: whether it takes a message's content as a list of parts.
        notes: notes about it for the record.
    """

    tokenizer: Any
    template: str
    place: str
    parts: bool
    notes: tuple[str, ...]

    def render(self, prompt: Prompt) -> str:
        """Render the messages of a prompt with the template.

        Raises:
            ModelError: the template fails, or omits or changes a text of the prompt.
        """
        try:
            text: str = self.tokenizer.apply_chat_template(
                _build_messages(prompt, parts=self.parts),
                chat_template=self.template,
                tokenize=False,
                add_generation_prompt=True,
            )
        except Exception as error:  # The template's code may raise anything.
            raise _build_error(
                self.place, f"cannot render a prompt: {_describe_error(error)}"
            ) from error
        if (missing := find_missing_turn(text, prompt.turns)) is not None:
            raise _build_error(self.place, f"leaves out or changes a text of the prompt: {missing}")
        return text


def load_chat_template(tokenizer: Any, start: str) -> ChatTemplate:
    """Load a tokenizer's chat template, and render a test message with it.

    Args:
        start: folder or name of the checkpoint.

    Raises:
        ModelError: there is no default template, or it does not render a single-turn prompt.
    """
    file = Path(start, FILE if Path(start, FILE).is_file() else "tokenizer_config.json")
    place = str(file) if file.is_file() else start
    template = tokenizer.chat_template
    if isinstance(template, dict):
        if "default" not in template:
            raise _build_error(place, f"has no default, only {', '.join(sorted(template))}")
        template = template["default"]
    if not isinstance(template, str):
        raise _build_error(place, f"is of type {type(template).__name__}, not a text")
    special_tokens = json.dumps(tokenizer.special_tokens_map, default=str)
    parts, problem = find_message_form(fix_date(template), special_tokens)
    if problem is not None:
        raise _build_error(place, problem)
    asks = DATE_FUNCTION in template
    notes = (*([DATE_NOTE] if asks else []), *([PARTS_NOTE] if parts else []))
    return ChatTemplate(tokenizer, fix_date(template), place, parts, notes)


@cache
def find_message_form(template: str, special_tokens: str) -> tuple[bool, str | None]:
    """Find out whether a template needs messages as lists of parts, or describe its problem.

    Plain texts are preferred to lists of parts, and a form that renders several turns is preferred
    to one that renders a single turn.

    Args:
        special_tokens: special tokens of the tokenizer, as JSON.
    """
    one, several = Prompt((PROBE_TEXT,)), Prompt((PROBE_TEXT, "An answer.", f"Then: {PROBE_TEXT}"))
    prompts = [(parts, prompt) for parts in (False, True) for prompt in (one, several)]
    request = {
        "template": template,
        "special_tokens": json.loads(special_tokens),
        "chats": [_build_messages(prompt, parts=parts) for parts, prompt in prompts],
    }
    answers, problem = render_in_process(json.dumps(request))
    if problem is not None:
        return False, problem
    problems = [
        _find_rendering_problem(prompt, answer)
        for (_, prompt), answer in zip(prompts, answers, strict=True)
    ]
    (text, texts), (part, parts) = problems[:2], problems[2:]
    if text is not None and part is not None:
        return False, text
    return text is not None or (texts is not None and part is None and parts is None), None


def render_in_process(request: str) -> tuple[list[dict[str, str]], str | None]:
    """Render the chats of a request in a separate process.

    Returns:
        The rendered chats or their errors, and the template's problem if the process failed.
    """
    command = [sys.executable, "-m", "tasktransfer.evaluation.prompting.template_process"]
    try:
        done = subprocess.run(
            command,
            input=request,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=MAX_SECONDS,
            check=False,
            env={**os.environ, "USE_TORCH": "0", "PYTHONIOENCODING": "utf-8"},
        )
        answers: list[dict[str, str]] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return [], f"does not end within {SECONDS} seconds and {BYTES >> 20} MiB"
    return answers, None


def _find_rendering_problem(prompt: Prompt, answer: dict[str, str]) -> str | None:
    if "error" in answer:
        return f"cannot render a prompt: {answer['error'][:300]}"
    missing = find_missing_turn(answer["text"], prompt.turns)
    if missing is not None:
        return f"leaves out or changes a text of the prompt: {missing}"
    return None


def find_missing_turn(text: str, turns: Sequence[str]) -> str | None:
    """Find the beginning of the first turn that a rendered text lacks.

    Turns must appear completely and in order. White space is ignored. The result is None if no turn
    is missing.
    """
    whole, begin = " ".join(text.split()), 0
    for turn in turns:
        words = " ".join(turn.split())
        found = whole.find(words, begin)
        if found < 0:
            return repr(words if len(words) <= 60 else f"{words[:57]}...")
        begin = found + len(words)
    return None


def fix_date(template: str) -> str:
    """Fix the date that a template sees to ``TEMPLATE_DATE``, by a macro for ``strftime_now``."""
    return _DATE_MACRO + template if DATE_FUNCTION in template else template


def _build_date_macro() -> str:
    """Build the macro that replaces each date directive by the fixed date's text.

    Jinja removes the line end after the macro, so the template begins on its own line.
    """
    percent = "\uf8ff"  # This is a private-use character, which templates do not contain.
    texts = {"%%": percent}
    for directive in "aAbBcdDeFgGhHIjmMnprRStTuUVwWxXyYzZ":
        text = TEMPLATE_DATE.strftime(f"%{directive}")
        texts[f"%{directive}"] = text
        if text.isdigit():
            texts[f"%-{directive}"] = str(int(text))
    texts[percent] = "%"
    replaced = "".join(f"|replace({a!r}, {b!r})" for a, b in texts.items())
    return f"{{%- macro {DATE_FUNCTION}(format) -%}}{{{{ format{replaced} }}}}{{%- endmacro %}}\n"


_DATE_MACRO = _build_date_macro()


def _build_messages(prompt: Prompt, *, parts: bool) -> Messages:
    if not parts:
        return list(prompt.messages)
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        for message in prompt.messages
    ]


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


def _build_error(place: str, problem: str) -> ModelError:
    return ModelError(f"{place}: The chat template {problem}. {REMEDY}.")
