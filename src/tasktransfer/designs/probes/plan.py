"""Plan of the study: one training per model, corpus and seed, and one fit per snapshot.

A fit contains all probes of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tasktransfer.config import ALL
from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Round, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.datasets import build_data_node, get_recipe_version
from tasktransfer.designs.probes.config import ProbedModel, ProbesConfig
from tasktransfer.designs.probes.facts import RECIPE, WORD_PROBE, Probe, format_reply_task_name
from tasktransfer.results.revisions import Revisions

KIND = "next_utterance"
UNTRAINED, BEST = "untrained", "best"
"""Names of snapshots: round 0, and the round that the selecting measure chose."""
AS_IT_IS, WORDS = "as it is", "words"
"""Methods of runs without snapshots: a checkpoint that is probed as released, and word counts."""
LAYER = "layer"
"""Methods of runs on a checkpoint's layers: ``layer <number>``."""
MLP_VERSION = 2
"""Version 2 uses classes if a turn has one label, and stops by the loss on held-out dialogues."""


def make_training_step(corpus: str, measure: str, rounds: tuple[int, ...]) -> list[Step]:
    """Return the step of a training that keeps all probed epochs and the untrained model."""
    reply = format_reply_task_name(corpus)
    return [Step((reply,), Selection((reply,), measure, keep="every", rounds=rounds))]


def plan_study(config: ProbesConfig, revisions: Revisions) -> Plan:
    """Plan all runs of the study. A run is one probe on one snapshot."""
    builder = PlanBuilder(lambda step, starts: (KIND, step.train_tasks[0]), get_recipe_version)
    rounds = tuple(sorted({at for _, at in _list_snapshots(config) if isinstance(at, int)}))
    for corpus in config.corpora:
        read = build_data_node(corpus, revisions.data[corpus])
        probes = config.select_probes(corpus)
        if not probes:
            continue
        labels = replace(read, settings=_build_label_settings(config, probes), recipe=RECIPE)
        if config.probes.bag_of_words:
            for name, reads in plan_word_counts(config, revisions).items():
                fit = _build_fit("probes_of_words", labels, probes, config, {"reads": reads})
                _add_runs(builder, probes, fit, WORDS, name, 0)
        for model in config.models:
            spec = revisions.models[model.name]
            if model.architecture is None:
                for name, settings in _list_representations(model, spec):
                    fit = _build_fit("probes", labels, probes, config, settings)
                    _add_runs(builder, probes, fit, name, spec.name, 0)
                continue
            training = _build_training(config, model)
            for seed in config.seeds:
                steps = make_training_step(corpus, config.probes.measure, rounds)
                (stage,) = builder.build_stages(steps, read, spec, training, seed).values()
                for name, at in _list_snapshots(config):
                    settings = {"representation": config.probes.representation}
                    fit = _build_fit("probes", labels, probes, config, settings, Start(stage, at))
                    replies = _plan_reply_evaluation(stage, at, read, config)
                    _add_runs(builder, probes, fit, name, spec.name, seed, replies)
    return builder.build_plan()


