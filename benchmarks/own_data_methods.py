"""Compare fine-tuning with simple references on a user's own dialogues, at several sizes.

    python -m benchmarks.own_data_methods FOLDER --study STUDY.yaml
    python -m benchmarks.own_data_methods FOLDER --dialogue ../shared/dialogue \\
        --model models/all-MiniLM-L6-v2

The first form compares methods on the target of a study, such as ``tasktransfer init`` writes. The
second form uses dialogues of EmpatheticDialogues with the emotion of the situation as their label.
With ``--corpus``, it uses another corpus of ``benchmarks/own_corpora.py``: comments of GoEmotions
with a single emotion, turns of Topical-Chat with their sentiment or their knowledge sources, or
dialogues of MultiWOZ with their domains. The training instances of these corpora come from their
dev splits, because only dev and test splits are available.

For each size, runs one study: the target's baseline with the recipe of its model, and the
references, on the same training instances (the first ones of the training split). The dev split
that selects the best epoch of a baseline is limited to a fifth of the size, because a user with 50
labelled dialogues has no 500 others for this purpose.

Prints one line per size and method, and writes FOLDER/own-data.csv: measures on the test split in
percent (means over seeds), their standard deviation over seeds, the paired difference of the
baseline from each reference with its interval, the states of the seeds (such as collapsed), and
seconds per training run. Finished training runs are not repeated. Training MiniLM once takes three
to six minutes on one core. With ``--only REFERENCE``, fits this reference alone, and replaces its
rows of the table.

With ``--variant``, fine-tunes in another way alone, and adds one row per size: with heads that are
fitted before the first update (which ``recipe: auto`` does only for tasks that label turns), with a
low-rank adapter, or after training on the emotions of DailyDialog. The latter needs
``--feta``, the folder of FETA's release; the source has as many training instances as the target.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import yaml

import tasktransfer as tt
from benchmarks.own_corpora import CORPORA, Document
from tasktransfer.core.references import CONTRASTIVE, FINE_TUNING, REFERENCES
from tasktransfer.data.cache import MANIFEST, cache_dataset
from tasktransfer.designs import get_design, open_study
from tasktransfer.files import replace_file
from tasktransfer.jobs import node_jobs
from tasktransfer.results.records import read_record
from tasktransfer.results.schema import Record

FINE_TUNED = "fine-tuned"
FITTED, LORA, TRANSFER = "fitted heads", "LoRA", "after emotions of DailyDialog"
VARIANTS = {"fitted-heads": FITTED, "lora": LORA, "transfer": TRANSFER}
RANK = 16
CONFIG = "study.yaml"
LIMIT_TEST = 500


def read_study(file: Path) -> Document:
    """Read a config, and make the paths of its files, checkpoints and release absolute."""
    document: Document = yaml.safe_load(file.read_text(encoding="utf-8"))
    named = (
        *((section, "files") for section in document["datasets"].values()),
        *((model, "checkpoint") for model in document["models"]),
        (document.get("data", {}), "release"),
    )
    for section, key in named:
        if key in section:
            section[key] = make_absolute(section[key], file.parent)
    return document


def make_absolute(value: Any, folder: Path) -> Any:
    """Make the paths in a value absolute that exist relative to a folder."""
    if isinstance(value, dict):
        return {key: make_absolute(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [make_absolute(each, folder) for each in value]
    path = folder / str(value)
    return str(path.resolve()) if path.exists() else value


def vary_study(document: Document, variant: str, feta: Path | None = None) -> Document:
    """Return a study that fine-tunes in another way, without references.

    Args:
        variant: a value of ``VARIANTS``.
        feta: folder of FETA's release, for ``TRANSFER``.
    """
    document = {**document, "references": []}
    if variant == FITTED:
        training = {**document["training"], "head_initialization": "logistic_regression"}
        return {**document, "training": training}
    if variant == LORA:
        models = [{**model, "adapter": {"rank": RANK}} for model in document["models"]]
        return {**document, "models": models}
    [(dataset, section)] = document["datasets"].items()
    [task] = section["tasks"]
    pair = {"source": "DailyDialog/emotion_recognition", "target": f"{dataset}/{task}"}
    return {
        **document,
        "data": {"release": str(Path(feta or ".").resolve())},
        "datasets": {"DailyDialog": {"tasks": ["emotion_recognition"]}, dataset: section},
        "pairs": [pair],
        "algorithms": ["pretrain_finetune"],
        "controls": [],
    }


def find_target(document: Document) -> str:
    """Return a study's target, as ``DATASET/TASK``. Without ``targets``, it is the only task."""
    names = document.get("targets") or [
        f"{dataset}/{task}"
        for dataset, section in document["datasets"].items()
        for task in section["tasks"]
    ]
    if len(names) != 1:
        raise SystemExit(
            f"The benchmark compares methods on one target, but the study has {len(names)} "
            f"({', '.join(names)}). Set `targets` in the study to one of them."
        )
    return str(names[0])


