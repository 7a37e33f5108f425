"""The paper's numbers (Parthasarathi et al. 2021) as data frames.

Each CSV in this folder names its table.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import pandas as pd


class Names(NamedTuple):
    """The paper's names of a model: in Table 3, in Table 6, and in Tables 4, 5, 8 and 9."""

    table3: str
    table6: str
    probes: str


MODELS = {
    "LSTM": Names("Seq2Seq", "Seq2Seq", "LSTM Seq2Seq"),
    "LSTM-attention": Names("Seq2Seq + Attn", "LSTM-Attn", "LSTM Seq2Seq + Attention"),
    "BiLSTM-attention": Names("BiLSTM + Attn", "BiLSTM", "Bi-LSTM Seq2Seq + Attention"),
    "HRED": Names("HRED", "HRED", "HRED - LSTM"),
    "Transformer": Names("Transformer", "Transformer", "Transformer Architecture"),
}
"""Model of our presets → its names in the paper."""

CORPORA = {"MultiWOZ": "MultiWoZ", "PersonaChat": "PersonaChat"}
"""Corpus → its name in Table 3."""

EASY = ("RepeatInfo", "NumRepeatInfo", "NumAllTopics", "IsMultiTask")
MEDIUM = ("UtteranceLoc", "RecentSlots", "NumRecentInfo", "AllTopics")
"""Groups behind the numbers of Table 6; every other probe of MultiWOZ is hard."""


@cache
def _read_table(number: int) -> pd.DataFrame:
    file = files(__package__).joinpath(f"table{number}.csv")
    with file.open(encoding="utf-8") as stream:
        return pd.read_csv(stream, comment="#")


def read_table(number: int) -> pd.DataFrame:
    """Return one of the paper's tables 1 to 9 in long format, with one row per number."""
    return _read_table(number).copy()


def group_probes_as_used() -> dict[str, str]:
    """Map each probe to easy, medium or hard, by the groups with which Table 6 was computed."""
    named = dict.fromkeys(EASY, "easy") | dict.fromkeys(MEDIUM, "medium")
    return {task: named.get(task, "hard") for task in read_table(5)["task"].unique()}


def group_probes_as_printed() -> dict[str, str]:
    """Map each probe to easy, medium or hard, by the thresholds that Table 6 prints.

    They apply to the mean Untrained F1 of the recurrent models (Table 5): above 50 is easy, 25 to
    50 is medium, and below 25 is hard.
    """
    untrained = read_table(5).query("snapshot == 'Untrained'")
    recurrent = untrained[untrained["model"].str.contains("Seq2Seq")]
    means = recurrent.groupby("task", sort=False)["f1"].mean()
    return {
        str(task): "easy" if mean > 50 else "medium" if mean >= 25 else "hard"
        for task, mean in means.items()
    }


def recompute_table6(groups: dict[str, str]) -> pd.DataFrame:
    """Recompute Table 6 from the BLEU rows of Tables 8 and 9.

    Returns:
        Mean and sample standard deviation over tasks, with the columns model, group, f1 and sd.
    """
    both = pd.concat([read_table(8), read_table(9)])
    rows = both[both["selected_by"].str.contains("BLEU")].assign(
        group=lambda t: t["task"].map(groups)
    )
    grouped = rows.groupby(["model", "group"], sort=False)["f1"].agg(f1="mean", sd="std")
    return grouped.reset_index()
