"""Functions that plan a panel study: the trainings of each method, and their evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from tasktransfer.core.nodes import Data, Evaluation, Merge, Outcome, Stage, Start
from tasktransfer.core.plan import Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training
from tasktransfer.datasets import get_recipe_version, get_task
from tasktransfer.designs.panel.config import PanelConfig
from tasktransfer.designs.panel.inputs import CHOICES, FEW, LEAKS, Inputs, make_selection
from tasktransfer.designs.panel.names import (
    BROUGHT,
    EMBEDDINGS,
    EXCHANGED,
    PROMPTED,
    SELECTION_ADAPTER,
    SELECTION_COSINE,
    SELECTION_DIRECT,
)
from tasktransfer.designs.panel.sources import cards
from tasktransfer.designs.panel.training_sections import StageConfig
from tasktransfer.results.revisions import Revisions
from tasktransfer.tasks.asking import compute_wording_digest, get_wordings

KINDS = ("labeller", "joint", "expert", "whole", "single", "twin", "few", "selection")
UNTRAINED, LEAKY = "untrained", "leaky"
COSINES = {"cosine-last": "last", "cosine-whole": "whole", "cosine-max": "most"}
"""Untrained controls → part of the context that is compared with the response."""
MERGED: dict[str, Merge] = {"panel-mean": "mean", "panel-max": "max", "panel-min": "min"}
ONE_MODEL = ("single", "twin")
"""Methods of one model that is trained on all pairs."""
FEW_METHODS = ("panel-mean", "single")
"""Methods that few-shot transfer starts from (Tables V and VI)."""


def resolve_pair_training(config: PanelConfig, section: StageConfig, domains: int = 1) -> Training:
    """Return a section's hyperparameters, with limits capped at the numbers of pairs.

    The recipe keeps these numbers of pairs per domain, so a forecast can use the limits as sizes.
    """
    settings, pairs = config.resolve_hyperparameters(section), config.pairs
    return replace(
        settings,
        limit_train=min(pairs.train * domains, settings.limit_train or pairs.train * domains),
        limit_dev=min(pairs.dev * domains, settings.limit_dev or pairs.dev * domains),
    )


def make_joint_steps(domains: tuple[str, ...], config: PanelConfig) -> list[Step]:
    """Return the steps of PoE: a joint step, and one expert per domain that starts from it.

    In the joint step all classifiers, like all adapters, have the same initial weights. Otherwise
    merged classifiers would mean little (section VII-F).
    """
    first, *others = (f"head.{domain}" for domain in domains)
    alike = Start(None, parts=(first,) * len(others), into=tuple(others))
    joint = Step(
        domains,
        make_selection(domains, config.joint),
        start=alike if others else None,
        sampler=config.joint.sampler,
        test_on=(),
        training=resolve_pair_training(config, config.joint),
    )
    experts = [
        Step(
            (domain,),
            make_selection((domain,), config.experts),
            start=joint,
            trains=(f"adapter.{domain}", f"head.{domain}"),
            test_on=(),
            training=resolve_pair_training(config, config.experts),
        )
        for domain in domains
    ]
    return [joint, *experts]


def make_whole_step(
    task: str, config: PanelConfig, domains: int = 1, section: StageConfig | None = None
) -> Step:
    """Return the step that trains one model without adapters, for one domain (CoE) or all domains.

    Methods with one model for all domains are Single-T and twin.
    """
    section = section or config.joint
    return Step(
        (task,),
        make_selection((task,), section),
        start=None,
        test_on=(),
        training=resolve_pair_training(config, section, domains),
    )


def plan_study(config: PanelConfig, revisions: Revisions) -> Plan:
    """Plan every method for every seed.

    Cosines, the user's own raters, prompted models, few-shot transfer and response selection have
    only one seed.
    """
    builder = PlanBuilder(_get_kind_and_label, get_recipe_version)
    inputs = Inputs(config, revisions, builder)
    inputs.add_labeller()
    for seed in config.seeds:
        study = _Seed(inputs, seed)
        for run in study.plan_methods():
            builder.add_run(run)
        if seed == config.seeds[0]:
            untrained = (
                *study.plan_cosines(),
                *study.plan_own_raters(revisions),
                *study.plan_prompted_models(),
            )
            for run in (*untrained, *study.plan_few_shot(), *study.plan_selection()):
                builder.add_run(run)
    return builder.build_plan()


def _get_kind_and_label(step: Step, starts: tuple[Start, ...]) -> tuple[str, str]:
    """Return the kind and the label of a training run.

    They depend on the step only, so that identical trainings have the same name.
    """
    task, recipe = step.train_tasks[0], step.data.recipe if step.data else ""
    if recipe == LEAKS:
        return "labeller", "labeller"
    if recipe == FEW:
        assert step.data is not None
        of = "panel" if any(start.merged for start in starts) else "single"
        settings = step.data.settings
        by = f"{settings['by']}_{settings['draw']}"
        return "few", f"{of}_to_{task}_{settings['percent']}_of_{by}"
    if recipe == CHOICES:
        assert step.data is not None
        return "selection", f"adapter_persona_{step.data.settings['persona']}"
    if len(step.train_tasks) > 1 or step.sampler != "task_batches":
        return "joint", "all_domains"
    if step.trains:
        return "expert", task
    if task.endswith(cards.EVERYTHING):
        filtered = step.data.uses[0] if step.data else None
        leaky = isinstance(filtered, Data) and not filtered.settings.get("drop", True)
        kind = "twin" if step.model is not None and step.model.reads == "pair" else "single"
        return kind, "all_domains_with_leaks" if leaky else "all_domains"
    return "whole", task


class _Seed:
    """Planner of the runs of one seed."""

    def __init__(self, inputs: Inputs, seed: int) -> None:
        self.inputs, self.config, self.seed = inputs, inputs.config, seed

    @cached_property
    def panel_stages(self) -> dict[str, Stage]:
        """The joint training, by the name ``joint``, and each expert's training, by its domain."""
        domains = self.config.domains
        stages = self._build_stages(make_joint_steps(domains, self.config), self.inputs.adapted)
        return dict(zip(("joint", *domains), stages, strict=True))

    @cached_property
    def single_stage(self) -> Stage:
        """The training of the method ``single``."""
        return self._plan_whole_training("single")

    def _plan_whole_training(self, method: str, *, leaky: bool = False) -> Stage:
        """Return the training of ``single`` or ``twin`` on the pairs of all domains."""
        data = self.inputs.select_pairs(method, leaky=leaky)
        task, domains = self.inputs.get_task_name(cards.EVERYTHING), len(self.config.domains)
        if method == "single":
            return self._build_whole_stage(task, data, domains)
        step = make_whole_step(task, self.config, domains, self.config.twin)
        model = self.inputs.twin
        (stage,) = self._build_stages([replace(step, data=data, model=model)], model)
        return stage

    def _build_stages(self, steps: list[Step], model: ModelSpec) -> list[Stage]:
        training = self.config.resolve_hyperparameters(self.config.joint)
        data = self.inputs.pairs
        stages = self.inputs.builder.build_stages(steps, data, model, training, self.seed)
        return [stages[step] for step in steps]

    def _build_whole_stage(self, task: str, data: Data, domains: int = 1) -> Stage:
        step = replace(make_whole_step(task, self.config, domains), data=data)
        (stage,) = self._build_stages([step], self.inputs.plain)
        return stage

    # --- methods --------------------------------------------------------------------------------

    def plan_methods(self) -> Iterator[Run]:
        """Yield one run per method, or one per domain for methods with a model per domain."""
        everything = self.inputs.get_task_name(cards.EVERYTHING)
        for method in self.config.methods:
            yield from self._plan_method(method)
        if "exchanged" in self.config.controls:
            for run in self._plan_method(self.config.methods[0]):
                (judged,) = run.evaluations
                exchanged = replace(judged, data=self.inputs.exchanged_ratings)
                yield replace(run, method=f"{run.method}{EXCHANGED}", evaluations=(exchanged,))
        if UNTRAINED in self.config.controls:
            yield self._plan_released_model(UNTRAINED, self.inputs.adapted, {"seed": self.seed})
        if LEAKY in self.config.controls:
            for method in (each for each in ONE_MODEL if each in self.config.methods):
                stage = self._plan_whole_training(method, leaky=True)
                yield self._build_run(f"{method}-{LEAKY}", [(stage, everything, ("head",))])

    def _plan_method(self, method: str) -> Iterator[Run]:
        domains, everything = self.config.domains, self.inputs.get_task_name(cards.EVERYTHING)
        if method == "panel":
            for domain in domains:
                yield self._build_run(method, [self._select_expert(domain)], domain)
        elif method == "collection":
            for domain in domains:
                stage = self._build_whole_stage(domain, self.inputs.pairs)
                yield self._build_run(method, [(stage, domain, ("head",))], domain)
        elif method in ONE_MODEL:
            stage = self._plan_whole_training(method)
            yield self._build_run(method, [(stage, everything, ("head",))])
        else:
            experts = [self._select_expert(domain) for domain in domains]
            yield self._build_run(method, experts, merged=MERGED[method])

    def plan_cosines(self) -> Iterator[Run]:
        """Yield the runs that rate by the cosine similarity of context and response embeddings."""
        # No head reads the encoder, so the cosines do not depend on the input of heads.
        model = replace(self.inputs.plain, reads="first_token")
        for method, what in COSINES.items():
            yield self._plan_released_model(method, model, {"cosine": what})
        if "embeddings" in self.config.controls:
            settings = {"cosine": COSINES["cosine-last"], "pooling": "input"}
            yield self._plan_released_model(EMBEDDINGS, model, settings)

    def plan_own_raters(self, revisions: Revisions) -> Iterator[Run]:
        """Yield the runs of the user's own raters, for which the study computes no ratings."""
        task = self.inputs.get_task_name(cards.RATINGS)
        for name, revision in revisions.brought.items():
            settings = {"brought": {"name": name, "revision": revision}}
            judged = Evaluation(
                Outcome(()), self.inputs.ratings, task, ("spearman",), settings=settings
            )
            yield Run(name, BROUGHT, self.seed, {"domain": ""}, Outcome(()), (judged,))

    def plan_prompted_models(self) -> Iterator[Run]:
        """Yield the runs of prompted models, with one evaluation per rated set and template."""
        for rater in self.config.prompted:
            outcome = Outcome((), model=rater.to_spec(self.inputs.models))
            judged = []
            for name in self.config.rated_sets:
                card = get_task(self.inputs.name, name)
                for index, wording in enumerate(get_wordings(card)):
                    prompting = {
                        "shots": 0,
                        "wording": index,
                        "prompt": compute_wording_digest(card, wording),
                        "rating": "expected",
                        **rater.get_evaluation_settings(),
                    }
                    settings = {"asked": prompting}
                    judged.append(
                        Evaluation(
                            outcome, self.inputs.base, name, ("closeness",), settings=settings
                        )
                    )
            yield Run(rater.model, PROMPTED, self.seed, {"domain": ""}, outcome, tuple(judged))

    def _plan_released_model(
        self, method: str, model: ModelSpec, settings: Mapping[str, Any]
    ) -> Run:
        outcome, task = Outcome((), model=model), self.inputs.get_task_name(cards.RATINGS)
        judged = Evaluation(
            outcome, self.inputs.ratings, task, ("closeness",), settings=dict(settings)
        )
        return Run(method, model.name, self.seed, {"domain": ""}, outcome, (judged,))

    def _select_expert(self, domain: str) -> tuple[Stage, str, tuple[str, ...]]:
        return self.panel_stages[domain], domain, ("head", "adapter")

    def _build_run(
        self,
        method: str,
        raters: list[tuple[Stage, str, tuple[str, ...]]],
        domain: str = "",
        *,
        merged: Merge | None = None,
        at: Any = "best",
    ) -> Run:
        task = self.inputs.get_task_name(cards.RATINGS)
        starts = tuple(_build_start(*rater, task, merged, at) for rater in raters)
        outcome = Outcome(starts)
        judged = Evaluation(outcome, self.inputs.ratings, task, ("closeness",))
        about = {"domain": domain}
        return Run(method, self.inputs.plain.name, self.seed, about, outcome, (judged,))

    # --- few-shot transfer ----------------------------------------------------------------------

    def plan_few_shot(self) -> Iterator[Run]:
        """Yield the runs of few-shot transfer from the averaged panel and the single model."""
        section = self.config.few_shot
        if section is None:
            return
        for method in (each for each in FEW_METHODS if each in self.config.methods):
            for task in section.sets:
                for percent in section.percentages:
                    for by in section.sampling_units:
                        for draw in range(section.draws):
                            yield self._plan_few_shot_run(method, task, percent, by, draw)

    def _plan_few_shot_run(self, method: str, task: str, percent: int, by: str, draw: int) -> Run:
        section = self.config.few_shot
        assert section is not None
        drawn = {"percent": percent, "by": by, "draw": draw}
        settings = {"task": task, **drawn, **self.inputs.halved_sets_setting}
        data = self.inputs.derive_data(FEW, settings)
        panel = method != "single"
        if panel:
            experts = [self._select_expert(domain) for domain in self.config.domains]
            begin = [Start(self.panel_stages["joint"], parts=("encoder",))]
            begin += [_build_start(*expert, task, "mean", "best") for expert in experts]
        else:
            everything = self.inputs.get_task_name(cards.EVERYTHING)
            begin = [Start(self.single_stage, parts=("encoder",))]
            begin.append(_build_start(self.single_stage, everything, ("head",), task, None, "best"))
        step = Step(
            (task,),
            Selection((task,), "spearman", None, section.patience),
            start=begin,
            trains=(f"adapter.{task}", f"head.{task}")
            if panel and not section.train_encoder
            else (),
            test_on=(task,),
            data=data,
        )
        model = self.inputs.adapted if panel else self.inputs.plain
        training = self.config.resolve_hyperparameters(section)
        (stage,) = self.inputs.builder.build_stages([step], data, model, training, draw).values()
        about = {"set": task, **drawn, "of": method}
        return Run(f"few-shot {method}", model.name, self.seed, about, Outcome((Start(stage),)))

    # --- response selection ---------------------------------------------------------------------

    def plan_selection(self) -> Iterator[Run]:
        """Yield the runs of response selection: by an expert, by a new adapter, and by cosine."""
        section = self.config.selection
        if section is None:
            return
        task, domain = self.inputs.get_task_name(cards.SELECTION), section.domain
        for persona in section.personas:
            settings = {
                **section.model_dump(exclude={"personas", "cosine"}),
                "persona": persona,
                "task": task,
            }
            data = self.inputs.derive_data(CHOICES, settings, self.inputs.filtered_dialogues)
            about = {"persona": persona}
            direct = Outcome((_build_start(*self._select_expert(domain), task, None, "best"),))
            judged = Evaluation(direct, data, task, ("accuracy",))
            name = self.inputs.plain.name
            yield Run(SELECTION_DIRECT, name, self.seed, about, direct, (judged,))
            step = Step(
                (task,),
                make_selection((task,), self.config.experts),
                start=[Start(self.panel_stages["joint"], parts=("encoder",))],
                trains=(f"adapter.{task}", f"head.{task}"),
                test_on=(task,),
                data=data,
            )
            training = self.config.resolve_hyperparameters(self.config.experts)
            model = self.inputs.adapted
            stages = self.inputs.builder.build_stages([step], data, model, training, self.seed)
            outcome = Outcome((Start(stages[step]),))
            yield Run(SELECTION_ADAPTER, name, self.seed, about, outcome)
            if not section.cosine:
                continue
            released = Outcome((), model=replace(self.inputs.plain, reads="first_token"))
            compared = Evaluation(
                released, data, task, ("accuracy",), settings={"cosine": COSINES["cosine-last"]}
            )
            yield Run(SELECTION_COSINE, name, self.seed, about, released, (compared,))


def _build_start(
    stage: Stage, domain: str, parts: tuple[str, ...], task: str, merged: Merge | None, at: Any
) -> Start:
    """Return a start that initialises a task's parts of a model with a domain's parts."""
    return Start(
        stage,
        at,
        tuple(f"{part}.{domain}" for part in parts),
        tuple(f"{part}.{task}" for part in parts),
        merged,
    )
