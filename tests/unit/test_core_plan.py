"""Steps become stages, and equal stages one training, for any design."""

from __future__ import annotations

from dataclasses import replace

from tasktransfer.core.nodes import Data, Evaluation, Fit, Outcome, Stage, Start
from tasktransfer.core.plan import Begin, From, Plan, PlanBuilder, Step
from tasktransfer.core.runs import Run
from tasktransfer.core.specs import ModelSpec, Selection, Training

DATA = Data("Talk", "r1")
MODEL = ModelSpec("m", "encoder", "w1", 128)
TRAINING = Training(epochs=2)


def named(step: Step, starts: tuple[Start, ...]) -> tuple[str, str]:
    return "next" if starts else "first", "+".join(step.train_tasks)


def on(task: str, start: Step | Begin | list[Begin] | str | None = "previous") -> Step:
    return Step((task,), Selection((task,)), start=start)  # type: ignore[arg-type]


def planned(methods: dict[str, list[Step]]) -> Plan:
    builder = PlanBuilder(named)
    for name, steps in methods.items():
        stages = builder.build_stages(steps, DATA, MODEL, TRAINING, seed=0)
        builder.add_run(Run(name, MODEL.name, 0, {}, Outcome((Start(stages[steps[-1]]),))))
    return builder.build_plan()


def test_a_step_starts_from_the_one_before_unless_it_says_another() -> None:
    joint = on("a")
    builder = PlanBuilder(named)
    fan = [joint, on("b", joint), on("c", joint), on("d"), on("e", None)]
    a, b, c, d, e = builder.build_stages(fan, DATA, MODEL, TRAINING, 0).values()
    assert [stage.parents for stage in (a, b, c, d, e)] == [(), (a,), (a,), (c,), ()]


def test_what_is_taken_of_each_start_is_kept_in_order() -> None:
    first, second = on("a"), Step(("b",), Selection(("b",), keep="every"), start=None)
    both = on("c", [From(second, 3, ("head",), ("other",)), From(first, merged="mean")])
    a, b, c = (
        PlanBuilder(named).build_stages([first, second, both], DATA, MODEL, TRAINING, 0).values()
    )
    assert c.starts == (Start(b, 3, ("head",), ("other",)), Start(a, merged="mean"))
    again = on("c", Start(a))  # a stage of a method that was planned before
    (stage,) = PlanBuilder(named).build_stages([again], DATA, MODEL, TRAINING, 0).values()
    assert stage.parents == (a,)


def test_tasks_are_sets_and_a_step_may_have_its_own_data_model_and_training() -> None:
    other = Data("Other", "r1")
    step = Step(
        ("b", "a"),
        Selection(("d", "c")),
        test_on=("f", "e"),
        data=other,
        model=replace(MODEL, name="n"),
        training=Training(epochs=1),
    )
    (stage,) = PlanBuilder(named).build_stages([step], DATA, MODEL, TRAINING, 3).values()
    assert (stage.train_tasks, stage.select_on, stage.tested) == (
        ("a", "b"),
        ("c", "d"),
        ("e", "f"),
    )
    assert (stage.data, stage.model.name, stage.training.epochs, stage.seed) == (other, "n", 1, 3)


def test_two_methods_that_share_their_last_stage_are_one_training_and_two_runs() -> None:
    """The plan says which runs end with a stage; no method is guessed from the stage."""
    plan = planned({"direct": [on("a")], "in one step": [on("a")]})
    assert len(plan.stages) == 1
    assert [run.method for run in plan.runs] == ["direct", "in one step"]
    assert plan.runs[0].stages[-1] is plan.runs[1].stages[-1]
    assert plan.get_group(plan.stages[0]) == "direct"


def test_two_methods_that_share_their_first_stage_train_it_once() -> None:
    plan = planned({"to b": [on("a"), on("b")], "to c": [on("a"), on("c")]})
    assert [stage.label for stage in plan.stages] == ["a", "b", "c"]
    assert plan.runs[0].stages[0] is plan.runs[1].stages[0]
    assert plan.groups == ("to b", "to c", "(first)")


def test_the_order_of_steps_makes_other_stages() -> None:
    plan = planned({"a b c": [on("a"), on("b"), on("c")], "b a c": [on("b"), on("a"), on("c")]})
    assert len({stage.digest for stage in plan.stages}) == len(plan.stages) == 6


def test_nodes_come_after_what_they_use() -> None:
    builder = PlanBuilder(named)
    labels = Fit("fasttext", DATA, ("a",))
    derived = Data("Talk", "r1", {}, "prepend_labels", (labels,))
    steps = [on("a"), on("b")]
    *_, last = builder.build_stages(steps, derived, MODEL, TRAINING, 0).values()
    outcome = Outcome((Start(last),))
    evaluation = Evaluation(outcome, DATA, "b", ("accuracy",))
    builder.add_run(Run("method", "m", 0, {}, outcome, (evaluation,)))
    plan = builder.build_plan()
    place = {node.digest: index for index, node in enumerate(plan.nodes)}
    for node in plan.nodes:
        assert all(place[used.digest] < place[node.digest] for used in node.uses)
    assert (plan.fits, plan.derived, plan.evaluations) == ((labels,), (derived,), (evaluation,))
    assert plan.by_digest[last.digest[:12]] is last


def test_a_stage_that_no_run_needs_is_not_planned() -> None:
    builder = PlanBuilder(named)
    first, _ = builder.build_stages([on("a"), on("b")], DATA, MODEL, TRAINING, 0).values()
    builder.add_run(Run("method", "m", 0, {}, Outcome((Start(first),))))
    assert builder.build_plan().nodes == (first,)


def test_runs_are_counted_by_method_and_variant() -> None:
    run = planned({"method": [on("a")]}).runs[0]
    plan = Plan((run, replace(run, seed=1), replace(run, variant="several sources")), ())
    assert plan.count_runs() == {"method": 2, "method, several sources": 1}


def test_an_outcome_of_several_stages_is_not_a_method_of_one_of_them() -> None:
    builder = PlanBuilder(named)
    stages: list[Stage] = []
    for task in "ab":
        stages += builder.build_stages([on(task)], DATA, MODEL, TRAINING, 0).values()
    builder.add_run(Run("mean", "m", 0, {}, Outcome(tuple(map(Start, stages)), "mean")))
    plan = builder.build_plan()
    assert plan.groups == ("(first)",)
