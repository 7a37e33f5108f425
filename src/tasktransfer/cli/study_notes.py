"""Notes on what a new study leaves out to fit a time budget, and what fits if no study does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tasktransfer.cli.study_forecast import StudyForecast
from tasktransfer.cli.study_sizes import MAX_LENGTH, SIZES, InputLengths, StudyProposal

FORECAST_MAY_MISS = 1.5
"""Factor by which a forecast without records may be too low. A study has to fit even then."""
FEW_DEV = 20
"""Number of dev instances below which a note says that scores are uncertain."""
NOUNS = {"dialogue_classification": "dialogues", "utterance_classification": "turns"}
"""Kind of task → its instances. They are called instances in other kinds."""


class TriedStudy(NamedTuple):
    """A study and its forecast."""

    proposal: StudyProposal
    forecast: StudyForecast

    def fits(self, hours: float) -> bool:
        """Return whether the study fits a time budget even if the forecast is too low."""
        return self.forecast.hours * FORECAST_MAY_MISS <= hours

    @property
    def least_hours(self) -> str:
        """Smallest value of ``--hours`` that the study fits, rounded up to two digits."""
        hours = self.forecast.hours * FORECAST_MAY_MISS
        unit = 10.0 ** (math.floor(math.log10(hours)) - 1)
        return f"{math.ceil(hours / unit) * unit:.2g}"


def list_budget_notes(
    tried: Sequence[TriedStudy], hours: float, target: str, kind: str, lengths: InputLengths
) -> Iterator[str]:
    """Yield notes on what a study leaves out because of its time budget or its largest length.

    Args:
        tried: studies that were tried. The last one fits.
        hours: time budget.
        target: name of the target task.
        kind: kind of the target task.
        lengths: lengths from which ``max_length`` was chosen.
    """
    fitting = tried[-1]
    size, instances = fitting.proposal.size, fitting.forecast.instances
    total, noun = instances["train"], NOUNS.get(kind, "instances")
    if not fitting.proposal.sources:
        least = [study for study in tried if study.proposal.sources][-1].least_hours
        yield (
            f"The time budget of {hours:g} h is too short to train on source tasks, so the study "
            "only compares a fine-tuned baseline with simple references. To compare sources, set "
            f"--hours to {least} or more."
        )
    if size.max_length < lengths.chosen:
        yield (
            f"The time budget of {hours:g} h is too short to read {lengths.chosen} tokens of each "
            f"dialogue, so max_length is {size.max_length}. Allow more --hours to truncate fewer "
            "dialogues."
        )
    elif size.max_length == MAX_LENGTH < min(lengths.needed, lengths.readable):
        yield (
            f"max_length is {MAX_LENGTH}, the largest value that `init` chooses. Raise "
            "models[].max_length in the config to read more of each dialogue, which takes longer."
        )
    if size.limit_train is not None and size.limit_train < total:
        yield (
            f"{target}: The study trains on {size.limit_train:,} of the {total:,} labelled "
            f"{noun} in the training split. Allow more --hours to use more."
        )
    if instances["dev"] < FEW_DEV:
        checked = (
            ", which also decide whether to train on sources" if fitting.proposal.sources else ""
        )
        yield (
            f"{target}: The dev split has only {instances['dev']:,} of the labelled {noun}, and "
            f"the test split {instances['test']:,}. The best epoch is selected by dev "
            f"scores{checked}. The results are therefore uncertain. Label more dialogues if you "
            "can."
        )


def explain_short_budget(
    tried: Sequence[TriedStudy], hours: float, models: Sequence[str], target: str
) -> str:
    """Explain that no study fits a time budget, and what fits instead.

    Args:
        tried: studies that were tried, from the largest to the smallest.
        hours: time budget.
        models: names of the models.
        target: name of the target task.
    """
    smallest = tried[-1]
    size = smallest.proposal.size.drop_limits(smallest.forecast.instances)
    remedy = "a smaller model" if len(models) == 1 else "fewer or smaller models"
    untruncated = replace(SIZES[-1], max_length=tried[0].proposal.size.max_length)
    whole = [study for study in tried if study.proposal.size == untruncated][-1]
    minutes = math.ceil(60 * whole.forecast.reference_hours)
    return (
        f"--hours: The time budget of {hours:g} h is too short. Training {' and '.join(models)} on "
        f"{target} alone ({size}) takes {smallest.forecast.hours:.2g} h according to the forecast, "
        f"which may be {FORECAST_MAY_MISS:g} times too low. Set --hours to {smallest.least_hours} "
        f"or more, or choose {remedy}.\n"
        "The references alone (such as logistic regression on frozen embeddings) train no language "
        f"model, and take about {minutes} min. To run only them, write a study with --hours "
        f"{whole.least_hours}, and call `tasktransfer run -- --until fit` and `tasktransfer run -- "
        "figures_now` in its folder."
    )
