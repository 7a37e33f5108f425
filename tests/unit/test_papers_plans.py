"""The plans of three papers, counted without running anything.

Each plan is written with the core's types alone, as its design writes it: a plan that is awkward to
write reveals a wrong type. Facts: spec-empathetic, spec-poe, spec-probes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Stage, Start
from tasktransfer.core.plan import From, Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training

ROBERTA = ModelSpec("roberta", "encoder", "roberta-base@main", 512)
TRAINING = Training(epochs=10)


def builder() -> PlanBuilder:
    def name(step: Step, starts: tuple[Start, ...]) -> tuple[str, str]:
        return "tuned" if starts else "base", "+".join(step.train_tasks)

    return PlanBuilder(name)


def judged(stage: Stage, *evaluations: Evaluation) -> tuple[Outcome, tuple[Evaluation, ...]]:
    return Outcome((Start(stage),)), evaluations


# --- EmpatheticDialogues (Rashkin et al., section 4, Table 4) -------------------------------------

REPLY = Selection(("reply",), "loss")
LABEL = Selection(("emotion",), "accuracy")
ED = Data("EmpatheticDialogues", "ed")
CORPUS = Data("Pretraining", "chat")
NEWS = Data("Topics", "news")
TAGGED = Data("TaggedPosts", "tags")
EMOTION_FIT = Fit("fasttext", ED, ("emotion",))
TOPIC_FIT = Fit("fasttext", NEWS, ("topic",))


def prepended(fit: Fit, k: int) -> Data:
    return Data("EmpatheticDialogues", "ed", {"k": k}, "prepend_labels", (fit,))


def classifiers() -> dict[str, Step]:
    """Return the models that provide the ensembles' second encoder; DM is a released one."""
    tuned = Step(("emotion",), LABEL, start=None, model=ROBERTA)
    tags = Step(("tag",), Selection(("tag",), "accuracy"), start=None, model=ROBERTA, data=TAGGED)
    return {"tuned": tuned, "tags": tags}


def empathetic_methods(generation: bool) -> dict[str, list[Step]]:
    pretrained = Step(("reply",), REPLY, start=None, data=CORPUS)
    base = Step(("reply",), REPLY, start=pretrained)
    moves = ("projection", "decoder") if generation else ("projection",)
    methods = {
        "pretrained": [pretrained],
        "base": [pretrained, base],
        "multitask": [
            pretrained,
            Step(("reply", "emotion"), REPLY, start=pretrained, sampler="together"),
        ],
    }
    for name, fit in (("emoprepend", EMOTION_FIT), ("topicprepend", TOPIC_FIT)):
        for k in (1, 3, 5):
            step = Step(("reply",), REPLY, start=pretrained, data=prepended(fit, k))
            methods[f"{name}-{k}"] = [pretrained, step]
    methods["ensemble-plain"] = [
        pretrained,
        base,
        Step(("reply",), REPLY, start=base, trains=moves, sampler="uniform"),
    ]
    for name, classifier in classifiers().items():
        both = [From(base), From(classifier, parts=("encoder",), into=("second_encoder",))]
        step = Step(("reply",), REPLY, start=both, trains=moves)
        methods[f"ensemble-{name}"] = [pretrained, base, classifier, step]
    return methods


def empathetic(seeds: Iterable[int]) -> Plan:
    plan = builder()
    models = {
        "retrieval": ModelSpec("two-encoders", "encoder", "recipe:dual", 100),
        "generation": ModelSpec("transformer", "encoder_decoder", "recipe:4x4", 100),
    }
    large = ModelSpec("large", "encoder_decoder", "recipe:5x4", 100)
    for seed in seeds:
        for kind, model in models.items():
            for name, steps in empathetic_methods(kind == "generation").items():
                stages = list(plan.build_stages(steps, ED, model, TRAINING, seed).values())
                of, evaluations = judged(
                    stages[-1], Evaluation(Outcome((Start(stages[-1]),)), ED, "reply", ("bleu",))
                )
                plan.add_run(Run(name, model.name, seed, {"kind": kind}, of, evaluations))
        methods = empathetic_methods(generation=True)
        for name in ("pretrained", "base"):
            stages = list(plan.build_stages(methods[name], ED, large, TRAINING, seed).values())
            plan.add_run(Run(f"{name}-large", large.name, seed, {}, judged(stages[-1])[0]))
    return plan.build_plan()


