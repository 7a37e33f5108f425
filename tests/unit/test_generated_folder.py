"""A generated world in a folder counts as synthetic, like one that a study generates."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
import yaml
from record_factory import Run, constructed, make_record, single_source_runs

from shown_results import printed, write_all_tables
from small_models import make_model
from tasktransfer.cli import main
from tasktransfer.data.cache import cache_dataset, read_instances
from tasktransfer.data.prepared import get_instances_folder_name
from tasktransfer.datasets import DATASETS
from tasktransfer.datasets.tiny_world import generate_releases
from tasktransfer.designs import open_study
from tasktransfer.designs.transfer.figures.one_dataset import select_dataset
from tasktransfer.designs.transfer.shown import PLOTS
from tasktransfer.encoding.manifest import is_synthetic, read_manifest
from tasktransfer.errors import DataError
from tasktransfer.present.tables import PrintedTable
from tasktransfer.results.frames import Frames
from tasktransfer.results.records import correct_synthetic_flag, read_record
from tasktransfer.results.study import Study
from transfer_frames import compute_frames, read_frames

DATASET, TASKS = "DailyDialog", ["emotion_recognition", "dialogue_nli"]
PAIR = dict(zip(("source", "target"), TASKS, strict=True))
FIGURE_NAMES = ("heatmap", "transfer_graph")


@dataclass(frozen=True)
class Trained:
    """A study called ``bert``, like the paper's model, and the options that open it."""

    study: Study
    options: list[str]

    @property
    def encoded(self) -> str:
        return self.study.get_encoded_folder(self.study.get_released_data(DATASET), "bert")

    def run(self, command: str, *words: str) -> None:
        assert main([*command.split(), *words, *self.options]) == 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Run world, preparation, token ids and three trainings, each by its command."""
    base = tmp_path_factory.mktemp("folder")
    assert main(["world", "--dialogues", "120", "--out", str(base / "world")]) == 0
    config = base / "study.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "study": "s",
                "results": str(base / "results"),
                "data": {"release": str(base / "world")},
                "datasets": {DATASET: {"tasks": TASKS, "pairs": [PAIR]}},
                "models": [
                    {
                        "name": "bert",
                        "family": "encoder",
                        "checkpoint": str(base / "checkpoint"),
                        "max_length": 32,
                    }
                ],
                "algorithms": ["baseline", "pretrain_finetune"],
                "seeds": [0],
                "training": {"epochs": 1, "limit_train": 4, "limit_dev": 4, "limit_test": 4},
            }
        )
    )
    options = ["--config", str(config)]
    before = Trained(open_study(config, need_inputs=False), options)
    instances = before.study.get_instances_folder(DATASET)
    before.run(f"data prepare --dataset {DATASET} --out", instances)
    rows = [row for task in TASKS for row in read_instances(instances, task, "train")]
    make_model("encoder", [row.context for row in rows], base / "checkpoint")
    # Opened again: the revision of the checkpoint is known only now.
    made = Trained(open_study(config), options)
    made.run(f"encode --dataset {DATASET} --model bert --out", made.encoded)
    for stage in made.study.plan.stages:
        made.run("train --threads 1 --node", stage.digest[:12])
    return made


def analysed(trained: Trained) -> Frames:
    trained.run("data stats --out", trained.study.tables)
    trained.run("collect --complete")
    trained.run("statistics")
    return read_frames(trained.study)


def check_marks(results: Frames, folder: Path) -> None:
    """Check every table, figure and page of a study whose dialogues are all generated."""
    assert results.metadata.synthetic
    assert results["transfer_runs"]["synthetic"].all()
    tables = [table for table in printed(results).values() if isinstance(table, PrintedTable)]
    assert {table.name for table in tables} >= {"table1", "table2", "published_check", "summary"}
    for table in (table for table in tables if table.metadata is not None):  # not the paper's own
        assert table.text.startswith("SYNTHETIC¹ "), table.name
        assert table.notes[0].startswith("1 SYNTHETIC (tiny world)"), table.name
        assert not [name for name in table.frame.columns if name.startswith("published")]
    write_all_tables(results, folder)
    assert pd.read_csv(folder / "table2.csv")["synthetic"].all()
    for name in FIGURE_NAMES:
        figure = PLOTS[name](select_dataset(results, DATASET), DATASET)
        assert figure is not None
        assert "SYNTHETIC" in figure.get_suptitle(), name


def test_every_record_says_it(trained: Trained) -> None:
    records = [read_record(Path(path)) for path in trained.study.list_record_paths()]
    assert len(records) == 3
    assert all(record["synthetic"] for record in records)


def test_tables_figures_and_report_say_it(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check_marks(analysed(trained), tmp_path)
    trained.run("report")
    page = Path(trained.study.report).read_text()
    assert "<title>SYNTHETIC" in page and "not from real dialogues" in page
    capsys.readouterr()
    trained.run("data stats")
    assert capsys.readouterr().out.startswith("SYNTHETIC")
    trained.run(f"explain {DATASET} bert pretrain_finetune ER DNLI")
    assert "SYNTHETIC (tiny world): generated dialogues" in capsys.readouterr().out
    trained.run("plan --json")
    assert json.loads(capsys.readouterr().out)["synthetic"] is True


def test_records_that_called_it_real_are_not_believed(trained: Trained, tmp_path: Path) -> None:
    """Older records said so; the prepared data have the correct value."""
    results = tmp_path / "results"
    shutil.copytree(trained.study.config.results, results)
    for path in results.glob("stages/**/metrics.json"):
        path.write_text(path.read_text().replace('"synthetic": true', '"synthetic": false'))
    old = ["--config", trained.options[1], "--set", f"results={results}"]
    again = Trained(open_study(trained.options[1], {"results": str(results)}), old)
    assert not any(read_record(Path(path))["synthetic"] for path in again.study.list_record_paths())
    check_marks(analysed(again), tmp_path)


def test_token_ids_that_do_not_say_it_ask_the_instances(trained: Trained, tmp_path: Path) -> None:
    manifest = read_manifest(Path(trained.encoded))
    assert manifest.pop("synthetic") is True
    assert is_synthetic(Path(trained.encoded), manifest)
    with pytest.raises(
        DataError,
        match=r"manifest.json: The value of synthetic is None.* run `tasktransfer encode` again",
    ):
        is_synthetic(tmp_path / "elsewhere" / "bert", manifest)


def test_before_it_is_prepared_nothing_is_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_releases(tmp_path / "world", dialogues=120)
    (tmp_path / "study.yaml").write_text(
        f"{{study: s, results: {tmp_path}/results, data: {{release: {tmp_path}/world}}, "
        f"datasets: {{{DATASET}: {{tasks: [{', '.join(TASKS)}]}}}}, "
        "models: [{name: m, family: encoder, checkpoint: tiny}]}"
    )
    options = ["--config", str(tmp_path / "study.yaml")]
    assert main(["plan", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["synthetic"] is None
    assert main(["data", "stats", *options]) == 0
    assert capsys.readouterr().out.startswith("SYNTHETIC")
    assert main(["plan", *options]) == 0
    assert "(synthetic data" in capsys.readouterr().out


# --- one dataset generated, the other real -------------------------------------------------------


def mixed(folder: Path) -> Frames:
    """Write records on real DailyDialog and generated Friends, named like the paper's BERT."""
    runs = [
        run
        for dataset in DATASETS
        for run in single_source_runs(dataset, ["bert"], list(DATASETS[dataset].tasks)[:2], [0])
    ]

    def score(run: Run) -> float:
        return 50.0 + 2 * len(run[3])

    return compute_frames(constructed(folder, runs, score, synthetic=["Friends"]))


