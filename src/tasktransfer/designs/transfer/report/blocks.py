"""Parts of the report in addition to declared tables and figures.

These are the facts about the study, the open part of its answer, the interactive heatmap, the
sentences on uncertainty and the list of missing results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from tasktransfer.core.references import MOST_FREQUENT, STATES
from tasktransfer.datasets import PACKAGE_DATASETS
from tasktransfer.designs.transfer.choices import LEFT_LABEL, NO_INTERVAL
from tasktransfer.designs.transfer.collect import BASELINE_MISSING, list_truncation_notes
from tasktransfer.designs.transfer.report.advice import (
    FEW_TARGETS,
    select_own_targets,
    select_transfer_targets,
)
from tasktransfer.designs.transfer.report.answer import describe_seed_limit, has_transfer
from tasktransfer.designs.transfer.report.grid import build_payload
from tasktransfer.designs.transfer.report.learned import (
    MOST_SCORES,
    REFERENCE_LABELS,
    TABLE_TITLE,
    compare_with_best_reference,
    describe_unlearned_list,
    select_unlearned_baselines,
)
from tasktransfer.designs.transfer.report.targets import render_targets
from tasktransfer.designs.transfer.runs import BASELINE, format_task_name, get_algorithm_label
from tasktransfer.designs.transfer.statistics.matrices import summarise_agreement
from tasktransfer.errors import format_quantity
from tasktransfer.present.columns import (
    Column,
    Head,
    Row,
    make_estimate_column,
    make_number_column,
    make_p_value_column,
    make_text_column,
)
from tasktransfer.present.declared import Block
from tasktransfer.present.html import (
    HtmlTable,
    build_table,
    create_environment,
    escape_json,
    to_records,
)
from tasktransfer.present.kit import matrix
from tasktransfer.present.marks import describe_limits
from tasktransfer.present.numbers import (
    DIFFERENCES,
    MOST_Q,
    excludes_zero,
    format_score,
    is_missing,
    join_names,
)
from tasktransfer.present.page.common_blocks import (
    NOTHING_MISSING,
    SHORT,
    describe_commits,
    describe_versions,
)
from tasktransfer.results.common_frames import MISSING
from tasktransfer.results.frames import Frames
from tasktransfer.results.store import Metadata, format_synthetic_mark
from tasktransfer.selection.regret import describe_groups

HERE = Path(__file__).parent
LABELS = {
    "significant": matrix.SURVIVES_LABEL,
    "one_training": matrix.ONE_TRAINING_LABEL,
    "missing": matrix.MISSING_LABEL,
    "not_planned": matrix.NOT_PLANNED_LABEL,
    "left_race": LEFT_LABEL,
}
"""Labels of the marks, identical in the printed and the interactive heatmap."""
NEXT_STEPS = Markup(
    "Next: <code>tasktransfer export-model {0} --out model</code> exports the recommended method, "
    "and <code>tasktransfer predict model new.jsonl</code> labels new dialogues. If the intervals "
    "are too wide to decide, label more dialogues: <code>tasktransfer learning-curve {0}</code> "
    "estimates the gain."
)
WEAK = "weak evidence"


def build_blocks(frames: Frames) -> Mapping[str, Sequence[Block]]:
    """Map each section of the report to its blocks."""
    regret = describe_groups(frames["regret"]) if "regret" in frames else []
    lines = [*_merge_identical_sentences(regret)]
    lines += describe_agreement(frames["agreement"])
    heatmap, targets = _build_heatmap(frames), render_targets(frames)
    return {
        "answer": build_open_answer(frames),
        "matrix": [heatmap] if heatmap else [],
        "targets": [Block(html=targets)] if targets else [],
        "sure": [Block(text=line) for line in lines],
    }


def _merge_identical_sentences(sentences: Sequence[str]) -> Iterator[str]:
    """Yield sentences ``group: statement``, or a single sentence for identical statements."""
    statements = {sentence.partition(": ")[2] for sentence in sentences}
    if len(sentences) > 1 and len(statements) == 1:
        yield (
            f"{statements.pop()} The result is the same for all {len(sentences)} groups of "
            "dataset, model and algorithm."
        )
    else:
        yield from sentences


def _build_heatmap(frames: Frames) -> Block | None:
    """Return the interactive heatmap, or None for a study without transfer."""
    if not has_transfer(frames["transfer_runs"], frames["missing_runs"]):
        return None
    explain = " ".join(
        part for part in ("tasktransfer explain", frames.study.format_arguments()) if part
    )
    heatmap = create_environment(HERE).get_template("heatmap.html.j2")
    raced = bool((frames["cells"]["no_interval"] == NO_INTERVAL).any())
    html = heatmap.render(
        labels=LABELS,
        raced=raced,
        limit=describe_seed_limit(frames["cells"]),
        data=escape_json(build_payload(frames, explain)),
    )
    return Block(html=Markup(html))


def list_missing_results(frames: Frames) -> pd.DataFrame:
    """Return all missing results, and transfer runs whose baseline is missing."""
    missing_runs = frames["missing_runs"]
    alone = missing_runs[missing_runs["state"] == BASELINE_MISSING]
    named = alone.rename(columns={"algorithm": "method", "stage": "node"})
    named = named.assign(sources=alone["source"])
    missing = frames["missing"]
    return pd.concat([missing, named[[name for name in named if name in missing]]])


def build_open_answer(frames: Frames) -> list[Block]:
    """Return the blocks that the report shows unfolded below its answer.

    A study of one or two targets has no table of algorithms, because its answer is about sources.
    """
    baselines = compare_with_best_reference(frames)
    compared = select_transfer_targets(baselines, frames.study)
    has_sources = has_transfer(frames["transfer_runs"], frames["missing_runs"])
    sentences = [
        *describe_unlearned_list(compared, has_sources=has_sources),
        *_describe_unlearned_sources(baselines.drop(compared.index)),
    ]
    changes = build_changes_table(frames["summary"]) if _has_many_targets(frames["cells"]) else None
    unlearned = build_unlearned_table(compared)
    return [
        *([Block(table=changes)] if changes else []),
        *_list_next_steps(frames),
        *(Block(text=sentence) for sentence in sentences),
        *([Block(table=unlearned)] if unlearned else []),
    ]


def _describe_unlearned_sources(baselines: pd.DataFrame) -> Iterator[str]:
    """Yield the names of tasks that are only sources and that their models have not learned."""
    rows = select_unlearned_baselines(baselines)
    if len(rows):
        places = rows[["dataset", "target"]].drop_duplicates().itertuples(index=False)
        names = join_names([f"{format_task_name(task)} ({dataset})" for dataset, task in places])
        yield f"Tasks that are only sources, and that their own models have not learned: {names}."


def _list_next_steps(frames: Frames) -> list[Block]:
    """Return a block with the next commands if a method is recommended for the user's own task."""
    methods = select_own_targets(frames)
    useful = methods[methods["recommended"] & (methods["method"] != MOST_FREQUENT)]
    if useful.empty:
        return []
    places = useful[["dataset", "target"]].drop_duplicates().to_dict("records")
    arguments = frames.study.format_arguments()
    if len(places) > 1:
        arguments = f"{arguments} --task {places[0]['dataset']}/{places[0]['target']}"
    return [Block(text=NEXT_STEPS.format(arguments))]


