"""Rows of the printed tables of statistics, controls and references, and their source runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from tasktransfer.core.nodes import Fit
from tasktransfer.core.references import COMPUTED_LABELS, REFERENCES
from tasktransfer.core.runs import Run
from tasktransfer.designs.transfer.algorithms import CONTROLS, VERDICTS
from tasktransfer.designs.transfer.columns import COMPONENTS
from tasktransfer.designs.transfer.runs import BASELINE, NO_MODEL, is_reference, is_transfer
from tasktransfer.designs.transfer.statistics.matrices import summarise_agreement
from tasktransfer.designs.transfer.statistics.overlap import TEST_INSTANCES
from tasktransfer.results.frames import Frames

Row = Mapping[str, Any]

MOST_PAIRS = 20
"""Maximum number of printed pairs of tasks; the frame has all of them."""
MOST_CELLS = 200
"""Maximum number of printed cells with their controls; the frame has all of them."""
MOST_LABELS = 300
"""Maximum number of printed labels; the frame has all of them."""
MOST_ERRORS = 12
"""Maximum number of printed instances of a task."""
_INSTANCE = ["dataset", "target", "instance"]
_GROUP = ["dataset", "model", "algorithm"]
_PLACE = [*_GROUP, "source", "target"]


def list_variance_components(frames: Frames) -> pd.DataFrame | None:
    """Return the variance components, with one row per group."""
    frame = frames["variance"]
    if frame.empty:
        return None
    wide = frame.drop_duplicates(_GROUP)[_GROUP]
    for component in COMPONENTS:
        part = frame[frame["component"] == component].set_index(_GROUP)["share"]
        wide = wide.join(part.rename(component), on=_GROUP)
    return wide


def list_overall_agreement(frames: Frames) -> pd.DataFrame:
    """Return the mean agreement between models and between algorithms, by dataset."""
    return summarise_agreement(frames["agreement"])


def list_asymmetric_pairs(frames: Frames) -> pd.DataFrame:
    """Return the pairs of tasks whose two directions differ most."""
    frame = frames["asymmetry"]
    size = frame["difference"].abs()
    compared = frame[size.notna()].assign(size=size[size.notna()])
    ordered = compared.sort_values("size", ascending=False, kind="stable")
    return ordered.drop(columns="size").head(MOST_PAIRS)


def list_shared_data(frames: Frames) -> pd.DataFrame:
    """Return the pairs of tasks that share the most data."""
    return frames["overlap"].sort_values("share", ascending=False, kind="stable").head(MOST_PAIRS)


def list_reference_scores(frames: Frames) -> pd.DataFrame | None:
    """Return each task's reference scores and mean baseline score per model.

    None if the study has references with intervals, or if no reference was computed.
    """
    reference, runs = frames["reference"], frames["transfer_runs"]
    if "references" in frames or reference.empty:
        return None
    keys = ["dataset", "target"]
    scored = reference[reference["target"].isin(runs["target"])]
    wide = scored.pivot(index=keys, columns="reference", values="score")
    alone = runs[runs["algorithm"] == BASELINE]
    means = alone.groupby([*keys, "model"], sort=False)["score"].mean()
    rows = means.rename("baseline").reset_index().merge(wide.reset_index(), on=keys)
    models = frames.metadata.order_names("model", rows["model"])
    order = rows["model"].map({model: number for number, model in enumerate(models)})
    rows = rows.assign(order=order).sort_values([*keys, "order"], kind="stable")
    return rows.reindex(columns=[*keys, "model", "baseline", *COMPUTED_LABELS])


def list_references(frames: Frames) -> pd.DataFrame | None:
    """Return the comparison of baselines with references, or None without references."""
    if "references" not in frames:
        return None
    frame = frames["references"]
    best = frame["is_best"]
    # A state compares the baseline with the best reference only.
    return frame.assign(mark=best.map({True: "best", False: ""}), state=frame["state"].where(best))


def list_methods(frames: Frames) -> pd.DataFrame | None:
    """Return the methods of each target with marks, or None if methods are not compared."""
    frame = frames.get("methods")
    if frame is None or frame.empty:
        return None
    mark = frame["is_best"].map({True: "best", False: ""})
    return frame.assign(mark=mark.mask(frame["recommended"], "recommended"))


def list_label_scores(frames: Frames) -> pd.DataFrame | None:
    """Return the ``MOST_LABELS`` first rows of label scores.

    None if no task has one label per input.
    """
    return frames["labels"].head(MOST_LABELS) if "labels" in frames else None


def list_errors(frames: Frames) -> pd.DataFrame | None:
    """Return the predictions of all methods for instances that most methods get wrong.

    None if the study has no task of the user with one label per input.
    """
    frame = frames.get("errors")
    if frame is None or frame.empty:
        return None
    places = frame[_INSTANCE].drop_duplicates()
    first = places.groupby(["dataset", "target"], sort=False).head(MOST_ERRORS)
    rows = frame.merge(first, on=_INSTANCE)
    several = rows.loc[rows["model"] != NO_MODEL, "model"].nunique() > 1
    names = rows["method"].map(lambda method: REFERENCES.get(method, "fine-tuned"))
    models = rows["model"].map(lambda model: f", {model}" if model != NO_MODEL else "")
    return rows.assign(predicted_by=names + models if several else names)


def describe_errors(frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    """Return a note on omitted instances, and on the command that shows their texts."""
    shown, total = (len(rows[_INSTANCE].drop_duplicates()) for rows in (frame, frames["errors"]))
    part = (
        f"The table shows {shown} of {total:,} instances; tables/errors.parquet contains all "
        "instances. "
    )
    command = "`tasktransfer errors --texts` shows the texts of wrong predictions."
    return (f"{part if shown < total else ''}{command}",)


def list_learning_curves(frames: Frames) -> pd.DataFrame | None:
    """Return the computed learning curves, or None without tasks with one label per instance."""
    return frames.get("learning_curve")


def list_control_means(frames: Frames) -> pd.DataFrame | None:
    """Return the mean differences from controls, or None for a study without controls."""
    return frames.get("control_summary")


def count_verdicts(frames: Frames) -> pd.DataFrame | None:
    """Count each group's cells by verdict, or return None for a study without controls."""
    cells = frames["controls"].drop_duplicates(_PLACE)
    if cells.empty:
        return None
    counts = cells.groupby(_GROUP, sort=False)["verdict"].value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[*VERDICTS], fill_value=0).reset_index()