def reduce_study(document: Document, size: int, seeds: int) -> Document:
    """Return a study of the target's baseline and the references at one size, without sources."""
    dataset, task = find_target(document).split("/")
    declared = document["datasets"][dataset]
    training = document.get("training", {})
    return {
        "study": "fine-tuning next to references",
        **({"data": document["data"]} if "data" in document else {}),
        "datasets": {dataset: {**declared, "tasks": {task: declared["tasks"][task]}}},
        "models": document["models"],
        "algorithms": ["baseline"],
        "references": [*REFERENCES],
        "seeds": seeds,
        "training": {
            "recipe": "auto",
            "limit_train": size,
            "limit_dev": max(20, size // 5),
            "limit_test": training.get("limit_test", LIMIT_TEST),
        },
    }


def run_study(folder: Path, document: Document, cores: int) -> None:
    """Run a study in its folder. Finished jobs are not repeated.

    Raises:
        SystemExit: the study ends in an error. The message contains it.
    """
    write_study(folder, document)
    command, file = ["tasktransfer", "run", CONFIG, "--cores", str(cores)], folder / "run.log"
    with file.open("a", encoding="utf-8") as log:
        ended = subprocess.run(command, cwd=folder, check=False, stdout=log, stderr=log)
    if ended.returncode:
        error = file.read_text(encoding="utf-8").rpartition("error:")[2].strip()
        raise SystemExit(f"The study in {folder} ended in an error (see run.log there): {error}")


def write_study(folder: Path, document: Document) -> None:
    """Write the config of a study into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(document, sort_keys=False)
    (folder / CONFIG).write_text(text, encoding="utf-8")


def fit_reference(folder: Path, document: Document, size: int, name: str) -> pd.DataFrame:
    """Fit a reference of a study without its baseline, and return its row."""
    write_study(folder, document)
    with chdir(folder):
        study = open_study(CONFIG)
        fits = [fit for fit in study.plan.fits if fit.learner == name]
        dataset = fits[0].data.name
        release, few = study.get_release(dataset), study.config.data.few_sample
        if not Path(study.get_instances_folder(dataset), MANIFEST).exists():
            cache_dataset(dataset, release, few, study.get_instances_folder(dataset))
        for fit in fits:
            node_jobs.fit_node(study, fit, get_design(study.config))
        records = [read_record(Path(study.get_record_path(fit))) for fit in fits]
    (target,) = fits[0].tasks
    about = {"dataset": dataset, "model": document["models"][0]["name"], "target": target}
    return pd.DataFrame([{"size": size, **about, "method": name, **describe_fits(records, target)}])


def describe_fits(records: Sequence[Record], target: str) -> dict[str, float]:
    """Return means and standard deviations of the measures of a reference's fits, and seconds."""
    measures = pd.DataFrame([record["results"][target]["measures"] for record in records])
    return {
        **measures.mean().to_dict(),
        **measures.std().dropna().add_prefix("sd_").to_dict(),
        "seconds": fmean(record["provenance"]["seconds"]["total"] for record in records),
    }


def read_methods(folder: Path, size: int) -> pd.DataFrame:
    """Return one row per method of a finished study."""
    tables = tt.load_results(folder / "results")
    fits: dict[str, list[Record]] = {}
    with chdir(folder):
        study = open_study(CONFIG)
        for fit in study.plan.fits:  # not those that another setting has left in the folder
            fits.setdefault(fit.learner, []).append(read_record(Path(study.get_record_path(fit))))
    rows: list[dict[str, Any]] = []
    for keys, group in tables["references"].groupby(["dataset", "model", "target"], sort=False):
        about = {"size": size, **dict(zip(("dataset", "model", "target"), keys, strict=True))}
        measures = describe_trainings(tables, about, "baseline")
        states = " ".join(group["states"].iloc[0])
        rows.append({**about, "method": FINE_TUNED, **measures, "states": states})
        compared = group.set_index("reference")[["delta", "low", "high", "q"]]
        differences = compared.add_prefix("fine_tuned_").to_dict("index")
        differences |= compare_with_contrastive(select_rows(tables["methods"], about))
        for name in filter(fits.get, REFERENCES):
            numbers = describe_fits(fits[name], about["target"])
            rows.append({**about, "method": name, **numbers, **differences.get(name, {})})
    return pd.DataFrame(rows)


def compare_with_contrastive(methods: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the difference of fine-tuning from contrastive fine-tuning, if this is the best.

    The table ``methods`` compares all methods with the recommended one only.
    """
    rows = methods.set_index("method")
    if not rows["recommended"].get(CONTRASTIVE, False):
        return {}
    names = {"delta": "delta", "delta_low": "low", "delta_high": "high", "q": "q"}
    row = rows.loc[FINE_TUNING, [*names]].rename(names).add_prefix("fine_tuned_")
    return {CONTRASTIVE: row.to_dict()}


def read_variant(folder: Path, size: int, variant: str, target: str) -> pd.DataFrame:
    """Return the rows of a finished study that fine-tunes in another way."""
    tables = tt.load_results(folder / "results")
    algorithm = "pretrain_finetune" if variant == TRANSFER else "baseline"
    runs = tables["transfer_runs"]
    chosen = runs[(runs["algorithm"] == algorithm) & (runs["target"] == target)]
    names = ["dataset", "model", "target"]
    rows: list[dict[str, Any]] = []
    for about in chosen[names].drop_duplicates().to_dict("records"):
        named = {"size": size, **about, "method": f"{FINE_TUNED}, {variant}"}
        collapsed = select_rows(tables["collapsed"], about)
        count = collapsed.loc[collapsed["algorithm"] == algorithm, "n_collapsed"].sum()
        measures = describe_trainings(tables, about, algorithm)
        rows.append({**named, **measures, "states": f"{count} collapsed"})
    return pd.DataFrame(rows)


def describe_trainings(
    tables: tt.Results, about: Mapping[str, Any], algorithm: str
) -> dict[str, float]:
    """Return means and standard deviations of an algorithm's measures, and means of its runs."""
    scores, runs = tables.scores, tables["transfer_runs"]
    chosen = select_rows(scores[scores["method"] == algorithm], about)
    measures = chosen[chosen["split"] == "test"].groupby("measure")["value"]
    means = select_rows(runs[runs["algorithm"] == algorithm], about)[
        ["seconds", "dev_score"]
    ].mean()
    return {
        **measures.mean().to_dict(),
        **measures.std().add_prefix("sd_").to_dict(),
        **means.to_dict(),
    }


def select_rows(frame: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a model and target."""
    same = (frame["dataset"] == about["dataset"]) & (frame["model"] == about["model"])
    return frame[same & (frame["target"] == about["target"])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run the missing studies and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder for the studies and the table")
    parser.add_argument("--study", type=Path, help="config of a study of own data")
    parser.add_argument("--dialogue", type=Path, help="folder of the public corpora")
    parser.add_argument("--model", type=Path, help="folder of a checkpoint, with --dialogue")
    parser.add_argument("--corpus", choices=CORPORA, default="empathetic")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 300, 1000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=REFERENCES, help="fit this reference alone")
    parser.add_argument("--variant", choices=VARIANTS, help="fine-tune in this way alone")
    parser.add_argument("--feta", type=Path, help="folder of FETA's release, for transfer")
    parser.add_argument("--cores", type=int, default=1)
    chosen = parser.parse_args(arguments)
    if chosen.study is None and not (chosen.dialogue and chosen.model):
        parser.error("name --study, or both --dialogue and --model")
    if chosen.variant == "transfer" and chosen.feta is None:
        parser.error("--variant transfer needs --feta")
    if chosen.study:
        document = read_study(chosen.study)
    else:
        document = CORPORA[chosen.corpus](chosen.folder, chosen.dialogue, chosen.model)
    for size in chosen.sizes:
        rows = compare_methods(document, size, chosen)
        table = replace_rows(chosen.folder / "own-data.csv", rows)
    print(table.to_string(index=False))


def compare_methods(document: Document, size: int, chosen: argparse.Namespace) -> pd.DataFrame:
    """Run the study at one size, and return the rows of its methods."""
    folder = chosen.folder / str(size)
    reduced = reduce_study(document, size, chosen.seeds)
    if chosen.only:
        return fit_reference(folder, reduced, size, chosen.only)
    if chosen.variant:
        variant, target = VARIANTS[chosen.variant], find_target(document)
        folder = chosen.folder / f"{size}-{chosen.variant}"
        run_study(folder, vary_study(reduced, variant, chosen.feta), chosen.cores)
        return read_variant(folder, size, variant, target.split("/")[1])
    run_study(folder, reduced, chosen.cores)
    return read_methods(folder, size)


def replace_rows(file: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """Replace the rows of a size and its methods in the table, write it, and return it."""
    earlier = pd.read_csv(file) if file.exists() else rows.iloc[:0]
    same = (earlier["size"] == rows["size"].iloc[0]) & earlier["method"].isin(rows["method"])
    kept = earlier[~same]
    table = pd.concat([kept, rows.round(2)]) if len(kept) else rows.round(2)
    table = table.sort_values("size", kind="stable")
    with replace_file(file) as part:
        table.to_csv(part, index=False)
    return table


if __name__ == "__main__":
    main()
