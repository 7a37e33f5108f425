"""Fit probes on word counts of real dialogues: of the whole history, and of the last words only.

The last words are those that the encoders read.

    python -m benchmarks.probe_words ../shared/dialogue --limit 2000

No model is trained. Prints one row per probe: micro-F1 on the test split of the best constant
answer on the training split, and of the probe.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasktransfer.datasets.dataset import Dataset
from tasktransfer.designs.probes.facts import CONTROL, CORPORA, EVERY, Probe, format_reply_task_name
from tasktransfer.designs.probes.labels import label_instances
from tasktransfer.encoding.word_tokenizer import truncate_to_last_words
from tasktransfer.fits.probes import ProbeInputs, fit_probes
from tasktransfer.jobs.probe_job import count_words, select_sample
from tasktransfer.tasks.card import Instance

READ = 100
"""Number of words that the presets' encoders read (``max_length``)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("release", type=Path, help="the folder with multiwoz20/ and convai2/")
    parser.add_argument("--limit", type=int, help="training turns of a probe; default: all")
    parser.add_argument("--only", nargs="*", help="names of probes; default: all")
    asked = parser.parse_args()
    print(f"| corpus | probe | best constant | whole history | last {READ} words |")
    print("|---|---|---|---|---|")
    for corpus in CORPORA:
        read = read_turns(corpus, asked.release)
        for probe in EVERY:
            wanted = probe.name != CONTROL and (not asked.only or probe.name in asked.only)
            if probe.corpus == corpus.name and wanted:
                told = [measure_probe(probe, read, asked.limit, most) for most in (None, READ)]
                scores = " | ".join(f"{one['micro_f1']:.1f}" for one in told)
                prior = told[0]["prior_f1"]
                print(f"| {corpus.name} | {probe.name} | {prior:.1f} | {scores} |", flush=True)


def read_turns(corpus: Dataset, release: Path) -> dict[str, list[Instance]]:
    """Return the turns of training and test split, with the labels of every probe."""
    opened = corpus.reader.open(release, False)
    reply = format_reply_task_name(corpus.name)
    return {split: list(opened.instances(reply, split)) for split in ("train", "test")}


def measure_probe(
    probe: Probe, read: dict[str, list[Instance]], limit: int | None, most: int | None
) -> dict[str, float]:
    """Return a probe's measures on counts of the last ``most`` words, or of all words."""
    splits: dict[str, Sequence[Instance]] = {**label_instances(probe, read)}
    splits["train"] = select_sample(splits["train"], limit)
    rows = [*splits["train"], *splits["test"]]
    texts = list(dict.fromkeys(one.context for one in rows))
    place = {text: number for number, text in enumerate(texts)}
    learnt = {one.context for one in splits["train"]}
    cut = texts if most is None else [truncate_to_last_words(text, most) for text in texts]
    matrix = count_words(cut, [text in learnt for text in texts])

    def get_features(instances: Sequence[Instance]) -> Any:
        return matrix[[place[one.context] for one in instances]]

    settings = {"sets": [probe.task] if probe.has_label_sets else []}
    with tempfile.TemporaryDirectory() as folder:
        given = ProbeInputs(
            {probe.task: splits}, get_features, settings, 0, Path(folder), lambda text: None
        )
        return fit_probes(given).measures[probe.task]


if __name__ == "__main__":
    main()