def test_empathetic_counts_28_trainings_and_2_fits_a_seed() -> None:
    one = empathetic([0])
    models = Counter(stage.model.name for stage in one.stages)
    assert models == {"two-encoders": 12, "transformer": 12, "large": 2, "roberta": 2}
    assert len(one.stages) == 28
    assert {fit.data.name for fit in one.fits} == {"EmpatheticDialogues", "Topics"}
    assert len(one.fits) == 2
    assert len(one.derived) == 6
    assert len(empathetic(range(5)).stages) == 5 * 28


# --- PoE (Zhang et al., sections IV, VI-C and VII) ------------------------------------------------

DOMAINS = ("ConvAI2", "DailyDialog", "Empathetic", "Reddit", "TopicalChat")
PAIRS = Data("Pairs", "pairs", {"contexts": 4}, "perturb")


def expert_parts(domain: str) -> tuple[str, str]:
    return f"adapter.{domain}", f"head.{domain}"


def panel_steps() -> list[Step]:
    chosen = Selection(DOMAINS, "accuracy", every=2000, patience=10)
    joint = Step(DOMAINS, chosen, sampler="uniform")
    experts = [
        Step(
            (domain,),
            Selection((domain,), "accuracy", every=1024, patience=3),
            start=joint,
            trains=expert_parts(domain),
        )
        for domain in DOMAINS
    ]
    return [joint, *experts]


def whole_model(domains: tuple[str, ...]) -> Step:
    return Step(domains, Selection(domains, "accuracy", every=2000, patience=10), start=None)


def merged(experts: list[Stage], how: str) -> tuple[Start, ...]:
    """Return an expert with the element-wise mean, maximum or minimum of the parameters."""
    body = Start(experts[0], parts=("encoder",))
    return (
        body,
        *(
            Start(
                expert,
                parts=expert_parts(domain),
                into=("adapter.merged", "head.merged"),
                merged=how,  # type: ignore[arg-type]
            )
            for domain, expert in zip(DOMAINS, experts, strict=True)
        ),
    )


def panel(seeds: Iterable[int], rated: int, draws: int) -> Plan:
    plan = builder()
    averaged: list[tuple[Start, ...]] = []
    singles: list[Stage] = []
    for seed in seeds:
        stages = plan.build_stages(panel_steps(), PAIRS, ROBERTA, TRAINING, seed)
        experts = list(stages.values())[1:]
        outcomes = {
            "panel": Outcome(tuple(Start(expert) for expert in experts), "mean"),
            "routed": Outcome(tuple(Start(expert) for expert in experts), "route", DOMAINS),
        }
        for how in ("mean", "max", "min"):
            outcomes[f"panel-{how}"] = Outcome(merged(experts, how))
        collection = [whole_model((domain,)) for domain in DOMAINS]
        whole = list(plan.build_stages(collection, PAIRS, ROBERTA, TRAINING, seed).values())
        outcomes["collection"] = Outcome(tuple(Start(stage) for stage in whole), "mean")
        everything = whole_model(DOMAINS)
        single = plan.build_stages([everything], PAIRS, ROBERTA, TRAINING, seed)[everything]
        outcomes["single"] = Outcome((Start(single),))
        for method, outcome in outcomes.items():
            evaluations = tuple(
                Evaluation(outcome, Data(f"rated{number}", "r"), "rating", ("spearman",))
                for number in range(rated)
            )
            plan.add_run(Run(method, "roberta", seed, {}, outcome, evaluations))
        averaged.append(outcomes["panel-mean"].starts)
        singles.append(single)
    _few_shot(plan, averaged[0], singles[0], rated, draws)
    _response_selection(plan, averaged[0])
    return plan.build_plan()