def _has_many_targets(cells: pd.DataFrame) -> bool:
    singles = cells[(cells["n_sources"] == 1) & cells["delta"].notna()]
    return len(singles[["dataset", "target"]].drop_duplicates()) > FEW_TARGETS


def build_unlearned_table(compared: pd.DataFrame) -> HtmlTable | None:
    """Return a folded table of baselines that have not learned, the lowest difference first.

    It is None for at most ``MOST_SCORES`` of them, whose scores are in a sentence of the answer.

    Args:
        compared: result of ``learned.compare_with_best_reference``.
    """
    rows = select_unlearned_baselines(compared)
    if len(rows) <= MOST_SCORES:
        return None
    has_intervals = "delta" in rows
    names = [make_text_column("dataset", "Dataset")]
    if compared["model"].nunique() > 1:
        names.append(make_text_column("model", "Model"))
    names.append(make_text_column("target", "Target", format_task_name))
    caption, difference = "Scores from 0 to 100.", []
    if rows["reference"].all():
        interval = ", with its 95 % interval" if has_intervals else ""
        caption += (
            " The difference is the baseline's mean score minus the score of the best simple "
            f"reference, in points{interval}."
        )
        name = "delta" if has_intervals else "difference"
        difference = [
            make_text_column("reference", "Best reference", REFERENCE_LABELS.__getitem__),
            make_number_column("reference_score", "Reference's score", ".1f"),
            make_estimate_column(name, "Difference, points", "+.1f", bounds=DIFFERENCES),
        ]
    return build_table(
        "unlearned",
        TABLE_TITLE,
        caption,
        rows,
        (
            *names,
            make_number_column("score", "Baseline's score", ".1f"),
            *difference,
            *([make_p_value_column("q", "q")] if "q" in rows else []),
            make_text_column("state", "Baseline", STATES.__getitem__),
        ),
        keys=len(names),
        folded=True,
    )