def list_controlled_cells(frames: Frames) -> pd.DataFrame | None:
    """Return the cells ordered by verdict, with delta and q relative to each control.

    None if the study has no controls.
    """
    frame = frames["controls"]
    if frame.empty:
        return None
    wide = frame.drop_duplicates(_PLACE)[[*_PLACE, "verdict"]]
    for name in CONTROLS:
        part = frame[frame["control"] == name].set_index(_PLACE)[["delta", "q"]]
        wide = wide.join(part.rename(columns={"delta": name, "q": f"{name}_q"}), on=_PLACE)
    ranks = wide["verdict"].map({verdict: rank for rank, verdict in enumerate(VERDICTS)})
    ordered = wide.assign(rank=ranks).sort_values("rank", kind="stable")
    return ordered.drop(columns="rank").head(MOST_CELLS)


def list_collapsed_runs(frames: Frames) -> pd.DataFrame:
    """Return the cells in which runs have collapsed to one label."""
    frame = frames["collapsed"]
    listed = frame[frame["n_collapsed"] > 0]
    seeds = listed["seeds"].map(lambda numbers: ", ".join(map(str, numbers)))
    return listed.assign(seeds=seeds)


def select_frame(name: str, frames: Frames) -> pd.DataFrame:
    """Return the frame that a printed table shows without changes, given its name."""
    return frames[name]


