"""Check which selectors find the helpful source in the tiny world.

    python -m benchmarks.planted_selectors OUT [--family decoder] [--selectors warmup_drop]
                                               [--dataset Friends] [--scrambled]

The study is workflow/presets/planted.yaml: emotion_recognition helps topic_classification,
dialogue_act_classification does not. In Friends, MELD's emotions help emory's, and characters do
not (docs/tiny-world.md). Prints one line per selector and seed with the values of both sources, and
the number of seeds in which the helpful source is higher. Only the models that the selectors read
are trained (half a minute per baseline), and kept in OUT.

``--scrambled`` permutes the answers of both sources over their turns, so that neither source is
informative. A selector that still prefers the helpful source does not detect the planted effect.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import yaml

from tasktransfer.core.nodes import Fit, Node
from tasktransfer.core.runs import Run
from tasktransfer.datasets import tiny_world
from tasktransfer.designs import open_study
from tasktransfer.results.records import get_selected_round, read_record
from tasktransfer.results.study import Study
from tasktransfer.selection.nodes import is_selection_run

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = {
    helps.dataset: (helps.target, helps.source, unrelated.source)
    for helps in tiny_world.HELPFUL
    for unrelated in tiny_world.UNRELATED
    if (unrelated.dataset, unrelated.target) == (helps.dataset, helps.target)
}
"""Dataset → target, its helpful source, and an unrelated source."""
ANSWERS = ("label", "entity", "normalized_entity")
OF_FAMILY = {
    "encoder": ["logme", "gradient", "probe"],
    "decoder": ["warmup_drop"],
    "encoder_decoder": ["warmup_drop"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--family", choices=OF_FAMILY, default="encoder")
    parser.add_argument("--selectors", nargs="+")
    parser.add_argument("--dataset", choices=CLAIMS, default="DailyDialog")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cores", default="all")
    parser.add_argument("--scrambled", action="store_true", help="sources with permuted answers")
    chosen = parser.parse_args()
    target, helps, unrelated = CLAIMS[chosen.dataset]
    config = yaml.safe_load((ROOT / "workflow" / "presets" / "planted.yaml").read_text("utf-8"))
    (model,) = config["models"]
    if chosen.family != model["family"]:
        model |= {"name": f"tiny-{chosen.family}", "family": chosen.family}
    names = chosen.selectors or OF_FAMILY[chosen.family]
    config |= {"models": [model], "selectors": names, "seeds": chosen.seeds, "results": "results"}
    pairs = [{"source": source, "target": target} for source in (helps, unrelated)]
    config["datasets"] = {chosen.dataset: {"tasks": [helps, target, unrelated], "pairs": pairs}}
    chosen.out.mkdir(parents=True, exist_ok=True)
    os.chdir(chosen.out)
    if chosen.scrambled:
        _write_scrambled_world(Path("world"), chosen.dataset, (helps, unrelated))
        config["data"] = {"release": "world"}
    file = Path(f"{chosen.family}.yaml")
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    study = open_study(str(file))
    runs = [run for run in study.plan.runs if is_selection_run(run)]
    _run_jobs(study, [_get_last_node(run) for run in runs], str(file), chosen.cores)
    for name in names:
        of_seed: dict[int, dict[str, float]] = {}
        for run in (run for run in runs if run.variant == name):
            of_seed.setdefault(run.seed, {}).update(_read_values(study, run, target))
        for seed, of in sorted(of_seed.items()):
            print(f"{name:12} seed {seed}  {of[helps]:10.4g}  {of[unrelated]:10.4g}")
        found = sum(of[helps] > of[unrelated] for of in of_seed.values())
        print(f"{name:12} {helps} first in {found} of {len(of_seed)} seeds\n", flush=True)


def _write_scrambled_world(folder: Path, dataset: str, tasks: tuple[str, ...]) -> None:
    """Write a tiny world in which these tasks' answers are permuted over all annotations."""
    tiny_world.generate_releases(folder)
    file = folder / f"TLiDB_{dataset}" / f"TLiDB_{dataset}.json"
    release = json.loads(file.read_text(encoding="utf-8"))
    turns = [turn for dialogue in release["data"] for turn in dialogue["dialogue"]]
    for task in tasks:
        found = [turn[task] for turn in turns if turn.get(task)]
        annotated = [one for of in found for one in (of if isinstance(of, list) else [of])]
        answers = [{key: one[key] for key in ANSWERS if key in one} for one in annotated]
        random.Random(0).shuffle(answers)
        for annotation, answer in zip(annotated, answers, strict=True):
            annotation.update(answer)
    file.write_text(json.dumps(release), encoding="utf-8")


def _get_last_node(run: Run) -> Node:
    return run.outcome if isinstance(run.outcome, Fit) else run.stages[-1]


def _read_values(study: Study, run: Run, target: str) -> dict[str, float]:
    """Return source → value for one run."""
    record = read_record(Path(study.get_record_path(_get_last_node(run))))
    if isinstance(run.outcome, Fit):
        return dict(record["report"][target])
    (source,) = run.about["sources"]
    return {source: get_selected_round(record, (target,)).dev_score}


def _run_jobs(study: Study, nodes: list[Node], file: str, cores: str) -> None:
    words = ["--snakefile", str(ROOT / "Snakefile"), "--configfile", file, "--cores", cores]
    words += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    records = [study.get_record_path(node) for node in nodes]
    subprocess.run([sys.executable, "-m", "snakemake", *records, *words], check=True)


if __name__ == "__main__":
    main()
