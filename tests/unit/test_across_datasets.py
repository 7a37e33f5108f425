"""Transfer between datasets: names of pairs, trainings, and leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from declared_files import TASKS, TURNS, as_jsonl, dialogue

from tasktransfer.core.nodes import Data, Fit
from tasktransfer.core.plan import Plan
from tasktransfer.core.runs import Run
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.datasets import DATASETS, get_task, replace_declared_datasets
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.transfer.leaks import count_shared_dialogues
from tasktransfer.designs.transfer.shown import build_analysis
from tasktransfer.designs.transfer.tables.paper_tables import (
    describe_allowed_leaks,
    is_shared_source_run,
    list_shared_dialogues,
)
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.operate.missing_inputs import require_available_data
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata
from tasktransfer.results.study import Study
from tasktransfer.tasks.card import Instance

BERT = {"name": "tiny-bert", "family": "encoder", "checkpoint": "tiny"}


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    replace_declared_datasets(())


def own(
    name: str, rows: list[dict[str, Any]] | None = None, tasks: dict[str, Any] = TASKS
) -> dict[str, Any]:
    """Return the declaration of an own dataset, and write its file."""
    as_jsonl(Path(f"{name}.jsonl"), rows or [dialogue(name, number) for number in range(16)])
    return {
        "files": f"{name}.jsonl",
        "shares": {"test": 0.25, "dev": 0.25},
        "dialogue": TURNS,
        "tasks": tasks,
    }


def study(*, absent: bool = False, **more: Any) -> Study:
    config = {
        "study": "across",
        "datasets": {
            "DailyDialog": {"tasks": ["emotion_recognition", "dialogue_nli"]},
            "Friends": {"tasks": ["MELD_emotion_recognition"]},
            "Tickets": own("Tickets"),
        },
        "models": [BERT],
        "algorithms": ["baseline", "pretrain_finetune"],
        "training": {"epochs": {"DailyDialog": 1, "Friends": 2, "Tickets": 3}},
        **more,
    }
    Path("study.yaml").write_text(yaml.safe_dump(config))
    return open_study("study.yaml", need_inputs=not absent)


def transfers(plan: Plan) -> list[tuple[str, str, str]]:
    """Return sources, dataset and target of every transfer."""
    return [
        ("+".join(run.about["sources"]), run.about["dataset"], run.about["target"])
        for run in plan.runs
        if run.about["sources"]
    ]


def get_transfer(opened: Study, method: str = "pretrain_finetune") -> Run:
    """Return the only run with a method."""
    (run,) = [run for run in opened.plan.runs if run.method == method]
    return run


def test_two_studies_in_one_process_have_datasets_of_one_name() -> None:
    """Plan, prepared and missing data are those of the given study, not of the last one opened."""

    def own_study(name: str, labels: str) -> Study:
        rows = [dialogue(name, n) | {"intent": labels[n % 2]} for n in range(16)]
        tasks = own(name, rows, {"intent": TASKS["intent"]})
        return study(
            datasets={"Tickets": tasks, "Friends": {"tasks": ["MELD_emotion_recognition"]}},
            training={"epochs": 1},
            targets=["Tickets/intent"],
            sources=["Friends/*"],
            results=name,
        )

    opened = {labels: own_study(name, labels) for name, labels in (("a", "xy"), ("b", "zw"))}
    alone = {labels: [s.digest for s in of.plan.stages] for labels, of in opened.items()}
    assert alone["xy"] != alone["zw"]
    for labels in ("xy", "zw", "xy"):
        of = opened[labels]
        require_available_data(of)  # reads the files
        assert get_task("Tickets", "intent").labels == tuple(sorted(labels))
        assert [stage.digest for stage in replace(of).plan.stages] == alone[labels]
        cache_dataset("Tickets", "", False, of.get_instances_folder("Tickets"))
        answers = read_instances(of.get_instances_folder("Tickets"), "intent", "train")
        assert {answer for one in answers for answer in one.target} == set(labels)
    study(datasets={"DailyDialog": {}}, training={"epochs": 1})
    assert "Tickets" not in DATASETS
    assert opened["zw"].get_release("Tickets") and "Tickets" in DATASETS


def test_targets_and_sources_take_wildcards_and_any_case() -> None:
    sources = ["DailyDialog/*", "friends/meld_emotion_recognition", "Tickets/*"]
    assert transfers(study(targets=["Tickets/intent"], sources=sources).plan) == [
        ("DailyDialog/emotion_recognition", "Tickets", "intent"),
        ("DailyDialog/dialogue_nli", "Tickets", "intent"),
        ("Friends/MELD_emotion_recognition", "Tickets", "intent"),
        ("urgency", "Tickets", "intent"),
    ]


def test_all_pairs_and_listed_pairs() -> None:
    assert len(transfers(study(pairs="all").plan)) == 5 * 4
    pairs = [{"source": "Tickets/intent", "target": "emotion_recognition"}]
    assert transfers(study(pairs=pairs).plan) == [
        ("Tickets/intent", "DailyDialog", "emotion_recognition")
    ]


def test_without_them_pairs_are_within_each_dataset() -> None:
    plan = study(datasets={"Tickets": own("T")}).plan
    assert transfers(plan) == [("intent", "Tickets", "urgency"), ("urgency", "Tickets", "intent")]


def test_each_stage_reads_its_own_data_and_the_source_is_its_baseline() -> None:
    opened = study(targets=["Tickets/intent"], sources=["Friends/*"])
    first, last = get_transfer(opened).stages
    baselines = {one.path: one for one in opened.plan.stages if one.kind == "baseline"}
    assert baselines[first.path] is first and first.dataset == "Friends"
    assert (first.training.epochs, last.training.epochs) == (2, 3)
    assert last.dataset == "Tickets" and last.data.revision == opened.revisions.data["Tickets"]
    assert last.starts_whole and last.label == "intent_from_MER" and last.kind == "finetune"


def test_a_head_does_not_go_to_another_task_of_the_same_name() -> None:
    opened = study(
        datasets={"Tickets": own("T"), "Other": own("Other", tasks={"intent": TASKS["intent"]})},
        targets=["Tickets/intent"],
        sources=["Other/intent"],
        training={"epochs": 1},
    )
    assert get_transfer(opened).stages[-1].starts[0].parts == ("encoder",)
    assert get_task("Tickets", "Other/intent") is DATASETS["Other"].tasks["intent"]


def test_controls_have_the_source_on_its_own_data() -> None:
    opened = study(targets=["Tickets/intent"], sources=["Friends/*"], controls=["shuffled_source"])
    first = get_transfer(opened, "shuffled_source").stages[0]
    data = first.data
    assert (first.kind, data.name, data.recipe) == ("control", "Friends", "permuted_answers")


def test_one_after_the_other_across_datasets() -> None:
    pairs = [{"source": "Friends/*", "target": "Tickets/intent"}]
    opened = study(pairs=pairs, algorithms=["baseline", "sequential"])
    stages = get_transfer(opened, "sequential").stages
    assert [stage.dataset for stage in stages] == ["Friends", "Tickets"]


def test_selectors_rank_sources_of_other_datasets() -> None:
    sources = ["Friends/*", "DailyDialog/*"]
    names = ["tfidf", "roe", "logme", "probe"]
    opened = study(targets=["Tickets/intent"], sources=sources, selectors=names)
    by_name = {run.variant: run for run in opened.plan.runs if run.method == "selector"}
    values = by_name["logme"].outcome
    assert isinstance(values, Fit)
    assert set(values.settings["sources"]["intent"]) == {
        "Friends/MELD_emotion_recognition",
        "DailyDialog/emotion_recognition",
        "DailyDialog/dialogue_nli",
    }
    fits = [one for one in values.reads if isinstance(one, Fit)]
    assert {(fit.data.name, fit.tasks) for fit in fits} == {("Tickets", ("intent",))}
    assert {fit.on.stage.dataset for fit in fits if fit.on and fit.on.stage} == {
        "Friends",
        "DailyDialog",
    }
    texts = by_name["tfidf"].outcome
    assert isinstance(texts, Fit)
    assert {one.name for one in texts.reads if isinstance(one, Data)} == {"Friends", "DailyDialog"}
    probes = [run.stages[-1] for run in opened.plan.runs if run.variant == "probe"]
    assert len(probes) == 3
    assert all(one.training.epochs == 1 and one.starts_whole for one in probes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"targets": ["Tickets/intnt"]}, "'Tickets/intnt' is not a task of the study"),
        (
            {"targets": ["Tickets/*"], "pairs": [{"source": "*", "target": "*"}]},
            "pairs: The key cannot be",
        ),
        ({"pairs": "all", "algorithms": ["multitask"]}, "multitask trains source and target tog"),
        (
            {"pairs": "all", "multi_source": {"mode": "auto"}},
            "multi_source.mode: The value is 'auto', but some pairs combine two datasets",
        ),
        ({"targets": ["Tickets/intent"], "sources": ["Tickets/intent"]}, "No target has a source"),
        ({"rules": "challenge", "pairs": "all"}, "Friends"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        study(**more)


# --- leaks --------------------------------------------------------------------------------------

LONG = "the parcel that I ordered three weeks ago has never arrived at my door"


def telling(name: str, *texts: str) -> Instance:
    context = " ".join(f"user: {text}" for text in texts)
    starts = [context.index(f"user: {text}") for text in texts]
    return Instance(name, name, "task", context, 0, {}, (), ("x",), turns=tuple(starts))


def test_a_dialogue_is_shared_if_half_of_its_words_are_in_one() -> None:
    train = [telling("a", LONG, "thank you very much for your help"), telling("b", "hello")]
    test = [
        telling("same", LONG.upper() + "!"),
        telling("phrase", "thank you very much for your help", "something else that is long here"),
        telling("other", "I forgot the password of my account and cannot get in any more"),
    ]
    shared = count_shared_dialogues(train, test)
    assert (shared.count, shared.of, shared.example) == (1, 3, ("same", "a"))


def test_a_leak_is_refused_unless_it_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    def told(name: str, number: int) -> dict[str, Any]:
        row = dialogue(name, number)
        row["messages"][1]["content"] = f"{LONG}, and it was number {number} of all"
        return row

    copied = [told("a", number) for number in range(24)]
    tickets = own("T", copied, {"intent": TASKS["intent"]})
    other = own("Other", [told("b", n) for n in range(24)], {"urgency": TASKS["urgency"]})
    more: dict[str, Any] = {
        "datasets": {"Tickets": tickets, "Other": other},
        "training": {"epochs": 1},
        "targets": ["Tickets/intent"],
        "sources": ["Other/*"],
    }
    opened = study(**more)
    with pytest.raises(DataError, match=r"test dialogues of Tickets/intent .*allow_leaks"):
        get_design(opened.config).refuse(opened)
    capsys.readouterr()
    allowed = study(**more, allow_leaks=["Other > Tickets"])
    get_design(allowed.config).refuse(allowed)
    assert "of the 6 test dialogues of Tickets/intent" in capsys.readouterr().err
    metadata = Metadata("across", "", synthetic=False, records=0)
    table = list_shared_dialogues(Frames(allowed, {}, metadata))
    row = table.to_dict("records")[0]
    assert (row["dataset"], row["target"], row["source"]) == ("Tickets", "intent", "Other/urgency")
    assert 0 < row["shared"] <= row["of"] == 6 and " is " in row["example"]
    assert describe_allowed_leaks(Frames(allowed, {}, metadata), table) == [
        "The study allows these leaks: Other > Tickets."
    ]
    run = get_transfer(allowed)
    assert is_shared_source_run(row, run)
    assert not is_shared_source_run({**row, "source": "urgency"}, run)
    assert "shared_dialogues" in [table.name for table in build_analysis(allowed).tables]
    within = study(datasets={"DailyDialog": {}}, training={"epochs": 1})
    assert "shared_dialogues" not in [table.name for table in build_analysis(within).tables]


def test_the_datasets_of_other_designs_are_sources_where_their_files_are() -> None:
    datasets = {
        "EmpatheticDialogues": {"tasks": ["emotion_of_context"]},
        "Tickets": own("T"),
    }
    opened = study(
        datasets=datasets,
        data={"releases": {"EmpatheticDialogues": "chats"}},
        training={"epochs": 1},
        targets=["Tickets/intent"],
        absent=True,
    )
    assert transfers(opened.plan)[0] == (
        "EmpatheticDialogues/emotion_of_context",
        "Tickets",
        "intent",
    )
    assert opened.get_release("EmpatheticDialogues") == "chats"
    assert "chats" in opened.absent[0]