def describe_omitted_rows(name: str, frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    """Return a note on a frame's rows that are not printed, or an empty list if all are printed."""
    rows = frames[name]
    if name == "controls":
        rows = rows.drop_duplicates(_PLACE)
    if len(frame) == len(rows):
        return ()
    return (
        (
            f"The table shows {len(frame)} of {len(rows):,} rows; tables/{name}.parquet contains "
            "all rows."
        ),
    )


# --- source runs ----------------------------------------------------------------------------------


def is_source_run(table: str, row: Row, run: Run) -> bool:
    """Return whether a row of a table is computed from a run, possibly its baseline."""
    if run.about.get("dataset") != row["dataset"]:
        return False
    return _PREDICATES.get(table, _is_in_group)(row, run)


def drop_unused_baselines(table: str, row: Row, runs: Sequence[Run]) -> Sequence[Run]:
    """Return the source runs of a row, except baselines that the row does not use.

    A delta uses the baseline of its own model, target and seed. Test instances are counted in the
    first baseline of each task. Other tables use every baseline.
    """
    if table in ("reference", "references", "collapsed"):
        return runs
    if table == "overlap":
        return list({run.about["target"]: run for run in reversed(runs)}.values())
    pairs = {_get_pair_key(run) for run in runs if run.method != BASELINE}
    return [run for run in runs if run.method != BASELINE or _get_pair_key(run) in pairs]


def _get_pair_key(run: Run) -> tuple[str, str, int]:
    return run.model, run.about["target"], run.seed


def _list_sources(run: Run) -> Sequence[str]:
    sources: Sequence[str] = run.about.get("sources", ())
    return sources


def _is_in_group(row: Row, run: Run) -> bool:
    """Return whether a run is a baseline or has a single source and the row's algorithm."""
    return (
        run.model == row["model"]
        and run.method in (row["algorithm"], BASELINE)
        and len(_list_sources(run)) <= 1
    )


def _is_in_pair(row: Row, run: Run) -> bool:
    used = {*_list_sources(run), run.about["target"]}
    return _is_in_group(row, run) and used <= {row["task_a"], row["task_b"]}


def _is_in_comparison(row: Row, run: Run) -> bool:
    """Return whether a run belongs to a transfer matrix that a row compares.

    A row without ``held`` compares all matrices of its dataset.
    """
    if not is_transfer(run) or len(_list_sources(run)) > 1:
        return False
    if "held" not in row:
        return True
    compared, held = (
        (run.model, run.method) if row["between"] == "model" else (run.method, run.model)
    )
    compared_names = (row["a"], row["b"], *([BASELINE] if row["between"] != "model" else ()))
    held_names = (row["held"], *([BASELINE] if row["between"] == "model" else ()))
    return compared in compared_names and held in held_names


def _is_in_control_comparison(row: Row, run: Run) -> bool:
    """Return whether a run is a row's control, a run of the row's algorithm, or a baseline."""
    if run.model != row["model"] or len(_list_sources(run)) > 1:
        return False
    if "control" in row:
        return run.method in (row["algorithm"], row["control"])
    if run.method not in (row["algorithm"], BASELINE, *CONTROLS):
        return False
    used = {*_list_sources(run), run.about["target"]}
    return "source" not in row or (
        run.about["target"] == row["target"] and used <= {row["source"], row["target"]}
    )


def _is_in_cell(row: Row, run: Run) -> bool:
    own = (run.model, run.method, "+".join(_list_sources(run)), run.about.get("target"))
    return own == (row["model"], row["algorithm"], row["source"] or "", row["target"])


def _is_baseline(row: Row, run: Run) -> bool:
    own = (run.method, run.model, run.about.get("target"))
    return own == (BASELINE, row["model"], row["target"])


def _is_compared_with_reference(row: Row, run: Run) -> bool:
    """Return whether a run is a baseline on a row's task, or the fit of the row's reference."""
    if not is_reference(run):
        return _is_baseline(row, run)
    tasks = run.outcome.tasks if isinstance(run.outcome, Fit) else (row["target"],)
    return (
        run.about.get("reference") == row["reference"]
        and run.model in (row["model"], NO_MODEL)
        and row["target"] in tasks
    )


def _shares_instances(row: Row, run: Run) -> bool:
    is_used = run.about.get("target") in (row["source"], row["target"])
    return run.method == BASELINE and is_used and row["basis"] == TEST_INSTANCES


_PREDICATES: Mapping[str, Callable[[Row, Run], bool]] = {
    "asymmetry": _is_in_pair,
    "agreement": _is_in_comparison,
    "agreement_overall": _is_in_comparison,
    "control_summary": _is_in_control_comparison,
    "control_verdicts": _is_in_control_comparison,
    "controls": _is_in_control_comparison,
    "collapsed": _is_in_cell,
    "references": _is_compared_with_reference,
    "reference": _is_baseline,
    "overlap": _shares_instances,
}
"""Table → function (row, run of the row's dataset) that returns whether the row uses the run."""
