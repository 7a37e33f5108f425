"""Pairs of context and response, as instances and as lines of a user's file."""

from __future__ import annotations

from collections.abc import Sequence

from tasktransfer.designs.panel.sources.texts import join_utterances
from tasktransfer.files.fields import Location, Table, get_text, get_texts
from tasktransfer.tasks.card import Instance

FITS, FITS_NOT = "1", "0"


def make_instance(
    task: str,
    name: str,
    group: str,
    context: Sequence[str],
    response: str,
    target: str,
    **facts: str,
) -> Instance:
    """Return an instance with a context and a response.

    ``facts`` holds facts that no template uses, so no model reads them.
    """
    text, turns = join_utterances(context)
    query = {"response": response, **{key: value for key, value in facts.items() if value}}
    return Instance(name, group, task, text, len(text), query, (), (target,), (), turns)


def read_pair(row: Table, location: Location) -> tuple[tuple[str, ...], str]:
    """Read the context and the response from a line of a user's file.

    Raises:
        DataError: either is missing, empty, or not text.
    """
    context = tuple(text.strip() for text in get_texts(row, "context", location))
    response = get_text(row, "response", location).strip()
    if not context or not all(context):
        problem = "the context contains an empty utterance" if context else "the context is empty"
        raise location.at("context").error(problem, "write its utterances as a list of texts")
    if not response:
        raise location.at("response").error(
            "the response is empty", "write the response, or remove the line"
        )
    return context, response