def build_changes_table(summary: pd.DataFrame) -> HtmlTable | None:
    """Return a table with one line per dataset, model and algorithm, or None without any mean.

    The algorithm with the highest mean change of a dataset and model is its first line. Means
    without a joint interval have their interval over seeds.

    Args:
        summary: columns of ``columns.SUMMARY``, in the study's order.
    """
    known = summary[summary["mean"].notna()]
    if known.empty:
        return None
    groups = known.groupby(["dataset", "model"], sort=False)
    ordered = pd.concat(
        group.sort_values("mean", ascending=False, kind="stable") for _, group in groups
    )
    is_joint = ordered["joint_low"].notna()
    ends = {
        end: ordered[f"joint_{end}"].where(is_joint, ordered[f"mean_{end}"])
        for end in ("low", "high")
    }
    rows = ordered.assign(**ends)
    verdicts = rows.apply(describe_change, axis="columns")
    names = [make_text_column("dataset", "Dataset")]
    if known["model"].nunique() > 1:
        names.append(make_text_column("model", "Model"))
    names.append(make_text_column("algorithm", "Algorithm", get_algorithm_label))
    return build_table(
        "changes",
        "Mean change of the score by algorithm",
        _write_changes_caption(rows, has_weak=bool(verdicts.str.startswith(WEAK).any())),
        rows,
        (
            *names,
            make_estimate_column("mean", "Mean change, points", "+.1f", bounds=DIFFERENCES),
            make_p_value_column("joint_q", "q"),
            Column(Head("Result"), describe_change),
        ),
        keys=len(names),
    )


def describe_change(row: Row) -> str:
    """Return the result of a mean change in words: ``significant gain``, and so on."""
    what = "gain" if row["mean"] > 0 else "loss"
    if is_missing(row["joint_q"]):
        return "not tested (one seed)" if row["n_seeds"] == 1 else "not tested"
    if row["joint_q"] <= MOST_Q:
        return f"significant {what}"
    if excludes_zero(row["joint_low"], row["joint_high"]):
        return f"{WEAK} of a {what}"
    return "no significant change"


def _write_changes_caption(rows: pd.DataFrame, has_weak: bool) -> str:
    tested = int(rows["joint_q"].notna().sum())
    parts = [
        "Change from the baseline, averaged over all pairs of source and target, with its 95 % "
        "interval."
    ]
    if tested:
        means = format_quantity(tested, "mean")
        parts.append(f"A change is significant if q ≤ {MOST_Q}, adjusted for {means}.")
    if has_weak:
        parts.append(f"Evidence is weak if the interval does not contain 0, but q > {MOST_Q}.")
    if rows["joint_low"].isna().any() and rows["low"].notna().any():
        parts.append("Intervals of means that are not tested are over seeds only.")
    return " ".join(parts)