def _list_representations(
    model: ProbedModel, spec: ModelSpec
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the settings of each representation of a checkpoint that is probed."""
    settings = {"representation": model.pooling, "model": spec.identity}
    if not model.probed_layers:
        yield AS_IT_IS, settings
    for layer in model.probed_layers:
        yield f"{LAYER} {layer}", {**settings, "layer": layer}


def get_layer(snapshot: str) -> int | None:
    """Return the number of the layer that a snapshot stands for, or None for other snapshots."""
    name, _, number = snapshot.partition(" ")
    return int(number) if name == LAYER and number.isdigit() else None


def _build_training(config: ProbesConfig, model: ProbedModel) -> Training:
    """Return the hyperparameters of a model, without those that its architecture ignores."""
    training = Training(**config.training.resolve())
    assert model.architecture is not None
    return training if model.architecture.built.has_dropout else replace(training, dropout=None)


def _build_label_settings(config: ProbesConfig, probes: tuple[Probe, ...]) -> dict[str, Any]:
    """Return the settings of the recipe that derives probe labels.

    ``version`` 2 means that WordCont's words come from the training split.
    """
    of_target = config.probes.wordcont_text == "target"
    is_needed = of_target and any(probe.name == WORD_PROBE for probe in probes)
    return {"word_in": "target", "version": 2} if is_needed else {}


def plan_word_counts(config: ProbesConfig, revisions: Revisions) -> dict[str, dict[str, Any]]:
    """Map the name of each word-count representation to the part of a context that it counts.

    The part is what a model reads: a number of last words, or the text that its tokenizer keeps.
    """
    first_models: dict[str, str] = {}
    for model, name in map_word_count_names(config).items():
        first_models.setdefault(name, model)
    return {
        name: _build_reading_settings(config, revisions, model)
        for name, model in first_models.items()
    }


def _build_reading_settings(
    config: ProbesConfig, revisions: Revisions, model: str
) -> dict[str, Any]:
    section = next(configured for configured in config.models if configured.name == model)
    if section.architecture is not None:
        return {"max_length": section.max_length}
    return {"model": revisions.models[model].identity}


def map_word_count_names(config: ProbesConfig) -> dict[str, str]:
    """Map each model to the name of the word counts for the words that the model reads.

    The name is ``words`` if all models read the same part of a context. Otherwise, the name also
    contains the first model that reads the same part.
    """
    first: dict[Any, str] = {}
    parts = {
        model.name: model.max_length if model.architecture else model.name
        for model in config.models
    }
    for model, part in parts.items():
        first.setdefault(part, model)
    if len(first) == 1:
        return dict.fromkeys(parts, WORDS)
    return {model: f"{WORDS} as {first[part]}" for model, part in parts.items()}


def get_stage(run: Run) -> Stage | None:
    """Return the training whose snapshot a run probes, or None if nothing is trained."""
    assert isinstance(run.outcome, Fit)
    return run.outcome.on.stage if run.outcome.on else None


def _list_snapshots(config: ProbesConfig) -> Iterator[tuple[str, Round]]:
    """Yield the name and the epoch of each configured snapshot."""
    epochs, chosen = config.training.epochs, config.probes.snapshots
    for each in range(epochs + 1) if chosen == ALL else chosen:
        if each == BEST:
            yield BEST, "best"
            continue
        number = int({UNTRAINED: 0, "last": epochs}.get(str(each), each))
        yield {0: UNTRAINED, epochs: "last"}.get(number, f"epoch {number}"), number


def _build_fit(
    learner: str,
    labels: Data,
    probes: tuple[Probe, ...],
    config: ProbesConfig,
    more_settings: dict[str, Any],
    on: Start | None = None,
) -> Fit:
    section = config.probes
    settings = {
        "C": section.C,
        "max_iter": section.max_iter,
        "sets": [probe.task for probe in probes if probe.has_label_sets],
        **more_settings,
        **_drop_defaults(
            {
                "release_compat": section.release_compat,
                "mlp": MLP_VERSION if section.mlp else None,
                "limit_train": section.limit_train,
            }
        ),
    }
    seed = on.stage.seed if on and on.stage else 0
    return Fit(learner, labels, tuple(probe.task for probe in probes), seed, settings, on)


def _add_runs(
    builder: PlanBuilder,
    probes: tuple[Probe, ...],
    fit: Fit,
    method: str,
    model: str,
    seed: int,
    evaluations: tuple[Evaluation, ...] = (),
) -> None:
    for probe in probes:
        about = {"corpus": probe.corpus, "probe": probe.name}
        builder.add_run(Run(method, model, seed, about, fit, evaluations))


def _plan_reply_evaluation(
    stage: Stage, at: Round, read: Data, config: ProbesConfig
) -> tuple[Evaluation, ...]:
    """Return the evaluation of a snapshot's dev replies, if word vectors are configured."""
    if config.probes.word_vectors is None:
        return ()
    (task,), limit = stage.train_tasks, config.training.limit_dev
    settings = {} if limit is None else {"limit": limit}
    of = Outcome((Start(stage, at),))
    return (Evaluation(of, read, task, ("bleu2",), "dev", settings),)


def _drop_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without values that equal their defaults, as identities require."""
    return {name: value for name, value in settings.items() if value not in (None, False)}
