"""Functions that plan an empathetic study: trainings of each method, and their evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from tasktransfer.config.renamed_keys import restore_old_names
from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Pool, Start
from tasktransfer.core.plan import From, Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import Rounds, Selection
from tasktransfer.datasets import build_data_node, get_recipe_version
from tasktransfer.designs.empathetic.config import EmpatheticConfig, Setting
from tasktransfer.designs.empathetic.methods import (
    BROUGHT,
    CONTROLS_OF_ENSEMBLES,
    CONTROLS_OF_LABELS,
    LONGER,
    TOPIC_TASKS,
    UNTRAINED,
    WORDS,
    get_kind_and_label,
    is_ensemble,
    parse_prepend,
)
from tasktransfer.designs.empathetic.prompted import plan_prompted_repliers
from tasktransfer.designs.empathetic.sources.cards import (
    DAILY,
    DAILY_NEXT,
    ED,
    EMOTION,
    EMOTION_CUT,
    EMOTION_OF_CONTEXT,
    NEXT,
    PAIR,
    PAIRS,
    REPLY,
    TAG,
    TAGS,
)
from tasktransfer.designs.empathetic.training_sections import (
    EmotionsConfig,
    GenerationConfig,
    SettingConfig,
    TopicsConfig,
)
from tasktransfer.results.revisions import Revisions

KINDS = ("pretrained", "base", "multitask", "prepend", "ensemble", "classifier")
P_AT_1 = ("p_at_1", "p_at_1_shuffled", "p_at_1_shuffled_sd", "p_at_1_permuted")
PERPLEXITY = ("perplexity", "word_perplexity")
BY_LOSS = Selection((REPLY.name,), "loss")
"""Selection of the epoch with the lowest validation loss on the listener's replies (section 5)."""
WORD_WIDTH = 32
"""Dimension of fastText's vectors."""
POOL_TASKS = {ED: NEXT.name, DAILY: DAILY_NEXT.name, PAIRS: PAIR.name}


def plan_study(config: EmpatheticConfig, revisions: Revisions) -> Plan:
    """Plan every method of both settings for every seed. Identical trainings run once."""
    builder = PlanBuilder(get_kind_and_label, get_recipe_version)
    for seed in config.seeds:
        study = _Seed(config, revisions, builder, seed)
        for setting in config.settings:
            study.add_setting(setting)
        study.add_classifiers()
        study.add_own_repliers(revisions)
        if "words" in config.controls:
            study.add_word_ranking()
        for run in plan_prompted_repliers(config, revisions, study.data[ED], seed):
            builder.add_run(run)
    return builder.build_plan()


