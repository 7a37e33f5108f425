"""The plan: a training a model, corpus and seed, and one fit a snapshot for all its probes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasktransfer.config import ALL
from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Round, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.core.steps import Step
from tasktransfer.datasets import recipe_of
from tasktransfer.designs.probes.config import ProbesConfig
from tasktransfer.designs.probes.facts import RECIPE, Probe, reply_of
from tasktransfer.results.revisions import Revisions

KIND = "next_utterance"
AS_IT_IS, WORDS = "as it is", "words"
"""Methods of runs beside the snapshots: a checkpoint that is probed, and counts of words."""
PAPERS_EPOCHS = 25


def next_utterance(corpus: str, measure: str, rounds: tuple[int, ...]) -> list[Step]:
    """One training; every epoch that is probed is kept, the untrained model too."""
    reply = reply_of(corpus)
    return [Step((reply,), Selection((reply,), measure, keep="every", rounds=rounds))]


def plan(config: ProbesConfig, revisions: Revisions) -> Plan:
    """Every run of the study: a probe on a snapshot. What is probed of one snapshot is one fit."""
    builder = PlanBuilder(lambda step, starts: (KIND, step.train_tasks[0]), recipe_of)
    training = Training(**config.training.resolved())
    rounds = tuple(sorted({at for _, at in _snapshots(config) if isinstance(at, int)}))
    for corpus in config.corpora:
        read = Data(corpus, revisions.data[corpus])
        labels = Data(corpus, read.revision, _changed({"word_in": config.probes.word_in}), RECIPE)
        probes = config.probes_of(corpus)
        if not probes:
            continue
        if config.probes.words:
            _add(builder, probes, _fit("probes_of_words", labels, probes, config), WORDS, WORDS, 0)
        for model in config.models:
            spec = revisions.models[model.name]
            if model.recipe is None:
                fit = _fit("probes", labels, probes, config, read_by=spec)
                _add(builder, probes, fit, AS_IT_IS, spec.name, 0)
                continue
            for seed in config.seeds:
                steps = next_utterance(corpus, config.probes.measure, rounds)
                (stage,) = builder.stages(steps, read, spec, training, seed).values()
                for name, at in _snapshots(config):
                    fit = _fit("probes", labels, probes, config, on=Start(stage, at))
                    said = _said(stage, at, read, config)
                    _add(builder, probes, fit, name, spec.name, seed, said)
    return builder.plan()


def stage_of(run: Run) -> Stage | None:
    """The training whose snapshot a run probes; None: there is none."""
    assert isinstance(run.outcome, Fit)
    return run.outcome.on.stage if run.outcome.on else None


def _snapshots(config: ProbesConfig) -> Iterator[tuple[str, Round]]:
    """Names with the rounds that they stand for."""
    epochs, chosen = config.training.epochs, config.probes.snapshots
    for each in range(epochs + 1) if chosen == ALL else chosen:
        if each == "best":
            yield "best", "best"
            continue
        number = int({"untrained": 0, "last": epochs}.get(str(each), each))
        yield {0: "untrained", epochs: "last"}.get(number, f"epoch {number}"), number


def _fit(
    learner: str,
    labels: Data,
    probes: tuple[Probe, ...],
    config: ProbesConfig,
    on: Start | None = None,
    read_by: ModelSpec | None = None,
) -> Fit:
    how, section = {"representation": "mean"}, config.probes
    if on is not None:
        how = {"representation": section.representation}
    settings = {
        "C": section.C,
        "max_iter": section.max_iter,
        "sets": [probe.task for probe in probes if probe.has_sets],
        **(how if learner == "probes" else {}),
        **({"model": read_by.identity} if read_by else {}),
        **_changed(
            {
                "release_compat": section.release_compat,
                "mlp": section.mlp,
                "limit_train": section.limit_train,
            }
        ),
    }
    seed = on.stage.seed if on and on.stage else 0
    return Fit(learner, labels, tuple(probe.task for probe in probes), seed, settings, on)


def _add(
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
        builder.add(Run(method, model, seed, about, fit, evaluations))


def _said(stage: Stage, at: Round, read: Data, config: ProbesConfig) -> tuple[Evaluation, ...]:
    """What a snapshot says on the dev split, where word vectors are to judge it."""
    if config.probes.word_vectors is None:
        return ()
    (task,), limit = stage.train_tasks, config.training.limit_dev
    settings = {} if limit is None else {"limit": limit}
    of = Outcome((Start(stage, at),))
    return (Evaluation(of, read, task, ("bleu2",), "dev", settings),)


def _changed(settings: dict[str, Any]) -> dict[str, Any]:
    """What is not at its default, which stays out of identities."""
    return {
        name: value for name, value in settings.items() if value not in (None, False, "context")
    }


def stand_ins(config: ProbesConfig) -> dict[str, str]:
    """What stands in for an input of the paper, by its name there."""
    told = {}
    if not config.data.generated:
        told["a training set that is not there"] = "the other sets' dialogues, split anew"
        told["the authors' labels"] = "labels by our definitions"
        if config.training.epochs < PAPERS_EPOCHS:
            told[f"{PAPERS_EPOCHS} epochs"] = f"{config.training.epochs}"
    if config.probes.word_vectors is not None:
        told["BERT's word vectors"] = Path(config.probes.word_vectors).name
    return told