def test_each_dataset_is_marked_for_itself(tmp_path: Path) -> None:
    results = mixed(tmp_path)
    assert results.metadata.synthetic and results.metadata.real == ["DailyDialog"]
    tables = printed(results)
    for name in ("table1", "table2"):
        table = tables[name]
        assert isinstance(table, PrintedTable) and table.badges.startswith("SYNTHETIC¹")
        assert "The dialogues of DailyDialog are real." in table.notes[0]
    assert isinstance(tables["table1"], PrintedTable)
    frame = tables["table1"].frame
    compared = frame.filter(like="published").notna().any(axis=1)
    assert compared.groupby(frame["dataset"]).unique().map(list).to_dict() == {
        "DailyDialog": [True],
        "Friends": [False],
    }
    write_all_tables(results, tmp_path / "printed")
    rows = pd.read_csv(tmp_path / "printed" / "table2.csv")
    assert rows.groupby("dataset")["synthetic"].all().to_dict() == {
        "DailyDialog": False,
        "Friends": True,
    }
    titles = {}
    for dataset in DATASETS:
        figure = PLOTS["heatmap"](select_dataset(results, dataset), dataset)
        assert figure is not None
        titles[dataset] = "SYNTHETIC" in figure.get_suptitle()
    assert titles == {"DailyDialog": False, "Friends": True}


def test_preparing_tells_the_datasets_of_a_mixed_release_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_releases(tmp_path / "world", dialogues=120)
    release = tmp_path / "world" / "TLiDB_Friends" / "TLiDB_Friends.json"
    release.write_text(release.read_text().replace('"synthetic":true', '"synthetic":false', 1))
    (tmp_path / "study.yaml").write_text(
        f"{{study: s, results: {tmp_path}/results, data: {{release: {tmp_path}/world}}, "
        "datasets: {DailyDialog: {tasks: all}, Friends: {tasks: all}}, "
        "models: [{name: m, family: encoder, checkpoint: tiny}]}"
    )
    where = ["--config", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "tables")]
    assert main(["data", "stats", *where]) == 0
    assert capsys.readouterr().out.startswith("SYNTHETIC (tiny world), but Friends is real. ")
    for name in ("table1", "lengths", "overlap_data"):
        rows = pd.read_parquet(tmp_path / "tables" / f"{name}.parquet")
        assert rows.groupby("dataset")["synthetic"].all().to_dict() == {
            "DailyDialog": True,
            "Friends": False,
        }


def test_a_record_is_corrected_by_its_own_data_only(tmp_path: Path) -> None:
    """Prepared data of another revision, or of the full split, do not apply."""
    generate_releases(tmp_path / "world", dialogues=120)
    run = ("Friends", "bert", "baseline", (), "question_answering", 0)
    for revision, few_sample, corrected in (("r2", True, 0), ("r1", False, 0), ("r1", True, 1)):
        root = tmp_path / f"{revision}-{few_sample}"
        folder = Path(get_instances_folder_name(root, "Friends", revision, few_sample=few_sample))
        cache_dataset("Friends", tmp_path / "world", few_sample, folder)
        assert correct_synthetic_flag(make_record(run, 50.0), root)["synthetic"] == bool(corrected)
