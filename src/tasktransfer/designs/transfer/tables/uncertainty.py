"""Rows of the printed tables of statistics, controls and references."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tasktransfer.designs.transfer.collect.columns import COMPONENTS
from tasktransfer.designs.transfer.controls import CONTROLS, VERDICTS
from tasktransfer.designs.transfer.references import LABELS
from tasktransfer.designs.transfer.runs import BASELINE
from tasktransfer.designs.transfer.statistics.agreement import agreement_overall
from tasktransfer.results.frames import Frames

MOST_PAIRS = 20
"""Maximum number of printed pairs of tasks; the frame has all of them."""
MOST_CELLS = 200
"""Maximum number of printed cells with their controls; the frame has all of them."""
_GROUP = ["dataset", "model", "algorithm"]
_PLACE = [*_GROUP, "source", "target"]


def list_components(frames: Frames) -> pd.DataFrame | None:
    """Return the variance components: one row per group, one column per component."""
    frame = frames["variance"]
    if frame.empty:
        return None
    wide = frame.drop_duplicates(_GROUP)[_GROUP]
    for component in COMPONENTS:
        part = frame[frame["component"] == component].set_index(_GROUP)["share"]
        wide = wide.join(part.rename(component), on=_GROUP)
    return wide


def list_overall_agreement(frames: Frames) -> pd.DataFrame:
    """Return the mean agreement of models, and of algorithms, by dataset."""
    return agreement_overall(frames["agreement"])


def list_asymmetric_pairs(frames: Frames) -> pd.DataFrame:
    """Return the pairs of tasks whose two directions differ most."""
    frame = frames["asymmetry"]
    size = frame["difference"].abs()
    compared = frame[size.notna()].assign(size=size[size.notna()])
    ordered = compared.sort_values("size", ascending=False, kind="stable")
    return ordered.drop(columns="size").head(MOST_PAIRS)


def list_shared_data(frames: Frames) -> pd.DataFrame:
    """Return the pairs of tasks that share most of their data."""
    return frames["overlap"].sort_values("share", ascending=False, kind="stable").head(MOST_PAIRS)


def list_reference_scores(frames: Frames) -> pd.DataFrame | None:
    """Return each task's reference scores, computed from the dialogues, with the mean baselines.

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
    return rows.reindex(columns=[*keys, "model", "baseline", *LABELS])


def list_references(frames: Frames) -> pd.DataFrame | None:
    """Return each baseline next to each reference; None if the study has no references."""
    if "references" not in frames:
        return None
    frame = frames["references"]
    best = frame["is_best"]
    # A state compares the baseline with the best reference only.
    return frame.assign(mark=best.map({True: "best", False: ""}), state=frame["state"].where(best))


def list_control_means(frames: Frames) -> pd.DataFrame | None:
    """Return the mean differences from controls; None if the study has no controls."""
    return frames.get("control_summary")


def count_verdicts(frames: Frames) -> pd.DataFrame | None:
    """Count the cells of each group by the outcome of their controls; None without controls."""
    cells = frames["controls"].drop_duplicates(_PLACE)
    if cells.empty:
        return None
    counts = cells.groupby(_GROUP, sort=False)["verdict"].value_counts().unstack(fill_value=0)
    return counts.reindex(columns=[*VERDICTS], fill_value=0).reset_index()


def list_controlled_cells(frames: Frames) -> pd.DataFrame | None:
    """Return the cells by the outcome of their controls, with delta and q for each control.

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
    """Return the cells with collapsed runs."""
    frame = frames["collapsed"]
    listed = frame[frame["n_collapsed"] > 0]
    seeds = listed["seeds"].map(lambda numbers: ", ".join(map(str, numbers)))
    return listed.assign(seeds=seeds)


def select_frame(name: str, frames: Frames) -> pd.DataFrame:
    """Return a whole frame."""
    return frames[name]


def count_omitted_rows(name: str, frames: Frames, frame: pd.DataFrame) -> Sequence[str]:
    """Return a note on the rows of a frame that are not printed; empty if all are."""
    rows = frames[name]
    if name == "controls":
        rows = rows.drop_duplicates(_PLACE)
    if len(frame) == len(rows):
        return ()
    return (f"{len(frame)} of {len(rows):,} rows; tables/{name}.parquet has all.",)
