"""Instances of a task on a dialogue, read from the fields of a declaration."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasktransfer.datasets.declared import cells
from tasktransfer.datasets.declared.dialogues import DeclaredDialogue, Turn, format_row_name
from tasktransfer.datasets.declared.row_fields import LIST_MARK, get_items, get_value
from tasktransfer.datasets.declared.spellings import Spellings, ValueForms, normalise_label
from tasktransfer.datasets.declared.task_section import TaskSection
from tasktransfer.errors import describe_wrong_value, format_value
from tasktransfer.files.fields import Location
from tasktransfer.tasks.card import Instance


@dataclass(frozen=True, slots=True)
class Item:
    """Source of one instance.

    Args:
        turn: the turn that the instance is about. None for the whole dialogue.
        number: number of the item in its dialogue, for the instance's name. -1 for a single item.
        values: values in which the item's fields are looked up.
        location: location for messages.
    """

    turn: Turn | None
    number: int
    values: Mapping[str, Any]
    location: Location


@dataclass(slots=True)
class TaskReader:
    """Reader of a task's instances.

    Args:
        name: name of the task.
        section: declaration of the task.
        skipped: number of skipped items without an answer, if missing answers are allowed.
        empty_lists: number of these items whose answer is an empty list.
        spellings: spelling → label that replaces it.
        forms: forms of the labels in the files.
        are_cells: whether a label was a list in the text of a cell.
        fields: input of an instance → path of its field.
        listed: path of the list whose items are the instances. Empty if the dialogue or its turns
            are the instances.
    """

    name: str
    section: TaskSection
    skipped: int = 0
    empty_lists: int = 0
    spellings: Spellings = field(default_factory=dict)
    forms: ValueForms = field(default_factory=ValueForms)
    are_cells: bool = False
    fields: dict[str, str] = field(init=False)
    listed: str = field(init=False)

    def __post_init__(self) -> None:
        paths = {"label": self.section.label, "question": self.section.question}
        paths |= {"options": self.section.options, **self.section.fields}
        paths |= {f"output.{trait}": path for trait, path in (self.section.outputs or {}).items()}
        self.fields = {name: path for name, path in paths.items() if path is not None}
        lists = {
            path.rpartition(LIST_MARK)[0] for path in self.fields.values() if LIST_MARK in path
        }
        self.listed = next(iter(lists), "")

    def read_instances(self, dialogue: DeclaredDialogue) -> Iterator[Instance]:
        """Yield a dialogue's instances of a task.

        Raises:
            DataError: a field is missing or has another type. The message names file, line and
                field.
        """
        for instance, _ in self.locate_instances(dialogue):
            yield instance

    def locate_instances(self, dialogue: DeclaredDialogue) -> Iterator[tuple[Instance, Location]]:
        """Yield a dialogue's instances of a task, with their locations.

        Raises:
            DataError: as in ``read_instances``.
        """
        starts = tuple(turn.start for turn in dialogue.turns)
        name = format_row_name(dialogue.location)
        for item in self._read_items(dialogue):
            instance = self._build_instance(dialogue, item, name, starts)
            if instance is None:
                self.skipped += 1
                self.empty_lists += self._has_empty_list(dialogue, item)
            else:
                yield instance, item.location

    def _read_items(self, dialogue: DeclaredDialogue) -> Iterator[Item]:
        row = Item(None, -1, dialogue.values, dialogue.location)
        about_turns = self.section.kind == "utterance_classification"
        if self.section.kind == "reply" and self.section.label is None:
            for number, turn in enumerate(dialogue.turns[1:], start=1):
                yield Item(turn, number, {}, turn.location)
        elif not self.listed and (dialogue.by_turn and about_turns):
            for number, turn in enumerate(dialogue.turn_by_place.values()):
                yield Item(turn, number, turn.values, turn.location)
        elif not self.listed:
            yield (
                Item(dialogue.turns[-1], -1, dialogue.values, row.location) if about_turns else row
            )
        elif self.listed == dialogue.turns_field:
            for number, turn in enumerate(dialogue.turn_by_place.values()):
                yield Item(turn, number, {self.listed + LIST_MARK: turn.values}, turn.location)
        else:
            yield from self._read_list_items(dialogue, about_turns)

    def _read_list_items(self, dialogue: DeclaredDialogue, about_turns: bool) -> Iterator[Item]:
        """Yield the items of a list that is not the list of turns, skipping turns without text."""
        if (
            get_value(dialogue.values, self.listed.partition(LIST_MARK)[0], dialogue.location)
            is None
        ):
            self._check_missing_allowed(self.listed, dialogue.location)
            return
        found = get_items(dialogue.values, self.listed, dialogue.location)
        if about_turns and len(found) != dialogue.size:
            at = dialogue.location.at(self.listed)
            raise at.error(
                f"the list has {len(found)} items, but the dialogue has {dialogue.size} turns",
                "give one item per turn",
            )
        turns = dialogue.turn_by_place
        for number, (values, location) in enumerate(found):
            if not about_turns or number in turns:
                turn = turns[number] if about_turns else None
                yield Item(turn, number, {self.listed + LIST_MARK: values}, location)

    def _has_empty_list(self, dialogue: DeclaredDialogue, item: Item) -> bool:
        """Return whether the answer of an item is an empty list."""
        return "label" in self.fields and (
            cells.list_items(self._read_value("label", dialogue, item)) == []
        )

    def _is_missing(self, value: Any) -> bool:
        """Return whether a value is a missing answer (null, NaN, blank, or a listed text)."""
        if isinstance(value, str):
            return not value.strip() or value.strip() in (self.section.missing_values or ())
        return value is None or (isinstance(value, float) and math.isnan(value))

    def _check_missing_allowed(self, what: str, location: Location, value: Any = None) -> None:
        """Raise DataError if an answer is missing but required.

        By default turns may have no answer, and dialogues must have one.
        """
        default = (
            "skip" if self.listed or self.section.kind == "utterance_classification" else "refuse"
        )
        if (self.section.missing or default) == "refuse":
            found = "" if value is None or value == "" else f" (found {format_value(value)})"
            raise location.error(
                f"the field {what} of task {self.name} is missing, null or empty{found}",
                "add the value, remove the row, or set missing: skip for the task",
            )

    def _read_value(self, name: str, dialogue: DeclaredDialogue, item: Item) -> Any:
        path = self.fields[name]
        if LIST_MARK in path:
            _, _, inner = path.rpartition(LIST_MARK)
            values = item.values[self.listed + LIST_MARK]
            inner = inner.lstrip(".")
            return get_value(values, inner, item.location) if inner else values
        if item.turn is not None and dialogue.by_turn and item.number >= 0:
            return get_value(item.turn.values, path, item.location)
        if dialogue.by_turn:
            return self._read_common_value(path, dialogue)
        return get_value(dialogue.values, path, dialogue.location)

    def _read_common_value(self, path: str, dialogue: DeclaredDialogue) -> Any:
        """Return the value that all rows of a dialogue agree on, ignoring empty cells."""
        agreed: Any = None
        rows = [*((turn.values, turn.location) for turn in dialogue.turns), *dialogue.empty]
        for values, location in rows:
            value = get_value(values, path, location)
            if self._is_missing(value):
                continue
            if agreed is not None and value != agreed:
                raise location.at(path).error(
                    f"the value is {format_value(value)}, but an earlier row of dialogue "
                    f"{dialogue.id!r} has the value {format_value(agreed)}",
                    "give each dialogue one answer, or use kind: utterance_classification",
                )
            agreed = value
        return agreed

    def _build_instance(
        self, dialogue: DeclaredDialogue, item: Item, name: str, turn_starts: tuple[int, ...]
    ) -> Instance | None:
        answer = self._read_answer(dialogue, item)
        if answer is None:
            return None
        target, starts, options = answer
        is_reply = self.section.kind == "reply" and self.section.label is None
        turn = item.turn
        end = len(dialogue.context) if turn is None else turn.start - 1 if is_reply else turn.end
        context = dialogue.context[:end]
        focus = len(context) if turn is None or is_reply else turn.start
        query = {
            key: self._read_text(key, dialogue, item)
            for key in self.fields
            if self._is_query_field(key)
        }
        number = f"#{item.number}" if item.number >= 0 else ""
        return Instance(
            id=f"{name}{number}",
            dialogue_id=dialogue.id,
            task=self.name,
            context=context,
            focus=focus,
            query=query,
            options=options,
            target=target,
            starts=starts,
            turns=turn_starts[: bisect_left(turn_starts, max(len(context), 1))],
        )

    def _is_query_field(self, name: str) -> bool:
        return name == "question" or name in self.section.fields

    def _read_text(self, name: str, dialogue: DeclaredDialogue, item: Item) -> str:
        value = self._read_value(name, dialogue, item)
        if not isinstance(value, str) or not value.strip():
            raise item.location.at(self.fields[name]).error(
                describe_wrong_value(value, "a string that is not empty")
            )
        return value.strip()

    def _read_answer(
        self, dialogue: DeclaredDialogue, item: Item
    ) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]] | None:
        """Read gold answers, start offsets and options, or return None for a missing answer."""
        if self.section.kind == "multi_output":
            answers = [
                self._read_label(f"output.{trait}", dialogue, item)
                for trait in self.section.outputs or ()
            ]
            return None if None in answers else (tuple(map(str, answers)), (), ())
        if "label" not in self.fields:
            assert item.turn is not None
            return (item.turn.text,), (), ()
        match self.section.kind:
            case "multi_label":
                labels = self._read_labels(dialogue, item)
                return None if labels is None else (labels, (), ())
            case "span":
                return self._read_span(dialogue, item)
            case "multiple_choice":
                return self._read_choice(dialogue, item)
        label = self._read_label("label", dialogue, item)
        if label is not None and self.section.kind == "rating":
            self._check_rating(label, item)
        return None if label is None else ((label,), (), ())

    def _read_label(self, name: str, dialogue: DeclaredDialogue, item: Item) -> str | None:
        value = self._read_value(name, dialogue, item)
        if (
            isinstance(value, list | tuple) and len(value) < 2
        ):  # Some annotation tools write labels like this.
            value = value[0] if value else None
        return self._convert_label(value, self.fields[name], item)

    def _convert_label(self, value: Any, path: str, item: Item) -> str | None:
        if self._is_missing(value):
            self._check_missing_allowed(path, item.location, value)
            return None
        label = _format_label(value)
        if label is None:
            raise item.location.at(path).error(
                describe_wrong_value(value, "a label"),
                "give one text or number, or set the kind of the task to multi_label",
            )
        if path == self.section.label:
            self.forms.add(label, value)
        return self.spellings.get(label, label)

    def _read_labels(self, dialogue: DeclaredDialogue, item: Item) -> tuple[str, ...] | None:
        """Read the labels in a list, or in a text in which ``;`` or ``|`` separates them.

        The list may be empty, or be in the text of a cell.
        """
        value, path = self._read_value("label", dialogue, item), self.fields["label"]
        if isinstance(value, str) and cells.is_like_structure(value):
            items = cells.list_items(value)
            if items is None:
                at = item.location.at(path)
                raise at.error(
                    f"the text {value:.40} begins like a list, but is not a valid list",
                    "write it as JSON",
                )
            value, self.are_cells = items, True
        elif isinstance(value, str):
            mark = "|" if "|" in value else ";"
            value = [part for part in value.split(mark) if part.strip()]
        if value is None:
            self._check_missing_allowed(path, item.location)
            return None
        if not isinstance(value, list | tuple):
            value = [value]
        labels = [self._convert_label(item_label, path, item) for item_label in value]
        if not labels:  # A model cannot answer with an empty list.
            self._check_missing_allowed(path, item.location)
        return tuple(dict.fromkeys(label for label in labels if label is not None)) or None

    def _read_span(
        self, dialogue: DeclaredDialogue, item: Item
    ) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]] | None:
        value, path = self._read_value("label", dialogue, item), self.fields["label"]
        texts = list(value) if isinstance(value, list | tuple) else [value]
        texts = [t.strip() for t in texts if isinstance(t, str) and not self._is_missing(t)]
        if not texts:
            if self.section.unanswerable is not None:
                return (self.section.unanswerable,), (-1,), ()
            self._check_missing_allowed(path, item.location)
            return None
        end = len(dialogue.context) if item.turn is None else item.turn.end
        starts = [_find_answer(dialogue.context[:end], text) for text in dict.fromkeys(texts)]
        for text, start in zip(dict.fromkeys(texts), starts, strict=True):
            if start < 0:
                raise item.location.at(path).error(
                    f"the answer {text!r:.60} does not occur in the dialogue",
                    "give an answer that occurs in the dialogue word for word, or use kind "
                    "free_text",
                )
        return tuple(dict.fromkeys(texts)), tuple(starts), ()

    def _read_choice(
        self, dialogue: DeclaredDialogue, item: Item
    ) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]] | None:
        options, path = self._read_value("options", dialogue, item), self.fields["options"]
        if isinstance(options, str) and (items := cells.list_items(options)) is not None:
            options = items
        elif isinstance(options, str):
            options = [part.strip() for part in options.split("|")]
        if not isinstance(options, list | tuple) or not all(isinstance(o, str) for o in options):
            raise item.location.at(path).error(describe_wrong_value(options, "a list of strings"))
        right = self._read_label("label", dialogue, item)
        if right is None:
            return None
        numbers = [str(number) for number in range(len(options))]
        if normalise_label(right) in numbers:  # Tables with empty cells contain 1.0 instead of 1.
            right = normalise_label(right)
        if right not in numbers and list(options).count(right) == 1:
            right = numbers[list(options).index(right)]
        if right not in numbers:
            raise item.location.at(self.fields["label"]).error(
                f"the answer {right!r:.40} is neither one of the options nor a number from 0 to "
                f"{len(options) - 1}",
                "give the option's text or its number",
            )
        return (right,), (), tuple(options)

    def _check_rating(self, label: str, item: Item) -> None:
        low, high = self.section.scale or (0.0, 0.0)
        try:
            is_on = low <= float(label) <= high
        except ValueError:
            is_on = False
        if not is_on:
            raise item.location.at(self.fields["label"]).error(
                describe_wrong_value(label, f"a number from {low:g} to {high:g}"),
                "correct the rating, or change the task's scale",
            )


def _format_label(value: Any) -> str | None:
    """Convert a value to a label, or return None if it cannot be a label.

    Numbers and booleans become texts, and texts lose their outer spaces.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if math.isinf(value) else f"{value:.12g}"
    if isinstance(value, int):
        return str(value)
    return value.strip() if isinstance(value, str) else None


def _find_answer(context: str, text: str) -> int:
    """Find the offset of a text in a context, if necessary ignoring case, or return -1."""
    exact = context.find(text)
    if exact >= 0:
        return exact
    lowered = context.lower()
    return lowered.find(text.lower()) if len(lowered) == len(context) else -1
