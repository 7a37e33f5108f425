"""Reader of the replies of all methods to the same test contexts.

The texts are for people who read them on this machine. Commands print them and the report shows
some, but tables and packs never contain them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasktransfer.core.nodes import Evaluation
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import read_instances
from tasktransfer.data.prepared import require_prepared_instances
from tasktransfer.designs.empathetic.human import GOLD
from tasktransfer.designs.empathetic.sources.cards import ED, REPLY, TURN
from tasktransfer.errors import ConfigError, RecordError, suggest_name
from tasktransfer.results.rows import read_record_rows
from tasktransfer.results.study import Study
from tasktransfer.tasks.compose import get_gold_answers

PREFIXES = {"retrieval": "ret", "generation": "gen"}
"""Setting → beginning of a model's name, as in Figure 5 of the paper."""


@dataclass(frozen=True, slots=True)
class AnsweredContext:
    """A test context and its replies.

    Attributes:
        instance: instance ID.
        utterances: utterances of the context; the last one is the speaker's.
        replies: model → reply. ``Gold`` has the reply in the corpus.
    """

    instance: str
    utterances: tuple[str, ...]
    replies: dict[str, str]


def read_answered_contexts(study: Study, models: Collection[str] = ()) -> list[AnsweredContext]:
    """Return the test contexts to which all models reply, in their order.

    A method has the replies of the study's first seed. Retrieved replies come from the first pool.

    Args:
        study: a study with finished evaluations.
        models: names to use, such as ``ret-base`` or ``Gold``; empty for all.

    Raises:
        ConfigError: the study has no such model.
        DataError: the dialogues are not prepared yet.
        RecordError: an evaluation is missing or damaged.
    """
    evaluations = dict(_list_evaluations(study))
    known = [GOLD, *evaluations]
    for name in models:
        if name not in known:
            raise ConfigError(
                f"--models: The study has no model {name!r}.{suggest_name(name, known)} Choose "
                f"from {', '.join(known)}."
            )
    chosen = [name for name in known if not models or name in models]
    replies = {
        name: _read_replies(study, name, evaluations[name]) for name in chosen if name != GOLD
    }
    cache = require_prepared_instances(Path(study.get_instances_folder(ED)), study.config_file)
    return [
        AnsweredContext(
            instance.id,
            tuple(instance.context.split(TURN)),
            {
                name: get_gold_answers(instance)[0] if name == GOLD else replies[name][instance.id]
                for name in chosen
            },
        )
        for instance in read_instances(cache, REPLY.name, "test")
        if all(instance.id in answers for answers in replies.values())
    ]


def list_models_with_replies(study: Study) -> list[str]:
    """Return ``Gold`` and the models whose evaluation has a record."""
    evaluations = _list_evaluations(study)
    answered = [name for name, node in evaluations if Path(study.get_record_path(node)).exists()]
    return [GOLD, *answered]


def _list_evaluations(study: Study) -> Iterator[tuple[str, Evaluation]]:
    """Yield the name of each model and the evaluation that stores its replies."""
    seen: set[str] = set()
    for run in study.plan.runs:
        name = _format_model_name(run)
        nodes = [node for node in run.evaluations if node.measures == ("bleu",)]
        if nodes and name not in seen:
            seen.add(name)
            yield name, nodes[0]


def _format_model_name(run: Run) -> str:
    return f"{PREFIXES.get(run.about['setting'], run.about['setting'])}-{run.method}"


def _read_replies(study: Study, model: str, node: Evaluation) -> dict[str, str]:
    """Read the replies of an evaluation as a mapping from instance ID to reply."""
    record = Path(study.get_record_path(node))
    if not record.exists():
        raise RecordError(
            f"{record}: The replies of {model} are missing. Run the study with `tasktransfer run`, "
            "or select other models with --models."
        )
    rows = read_record_rows(record)
    predictions = rows["prediction"].to_pylist()
    return {
        name: texts[0]
        for name, texts in zip(rows["instance_id"].to_pylist(), predictions, strict=True)
    }


def sample_contexts(
    contexts: Sequence[AnsweredContext], count: int, seed: int | str
) -> list[AnsweredContext]:
    """Return sampled contexts in random order.

    Raises:
        ConfigError: there are fewer contexts.
    """
    if count > len(contexts):
        raise ConfigError(
            f"--instances {count}: There are only {len(contexts):,} contexts to which all models "
            "reply. Reduce the number."
        )
    return random.Random(seed).sample(contexts, count)


def name_speakers(context: AnsweredContext) -> list[tuple[str, str]]:
    """Return each utterance of a context with its speaker. The last one is the speaker's."""
    last = len(context.utterances) - 1
    names = ["Speaker" if (last - n) % 2 == 0 else "Listener" for n in range(last + 1)]
    return [*zip(names, context.utterances, strict=True)]


def format_context(context: AnsweredContext) -> str:
    """Return a context and its replies as lines of text."""
    lines = [*name_speakers(context), *context.replies.items()]
    width = max(len(name) for name, _ in lines)
    return "\n".join([context.instance, *(f"  {name:<{width}}  {text}" for name, text in lines)])