def list_facts(frames: Frames) -> list[tuple[str, str]]:
    """Return facts about a study as (name, value): config, data, models, versions and counts."""
    runs, metadata = frames["transfer_runs"], frames.metadata
    models = runs.drop_duplicates("model")[["model", "family"]].itertuples(index=False, name=None)
    return [
        ("Study", metadata.study),
        ("Config", f"digest {metadata.config_digest[:SHORT]}"),
        ("Data", _describe_data(metadata, runs["dataset"])),
        *_describe_datasets(runs),
        *(("Truncated", note) for note in list_truncation_notes(frames.study)),
        ("Models", ", ".join(f"{name} ({family})" for name, family in models)),
        ("Algorithms", ", ".join(_list_algorithms(frames)) or "baselines only"),
        ("Seeds", _describe_all_seeds(runs)),
        ("Records", f"{metadata.records:,}"),
        ("Missing", metadata.facts.get(MISSING, NOTHING_MISSING)),
        ("Left out", f"{len(frames['problems']):,} damaged records"),
        (
            "Trained by",
            f"recipe {_join_unique(runs['recipe'])}; code at {describe_commits(runs, 'runs')}",
        ),
        ("Analysed by", describe_versions(metadata.version)),
    ]


def _describe_all_seeds(runs: pd.DataFrame) -> str:
    """Describe the seeds of transfers, and those of baselines if they differ."""
    of_baselines = sorted(runs.loc[runs["n_sources"] == 0, "seed"].unique())
    of_transfers = sorted(runs.loc[runs["n_sources"] > 0, "seed"].unique()) or of_baselines
    text = _describe_seeds(of_transfers)
    return (
        text
        if of_baselines == of_transfers
        else f"{text}; of baselines {_describe_seeds(of_baselines)}"
    )


def _describe_data(metadata: Metadata, names: Iterable[str]) -> str:
    mark = format_synthetic_mark(metadata.real).rstrip(". ") if metadata.synthetic else ""
    data = mark.replace("SYNTHETIC", "synthetic") or _format_source_names({*names})
    return f"{data}, subsampled: {describe_limits(metadata.cuts)}" if metadata.cuts else data


def _format_source_names(names: set[str]) -> str:
    released = names & {dataset.name for dataset in PACKAGE_DATASETS}
    parts = [
        *(["a release of the benchmark"] if released else []),
        *(["the study's own dialogues"] if names - released else []),
    ]
    return " and ".join(parts)


def _list_algorithms(frames: Frames) -> list[str]:
    names = [*frames["transfer_runs"]["algorithm"], *frames["missing_runs"]["algorithm"]]
    ordered = frames.metadata.order_names("algorithm", names)
    return [get_algorithm_label(name) for name in ordered if name != BASELINE]


def _describe_seeds(numbers: list[int]) -> str:
    """Describe the number of seeds and their values."""
    plural = "" if len(numbers) == 1 else "s"
    listed = ", ".join(map(str, numbers))
    return f"{len(numbers)} seed{plural} (number{plural} {listed})" if numbers else "none"


def _describe_datasets(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Describe each dataset by its revision, split and number of tasks, as (dataset, text)."""
    lines = []
    for dataset, rows in runs.groupby("dataset", sort=False):
        sample = " and ".join(
            "few-sample split" if few else "full split" for few in rows["few_sample"].unique()
        )
        revision = _join_unique(rows["data_revision"])
        tasks = format_quantity(rows["target"].nunique(), "task")
        lines.append((str(dataset), f"revision {revision}, {sample}, {tasks} with a score"))
    return lines


def _join_unique(values: pd.Series[str]) -> str:
    return ", ".join(str(value) for value in values.unique())


def describe_agreement(agreement: pd.DataFrame) -> list[str]:
    """Describe whether the study supports the paper's claim that transfer depends on the model.

    There is one sentence per dataset for models, and one for algorithms.
    """
    return [_describe_agreement_row(row) for row in to_records(summarise_agreement(agreement))]


def _describe_agreement_row(row: Row) -> str:
    mean, low, high = (format_score(row[key]) for key in ("correlation", "lowest", "highest"))
    count, agreeing = row["comparisons"], row["agreeing"]
    return (
        f"On {row['dataset']}, the transfer matrices of two {row['between']}s have a mean rank "
        f"correlation of {mean} ({format_quantity(count, 'comparison')}, from {low} to {high}). "
        f"The number of these correlations that are significantly above 0 is {agreeing} (p ≤ 0.05)."
    )
