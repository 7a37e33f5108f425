"""The first-ranked source of each target, for the policy ``selector:NAME``."""

from __future__ import annotations

from pathlib import Path

from tasktransfer.errors import ConfigError
from tasktransfer.results.store import read_frame
from tasktransfer.results.study import Study
from tasktransfer.selection.choose import compute_mean_ranks, pick_best_names
from tasktransfer.selection.declared import VALUES


def select_first_sources(study: Study, dataset: str, model: str, selector: str) -> dict[str, str]:
    """Map each target to the source that a selector ranks first, by the mean rank over seeds.

    Ties go to the alphabetically first source. Targets without a value are left out.

    Raises:
        ConfigError: the study does not have the selector's values.
        RecordError: their table is absent or damaged.
    """
    path = Path(study.tables, "selectors.parquet")
    values, _ = read_frame(path, VALUES, "Add selectors to the config and run snakemake")
    rows = values[(values["dataset"] == dataset) & (values["model"] == model)]
    rows = rows[(rows["selector"] == selector) & rows["value"].notna()]
    if rows.empty:
        raise ConfigError(
            f"--policy selector:{selector}: The table {path} contains no values of the selector "
            f"{selector} for the model {model} and the dataset {dataset}. Add the selector to the "
            "key selectors of the config, and run snakemake."
        )
    mean_ranks = compute_mean_ranks(rows)
    targets = mean_ranks.index.get_level_values("target").unique()
    return {
        str(task): pick_best_names(mean_ranks.xs(task, level="target"), 1)[0] for task in targets
    }