class _Seed:
    """Planner of the runs of one seed."""

    def __init__(
        self, config: EmpatheticConfig, revisions: Revisions, builder: PlanBuilder, seed: int
    ) -> None:
        self.config, self.builder, self.seed = config, builder, seed
        self.models = revisions.models
        self.rounds = Rounds(patience=config.training.patience)
        settings = {"few_sample": config.data.few_sample}
        self.data = {name: build_data_node(name, r, settings) for name, r in revisions.data.items()}

    # --- methods --------------------------------------------------------------------------------

    def add_setting(self, setting: Setting) -> None:
        """Add the runs of all methods and controls of a setting."""
        section = self.config.settings[setting]
        for method in section.methods:
            self._add_method(setting, section, method)
        if any(map(is_ensemble, section.methods)):
            self._add_controls_of_ensembles(setting, section)
        if "emoprepend-1" in section.methods:
            for control in (c for c in self.config.controls if c in CONTROLS_OF_LABELS):
                data = self._derive_control_data(control, setting)
                begin = self._build_pretraining(setting, section, section.model)
                step = self._build_dialogue_step((NEXT.name,), data, begin)
                self._add_run(setting, section, f"emoprepend-{control}", begin, [step], data)

    def _add_method(self, setting: Setting, section: SettingConfig, method: str) -> None:
        data = self.data[ED]
        large = method.endswith("-large")
        name = section.model
        if large and isinstance(section, GenerationConfig):
            name = str(section.large_model)
        begin = self._build_pretraining(setting, section, name)
        plain = method.removesuffix("-large")
        prepend = parse_prepend(plain)
        if plain == "pretrained":
            self._add_run(setting, section, method, begin, [], data, name)
        elif prepend is not None:
            data = self._derive_prepended_data(*prepend, setting)
            step = self._build_dialogue_step((NEXT.name,), data, begin)
            self._add_run(setting, section, method, begin, [step], data)
        elif plain.startswith("ensemble"):
            self._add_run(
                setting,
                section,
                method,
                begin,
                self._plan_ensemble(setting, section, plain, begin),
                data,
            )
        else:
            multitask = plain == "multitask"
            tasks = (NEXT.name, EMOTION_OF_CONTEXT.name) if multitask else (NEXT.name,)
            step = self._build_dialogue_step(tasks, None, begin)
            self._add_run(setting, section, method, begin, [step], data, name)

    def _add_controls_of_ensembles(self, setting: Setting, section: SettingConfig) -> None:
        """Add ensembles without emotions, and Base trained again for the same number of updates."""
        begin = self._build_pretraining(setting, section, section.model)
        base = self._build_dialogue_step((NEXT.name,), None, begin)
        again = self._build_dialogue_step((NEXT.name,), None, [base])
        steps = {
            UNTRAINED: lambda: self._plan_ensemble(setting, section, "ensemble-plain", begin),
            LONGER: lambda: [base, again],
        }
        for method, name in CONTROLS_OF_ENSEMBLES.items():
            if name in self.config.controls:
                self._add_run(setting, section, method, begin, steps[method](), self.data[ED])

    def _build_pretraining(self, setting: Setting, section: SettingConfig, name: str) -> list[Step]:
        """Return the step that trains on replies of another dataset.

        The list is empty if the model is used as released.
        """
        pretraining = self.config.pretraining
        if setting == "retrieval" and not pretraining.retrieval:
            return []
        task = POOL_TASKS[pretraining.dataset]
        return [
            Step(
                (task,),
                Selection((task,), "loss"),
                start=None,
                test_on=(),
                data=self.data[pretraining.dataset],
                training=self.config.resolve_hyperparameters(setting, section, pretraining),
                model=self.models[name],
            )
        ]

    def _build_dialogue_step(
        self, tasks: tuple[str, ...], data: Data | None, begin: list[Step]
    ) -> Step:
        return Step(
            tasks,
            BY_LOSS,
            start=begin[-1] if begin else None,
            sampler="together" if len(tasks) > 1 else "task_batches",
            test_on=(),
            data=data,
        )

    def _plan_ensemble(
        self, setting: Setting, section: SettingConfig, method: str, begin: list[Step]
    ) -> list[Step]:
        """Return the steps of an ensemble of Base and the classifier.

        Both are frozen. Only the projection is trained, and for generation also the decoder.
        """
        base = self._build_dialogue_step((NEXT.name,), None, begin)
        starts = [From(base)]
        before = [base]
        model = self.models[str(section.ensemble)]
        if method != "ensemble-plain":
            classifier = self._build_classifier_step(method)
            before.append(classifier)
            starts.append(From(classifier, parts=("encoder",), into=("beside",)))
            # The classifier's penultimate layer, which its head reads.
            model = replace(model, beside_reads="pooler")
        trains = ("projection",) if setting == "retrieval" else ("projection", "decoder")
        joined = Step(
            (NEXT.name,),
            BY_LOSS,
            start=starts,
            trains=trains,
            test_on=(),
            model=model,
        )
        return [*before, joined]

    def _build_classifier_step(self, method: str) -> Step:
        config = self.config
        assert config.classifier is not None
        task = TAG.name if method == "ensemble-tags" else EMOTION.name
        data = self.data[TAGS if method == "ensemble-tags" else ED]
        return Step(
            (task,),
            Selection((task,)),
            start=None,
            data=data,
            model=self.models[config.classifier.model],
            training=config.resolve_hyperparameters(None, config.classifier),
        )

    # --- prepended labels -----------------------------------------------------------------------

    def _build_fit(self, what: str) -> Fit:
        if what == "emo":
            tasks = (EMOTION.name, EMOTION_CUT.name)
            return Fit(
                "fasttext",
                self.data[ED],
                tasks,
                self.seed,
                _build_fasttext_settings(self.config.emotions),
            )
        topics = self.config.topics
        data, task = self.data[topics.dataset], TOPIC_TASKS[topics.dataset].name
        return Fit("fasttext", data, (task,), self.seed, _build_fasttext_settings(topics))

    def _derive_prepended_data(self, what: str, k: int, setting: Setting, of: str = ED) -> Data:
        fit = self._build_fit(what)
        settings: dict[str, Any] = {"k": k, "task": fit.tasks[0]}
        if self.config.release_compat:
            settings |= {"best_last": True, "as_spelled": True}
        return self._derive_data(settings, setting, (fit,), of)

    def _derive_control_data(self, control: str, setting: Setting, of: str = ED) -> Data:
        settings: dict[str, Any] = {"k": 1, "task": control}
        if control == "random":
            settings["seed"] = self.seed
        return self._derive_data(settings, setting, (), of)

    def _derive_data(
        self, settings: Mapping[str, Any], setting: Setting, uses: tuple[Fit, ...], of: str
    ) -> Data:
        data = self.data[of]
        # A label is one word. The length grows by k, so that 100 words of text are still read.
        both = {**data.settings, **settings, "longer_by": settings["k"]}
        if setting == "retrieval":
            both["candidates"] = True
        return replace(data, settings=both, recipe="prepend", uses=uses)

    # --- evaluations ----------------------------------------------------------------------------

    def _add_run(
        self,
        setting: Setting,
        section: SettingConfig,
        method: str,
        begin: list[Step],
        steps: list[Step],
        data: Data,
        name: str | None = None,
    ) -> None:
        spec = self.models[name or section.model]
        training = self.config.resolve_hyperparameters(setting, section)
        stages = self.builder.build_stages(
            [*begin, *steps], self.data[ED], spec, training, self.seed, self.rounds
        )
        last = list(stages.values())[-1] if stages else None
        outcome = Outcome((Start(last),)) if last else Outcome((), model=spec)
        judge = (
            self._plan_retrieval_evaluations
            if setting == "retrieval"
            else self._plan_generation_evaluations
        )
        evaluations = judge(outcome, data, method)
        model = last.model.name if last else spec.name
        about = {"setting": setting}
        self.builder.add_run(
            Run(method, model, self.seed, about, outcome, evaluations, variant=setting)
        )

    def _plan_retrieval_evaluations(
        self, outcome: Outcome, data: Data, method: str
    ) -> tuple[Evaluation, ...]:
        evaluation = self.config.evaluation
        common: dict[str, Any] = {}
        if outcome.model is not None and self.config.training.cosine_scale is not None:
            common["cosine_scale"] = self.config.training.cosine_scale
        blocks = {**common, **self._build_block_settings()}
        pooled = {**common, "pool_words": evaluation.pool_words}
        if evaluation.limit:
            pooled["limit"] = evaluation.limit
        if evaluation.limit_pool:
            pooled["pool_limit"] = evaluation.limit_pool
        judged = [Evaluation(outcome, data, REPLY.name, P_AT_1, settings=blocks)]
        for pool in evaluation.pools:
            pools = tuple(
                Pool(self._choose_pool_data(data, method, name), POOL_TASKS[name])
                for part in pool.split("+")
                for name in ({"ED": ED, "DD": DAILY, "R": PAIRS}[part],)
            )
            named = {**pooled, "pool": pool}
            judged.append(
                Evaluation(outcome, data, REPLY.name, ("bleu",), settings=named, pools=pools)
            )
        return tuple(judged)

    def _build_block_settings(self) -> dict[str, int]:
        """Return the settings of P@1."""
        evaluation = self.config.evaluation
        settings: dict[str, int] = {"block": evaluation.block, "shuffles": evaluation.shuffles}
        if evaluation.limit:
            settings["blocks"] = evaluation.limit // evaluation.block
        if self.config.release_compat:
            settings["drop_last_block"] = True
        return settings

    def _choose_pool_data(self, data: Data, method: str, name: str) -> Data:
        """Return a pool's data, with labels before candidates if the contexts have labels."""
        if name == ED or not data.recipe:
            return data if name == ED else self.data[name]
        prepend = parse_prepend(method)
        if prepend is not None:
            return self._derive_prepended_data(*prepend, "retrieval", name)
        return self._derive_control_data(method.removeprefix("emoprepend-"), "retrieval", name)

    def _plan_generation_evaluations(
        self, outcome: Outcome, data: Data, method: str
    ) -> tuple[Evaluation, ...]:
        evaluation = self.config.evaluation
        limit = {"limit": evaluation.limit} if evaluation.limit else {}
        most = evaluation.limit_generated or evaluation.limit
        section = evaluation.decoding.model_dump()
        decoding = restore_old_names(section, "evaluation.decoding")
        if most:
            decoding["limit"] = most
        return (
            Evaluation(outcome, data, REPLY.name, PERPLEXITY, settings=limit),
            Evaluation(outcome, data, REPLY.name, ("bleu",), settings=decoding),
        )

    def _plan_label_evaluations(self, fit: Fit) -> tuple[Evaluation, ...]:
        """Return evaluations of the predicted labels that are prepended to contexts.

        They measure the agreement with the dialogue's emotion on test contexts, and on training
        contexts, whose situations the classifier was trained on.
        """
        settings = {"fitted_on": EMOTION.name}
        splits: tuple[Literal["test", "train"], ...] = ("test", "train")
        return tuple(
            Evaluation(fit, fit.data, EMOTION_OF_CONTEXT.name, ("accuracy",), split, settings)
            for split in splits
        )

    def add_own_repliers(self, revisions: Revisions) -> None:
        """Add the user's own repliers, which are evaluated once and compared with every seed."""
        setting, settings = self.config.replier_comparison
        for name, revision in revisions.brought.items():
            own = {**settings, "brought": {"name": name, "revision": revision}}
            judged = Evaluation(Outcome(()), self.data[ED], REPLY.name, ("bleu",), settings=own)
            about = {"setting": setting}
            self.builder.add_run(
                Run(name, BROUGHT, self.seed, about, Outcome(()), (judged,), variant=setting)
            )

    def add_word_ranking(self) -> None:
        """Add the ranking by shared words, which is evaluated once and compared with every seed."""
        settings = {**self._build_block_settings(), "words": WORDS}
        judged = Evaluation(Outcome(()), self.data[ED], REPLY.name, P_AT_1, settings=settings)
        setting = "retrieval"
        about = {"setting": setting}
        self.builder.add_run(
            Run(WORDS, WORDS, self.seed, about, Outcome(()), (judged,), variant=setting)
        )

    def add_classifiers(self) -> None:
        """Add the classifiers that methods use, evaluated on situations."""
        methods, seed = self.config.methods, self.seed
        for what, prefix in (("emo", "emoprepend-"), ("topic", "topicprepend-")):
            if any(method.startswith(prefix) for method in methods):
                fit = self._build_fit(what)
                # DailyDialog's card has no accuracy. Micro-F1 equals it for single labels.
                measure = "micro_f1" if fit.data.name == "DailyDialog" else "accuracy"
                judged = tuple(Evaluation(fit, fit.data, task, (measure,)) for task in fit.tasks)
                if what == "emo":
                    judged += self._plan_label_evaluations(fit)
                name = {"emo": "fasttext-emotion", "topic": "fasttext-topic"}[what]
                about = {"setting": "classifier"}
                self.builder.add_run(Run(name, "fasttext", seed, about, fit, judged))
        if "ensemble-tuned" in methods:
            step = self._build_classifier_step("ensemble-tuned")
            assert step.model is not None and step.training is not None
            (stage,) = self.builder.build_stages(
                [step], self.data[ED], step.model, step.training, seed, self.rounds
            ).values()
            outcome = Outcome((Start(stage),))
            judged = tuple(
                Evaluation(outcome, self.data[ED], task, ("accuracy",)) for task in (EMOTION.name,)
            )
            about = {"setting": "classifier"}
            self.builder.add_run(
                Run("classifier-tuned", stage.model.name, seed, about, outcome, judged)
            )


def _build_fasttext_settings(section: EmotionsConfig | TopicsConfig) -> dict[str, Any]:
    """Return all settings of a fastText fit, so that a change of any of them changes its digest."""
    return {"lr": section.learning_rate, "epoch": section.epochs, "dim": WORD_WIDTH}
