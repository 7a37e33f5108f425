"""Find why a trained response rater is worse than an untrained cosine, one factor at a time.

    python benchmarks/panel_factors.py [--out results/panel-factors] [--seeds 1] [SETTING ...]

One model (`single` from the paper, or our `twin`) is trained on two domains of 800 pairs each. It
is evaluated on two rated sets selected in advance, Persona_Zhao and DailyDialog_Gupta; no other
rated set is read. Each setting changes one factor of the base setting: labels by construction, a
classifier on the first token, 100 updates and a learning rate of 1e-4. Prints one row per setting:
Spearman's correlation x 100 (mean over seeds, 95 % interval over contexts and seeds) and accuracy
on dev pairs. It needs the real data and MiniLM (docs/panel.md), and resumes where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from empathetic_study import make
from tasktransfer.designs import get_design, open_study
from tasktransfer.designs.commands import read_frames, write_collected_tables, write_statistics

SETS = ("Persona_Zhao", "DailyDialog_Gupta")
ONE_LABELLER = {"model": "minilm", "epochs": 1, "limit_train": 4000, "limit_dev": 300}
LABELLED = {"pairs.labels": "labeller", "labeller": {**ONE_LABELLER, "learning_rate": 1e-4}}
BY_TWIN = {"pairs.labels": "labeller", "labeller": {**ONE_LABELLER, "two_towers": True}}
TWIN = {"methods": ["twin"], "twin": {"epochs": 2}}
EVERY = ["drop", "shuffle", "repeat", "random_utterance", "context_copy", "mask_and_fill"]
RANDOM = {"pairs.perturbations": ["random_utterance"]}

SETTINGS: dict[str, dict[str, Any]] = {
    "twin": TWIN,
    "twin, all perturbations": {**TWIN, "twin": {"epochs": 2, "perturbations": EVERY}},
    "base": {},
    "random utterances alone": RANDOM,
    "labels of the labeller": LABELLED,
    "pooler": {"models.reads": "pooler"},
    "twin, learning rate 1e-4": {**TWIN, "twin": {"epochs": 2, "learning_rate": 1e-4}},
    "learning rate 2e-5": {"joint.learning_rate": 2e-5},
    "learning rate 4e-4": {"joint.learning_rate": 4e-4},
    "50 updates": {"joint.epochs": 1},
    "300 updates": {"joint.epochs": 6},
    "labels of a labeller of two towers": BY_TWIN,
}


def build_base_config(out: Path, seeds: int) -> dict[str, Any]:
    model = {"name": "minilm", "family": "encoder", "checkpoint": "./models/all-MiniLM-L6-v2"}
    return {
        "study": "what a rater loses",
        "design": "panel",
        "results": str(out),
        "data": {"release": "../shared"},
        "models": [{**model, "max_length": 64}],
        "seeds": seeds,
        "training": {"batch_size": 32, "dropout": 0.0, "precision": "bfloat16"},
        "domains": ["DailyDialog", "ConvAI2"],
        "rated_sets": list(SETS),
        "methods": ["single"],
        "pairs": {"train": 800, "dev": 150, "candidates_per_pair": 3.0, "labels": "made"},
        "joint": {"learning_rate": 1e-4, "epochs": 2, "round_updates": None, "patience": None},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/panel-factors"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("settings", nargs="*", metavar="SETTING")
    chosen = parser.parse_args()
    for name in chosen.settings or SETTINGS:
        config = build_base_config(chosen.out, chosen.seeds)
        for key, value in SETTINGS[name].items():
            section, _, field = key.partition(".")
            if section == "models":
                config["models"][0][field] = value
            elif field:
                config[section] = {**config[section], field: value}
            else:
                config[section] = value
        print_row(name, config)


def print_row(name: str, config: dict[str, Any]) -> None:
    file = Path(f"{config['results']}.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(config))
    study = open_study(file)
    make(study)
    design = get_design(study.config)
    write_collected_tables(design, study, complete=True)
    write_statistics(design, study)
    frames = read_frames(study, design.analysis(study))
    own, spent = frames["correlations"], frames["trainings"]
    if name == next(iter(SETTINGS)):
        for method in own["method"].unique():
            if method not in config["methods"]:
                print(f"{method:45}{_format_correlations(own, method)}", flush=True)
    trained = spent[spent["kind"].isin(config["methods"])]
    dev, minutes = trained["dev_score"].mean(), 60 * spent["hours"].sum()
    correlations = _format_correlations(own, config["methods"][0])
    print(
        f"{name:45}{correlations}   dev {dev:5.1f} %   {minutes:4.1f} min",
        flush=True,
    )
    for one in spent[spent["kind"] == "labeller"].to_dict("records"):
        print(f"    labeller, balanced accuracy on its test pairs: {one['test_balanced']:.1f} %")


def _format_correlations(own: Any, method: str) -> str:
    rows = own[own["method"] == method].set_index("set")
    return "   ".join(
        f"{one['value']:5.1f} [{one['bootstrap_low']:5.1f}, {one['bootstrap_high']:5.1f}]"
        for one in (rows.loc[name] for name in SETS)
    )


if __name__ == "__main__":
    main()