def _few_shot(
    plan: PlanBuilder, averaged: tuple[Start, ...], single: Stage, rated: int, draws: int
) -> None:
    """Plan section IV-E: from one checkpoint each, K % of a rated set, ten samples."""
    few = Training(epochs=30, learning_rate=1e-5, batch_size=2)
    selection = Selection(("rating",), "spearman", patience=10)
    for number in range(rated):
        for k in (10, 20, 30, 40):
            for draw in range(draws):
                data = Data(f"rated{number}", "r", {"k": k, "draw": draw}, "few_shot")
                for method, starts, moves in (
                    ("few-shot panel-mean", averaged, ("adapter.merged", "head.merged")),
                    ("few-shot single", (Start(single),), ()),
                ):
                    step = Step(("rating",), selection, start=starts, trains=moves)
                    stage = plan.build_stages([step], data, ROBERTA, few, draw)[step]
                    outcome = Outcome((Start(stage),))
                    plan.add_run(Run(method, "roberta", draw, {"k": k}, outcome))


def _response_selection(plan: PlanBuilder, averaged: tuple[Start, ...]) -> None:
    """Plan section VII-D: a new adapter on Persona-Chat, in three settings."""
    for persona in ("none", "original", "revised"):
        data = Data("PersonaChat", "pc", {"persona": persona})
        parts = ("adapter.persona", "head.response")
        chosen = Selection(("response",), "accuracy", every=1024, patience=3)
        step = Step(("response",), chosen, start=averaged[:1], trains=parts)
        stage = plan.build_stages([step], data, ROBERTA, TRAINING, 0)[step]
        evaluation = Evaluation(Outcome((Start(stage),)), data, "response", ("hits_at_1",))
        plan.add_run(
            Run("adapter", "roberta", 0, {"persona": persona}, evaluation.of, (evaluation,))
        )


def test_panel_counts_120_trainings_1280_few_shot_and_3_for_response_selection() -> None:
    plan = panel(range(10), rated=16, draws=10)
    kinds = Counter(
        "few-shot" if stage.data.recipe == "few_shot" else stage.data.name for stage in plan.stages
    )
    assert kinds == {"Pairs": 120, "few-shot": 1280, "PersonaChat": 3}
    # What is merged or averaged trains nothing, and is judged all the same.
    methods = Counter(run.method for run in plan.runs)
    assert methods["panel"] == methods["panel-mean"] == methods["panel-max"] == 10


def test_an_expert_moves_its_parts_alone_and_starts_from_the_joint_stage() -> None:
    plan = panel([0], rated=1, draws=1)
    experts = [s for s in plan.stages if s.trains and s.data == PAIRS]
    assert {expert.trains for expert in experts} == {expert_parts(domain) for domain in DOMAINS}
    assert len({parent.digest for expert in experts for parent in expert.parents}) == 1


# --- probes (Parthasarathi et al., Tables 1, 4, 5 and 8) ------------------------------------------

MODELS = ("lstm", "lstm-attention", "bilstm-attention", "hred", "transformer")
PROBES = {"MultiWOZ": tuple(f"probe{n}" for n in range(16)), "PersonaChat": ("loc", "word", "info")}


def probes(snapshots: Iterable[int | str]) -> Plan:
    plan = builder()
    snapshots = tuple(snapshots)
    for corpus, tasks in PROBES.items():
        labels = Data(corpus, corpus, {}, "labels")
        for name in MODELS:
            model = ModelSpec(name, "encoder_decoder", f"recipe:{name}", 100)
            for seed in range(3):
                step = Step(("reply",), Selection(("reply",), "bleu2", keep="every"))
                data = Data(corpus, corpus)
                training = Training(epochs=25)
                stage = plan.build_stages([step], data, model, training, seed)[step]
                for at in snapshots:
                    fit = Fit("logistic", labels, tasks, seed, on=Start(stage, at))  # type: ignore[arg-type]
                    plan.add_run(Run("probe", name, seed, {"corpus": corpus, "at": at}, fit))
    return plan.build_plan()


def test_probes_count_30_trainings_855_probes_at_three_snapshots_and_7410_at_all() -> None:
    three = probes([0, "last", "best"])
    assert len(three.stages) == 30
    assert sum(len(fit.tasks) for fit in three.fits) == 855
    every = probes(range(26))
    assert len(every.stages) == 30
    assert sum(len(fit.tasks) for fit in every.fits) == 7410
    # One job fits all probes of a snapshot and corpus.
    assert len(every.fits) == 30 * 26
