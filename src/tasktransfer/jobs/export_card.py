"""The model card of an exported model: README.md with data, scores, intended use and licences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasktransfer.files.untrusted import read_regular
from tasktransfer.jobs.export_candidates import ExportCandidate
from tasktransfer.jobs.export_figure import PICTURE
from tasktransfer.results.exported import ExportedModel
from tasktransfer.stats.calibration import ACCURACY

FILE = "README.md"
WITH_DEV = "instances_of_train_and_dev"
"""Key of the provenance of a model that is fitted on train and dev: its number of instances."""
MAX_LISTED_LABELS = 20
"""Maximum number of absent labels that a card lists."""
_LICENCE = re.compile(r"\A---\s*\n.*?^license:\s*(\S[^\n]*)$", re.DOTALL | re.MULTILINE)
LIBRARIES = {
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
    "tasktransfer": "tasktransfer",
}
METHODS = {
    "baseline": "an encoder that was fine-tuned on the task",
    "tfidf_logistic": "logistic regression on TF-IDF of words",
    "tfidf_svm": "linear support vector machine on TF-IDF of words",
    "frozen_logistic": "logistic regression on embeddings of a frozen encoder",
    "nearest_neighbour": "the label of the most similar training input, by embeddings of a frozen "
    "encoder",
    "contrastive_logistic": "logistic regression on embeddings of an encoder that was fine-tuned "
    "on pairs of training inputs (contrastive loss)",
}
SCOPES = {
    "dialogue": "a whole dialogue",
    "turn": "a turn, with the turns before it",
    "last_turn": "the last turn of a dialogue, with the turns before it",
}
RULES = {
    "user": "The method was chosen by the person who exported it.",
    "recommended": "The method is the simplest one that is not significantly worse than any other "
    "method on test, so its test score may be slightly too high.",
    "dev": "Dev scores chose the method.",
}
"""Rule by which the method was chosen → sentence."""
_TURN_CODE = """\
The head reads the mean of the last hidden states over the tokens of the last turn and the final
special token. This code computes the logits with transformers alone:

```python
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

tokenizer, encoder = AutoTokenizer.from_pretrained("FOLDER"), AutoModel.from_pretrained("FOLDER")
head = load_file("FOLDER/2_Dense/model.safetensors")
earlier, last = "agent: Hello ", "customer: Where is my order?"
options = {"truncation": True, "return_tensors": "pt", "return_offsets_mapping": True}
inputs = tokenizer(earlier + last, **options)
ends = inputs.pop("offset_mapping")[0, :, 1]
turn = int(torch.nonzero(ends > len(earlier))[0])
with torch.no_grad():
    states = encoder(**inputs).last_hidden_state[0, turn:].mean(0)
logits = head["linear.weight"] @ states + head["linear.bias"]
```""".splitlines()
KEEPS = {"end": "its end", "beginning": "its beginning", "both": "its beginning and its end"}


def write_card(folder: Path, candidate: ExportCandidate, exported: ExportedModel) -> None:
    """Write the model card of an exported model into its folder."""
    text = "\n".join(_format_card(candidate, exported))
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8")


def _format_card(candidate: ExportCandidate, exported: ExportedModel) -> Iterator[str]:
    facts = exported.provenance
    labels = ", ".join(f"`{label}`" for label in exported.labels)
    yield from ("---", f"library_name: {LIBRARIES[exported.layout]}")
    yield from ("pipeline_tag: text-classification", "tags:", "- dialogue", "- tasktransfer", "---")
    yield from ("", f"# {exported.task} of {exported.dataset}", "")
    what = METHODS.get(exported.method, "an encoder that was fine-tuned after other tasks")
    yield f"This model is {what}."
    yield f"It reads {SCOPES[exported.inputs.scope]}, and gives one label."
    yield from (f"Labels: {labels}.", "", "## Use", "", *_format_use(exported), "")
    yield from ("## Input", "", *_format_input(exported), "")
    yield from ("## Data", "", *_format_data(candidate, facts), "")
    yield from ("## Scores", "", *_format_training_note(facts), *_format_scores(exported), "")
    yield from ("## Probabilities", "", *_format_calibration(exported), "")
    yield from ("## Intended use and limits", "", *_format_limits(exported), "")
    yield from ("## Licences", "", *_format_licences(facts), "")
    yield from ("## Provenance", "", "`tasktransfer.json` has all facts. The main ones are:", "")
    for key in ("study", "tasktransfer", "node", "seed", "weights", "data_revision"):
        if facts.get(key) is not None:
            yield f"- {key}: `{facts[key]}`"


def _format_use(exported: ExportedModel) -> Iterator[str]:
    yield "```python"
    yield from ("import tasktransfer as tt", "")
    yield 'model = tt.load_model("FOLDER")'
    yield 'model.predict([[{"speaker": "customer", "text": "Hello"}, "Where is my order?"]])'
    yield from ("```", "")
    yield from ("```", "tasktransfer predict FOLDER dialogues.jsonl --out predictions.jsonl", "```")
    if exported.layout == "transformers":
        yield from ("", "Plain transformers gives the same logits:", "", "```python")
        yield from ("from transformers import pipeline", "")
        yield 'classify = pipeline("text-classification", "FOLDER")'
        yield 'classify("customer: Where is my order?", truncation=True)'
        yield "```"
    if exported.layout == "sentence_transformers":
        how = "mean of all tokens" if exported.pooling == "mean" else "first token"
        yield ""
        yield f"The head reads the {how}, as no sequence classifier of transformers does. The"
        yield "folder has the layout of sentence-transformers, which gives the same logits. A note"
        yield "about missing pooler weights can be ignored:"
        yield from ("", "```python", "from sentence_transformers import SentenceTransformer", "")
        yield 'logits = SentenceTransformer("FOLDER").encode(["customer: Where is my order?"])'
        yield "```"
    if exported.layout == "tasktransfer":
        yield from ("", "Other libraries cannot compute the logits without extra code.")
    if exported.pooling == "turn":
        yield from ("", *_TURN_CODE)


def _format_input(exported: ExportedModel) -> Iterator[str]:
    of = exported.inputs
    yield "A turn is read as `speaker: text`, or as its text if it has no speaker."
    yield "Turns are joined by a space."
    if of.query:
        order = "before" if of.first == "query" else "after"
        yield f"The text `{of.query}` is a separate segment {order} the dialogue."
    if of.max_length is not None:
        yield f"An input has at most {of.max_length} tokens, special tokens included."
        yield f"A longer dialogue keeps {KEEPS[of.keeps]}."
    if of.keeps == "both" and exported.layout != "tasktransfer":
        yield "Other libraries keep only the beginning of a long dialogue."


def _format_data(candidate: ExportCandidate, facts: Mapping[str, Any]) -> Iterator[str]:
    card = candidate.card
    yield f"{card.description} Source: {card.citation}."
    sizes = ", ".join(f"{split} {count:,}" for split, count in facts["instances"].items())
    yield f"Instances: {sizes}. Trained on: {', '.join(facts['train_tasks'])}."
    if facts["synthetic"]:
        yield "**The dialogues are synthetic: the scores say nothing about real dialogues.**"


def _format_training_note(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a note if the model is fitted on train and dev, but scored after fitting on train."""
    if WITH_DEV in facts:
        yield f"**This model is fitted on train and dev ({facts[WITH_DEV]:,} instances).**"
        yield "Scores, temperature and thresholds are those of the same method fitted on train"
        yield "alone, because no dialogues are left to measure this model."
        yield ""


def _format_scores(exported: ExportedModel) -> Iterator[str]:
    scores = exported.scores
    test, equal = scores["test"], scores["recorded_predictions"]
    who = "The model without dev" if WITH_DEV in exported.provenance else "This model"
    yield f"{who} scores {_format_interval(test)} on {test['instances']:,} test instances, and"
    yield f"{scores['dev']:g} on dev. The score is the mean of the task's metrics, in points,"
    yield f"with a 95 % interval over dialogues. {RULES[scores['method_chosen_by']]}"
    yield "Dev scores chose the seed, and the epoch of a fine-tuned model. The model reproduces"
    yield f"{equal['equal']:,} of the {equal['of']:,} test predictions that the study recorded."
    yield from ("", "| method | model | seeds | test score [95 % interval] |", "|---|---|---|---|")
    for row in scores["methods"]:
        names = f"| {row['method']} | {row['model'] or '–'} | {row['seeds']} "
        yield f"{names}| {_format_interval(row)} |"

    yield from ("", "Labels on test, in percent, with 95 % intervals over dialogues:", "")
    yield from ("| label | instances | predicted | precision | recall | F1 |", f"|{'---|' * 6}")
    for row in scores["labels"]:
        counts = f"| {row['label']} | {row['instances']:,} | {row['predicted']:,} "
        values = (_format_measure(*row[key]) for key in ("precision", "recall", "f1"))
        yield f"{counts}| {' | '.join(values)} |"
    found = [row["label"] for row in scores["labels"] if row["instances"]]
    yield from _describe_absent_labels([x for x in exported.labels if x not in found])


def _describe_absent_labels(absent: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about labels that do not occur in the test split."""
    if absent:
        listed = ", ".join(f"`{label}`" for label in absent[:MAX_LISTED_LABELS])
        more = ", ..." if len(absent) > MAX_LISTED_LABELS else ""
        yield ""
        yield f"The scores say nothing about labels that never occur in test ({len(absent):,}):"
        yield f"{listed}{more}."


def _format_measure(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if low is None or high is None else f"{value:.0f} [{low:.0f}, {high:.0f}]"


def _format_interval(row: Mapping[str, Any]) -> str:
    if "low" not in row or "high" not in row:
        return f"{row['score']:.1f}"
    return f"{row['score']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"


def _format_calibration(exported: ExportedModel) -> Iterator[str]:
    errors = exported.calibration["expected_calibration_error"]
    yield f"Logits are divided by the temperature {exported.temperature:g}, fitted on dev, before"
    yield "the softmax. Other libraries leave it out. Expected calibration error, in points:"
    yield from ("", "| split | without temperature | with temperature |", "|---|---|---|")
    names = {"dev": "dev, with temperatures from other dialogues of dev", "test": "test"}
    for split, name in names.items():
        yield f"| {name} | {errors[split]['before']:g} | {errors[split]['after']:g} |"
    yield from ("", f"![Reliability diagram and coverage]({PICTURE})", "")
    yield "Left: accuracy by probability, in bins of equal width. Right: accuracy of the inputs"
    yield "that are at least as probable as a threshold, by their fraction. On dev, each dialogue"
    yield "has a temperature from other dialogues of dev."
    yield from ("", *_format_coverage(exported))


def _format_coverage(exported: ExportedModel) -> Iterator[str]:
    coverage, least = exported.calibration["coverage"], exported.min_probability
    if least is None:
        yield "**No threshold is suggested.** On dev, none has an accuracy of at least"
        yield f"{100 * ACCURACY:g} % if one right and one wrong prediction are added; dev may be"
        yield "too small. Choose one with `--min-probability`, and leave less probable inputs to"
        yield "people."
    else:
        yield f"**Suggested threshold: {least:g}.** Leave less probable inputs to people. It is the"
        yield f"lowest one with an accuracy of {100 * ACCURACY:g} % on dev, with one right and one"
        yield "wrong prediction added. Dev also selected the method, so test is the fairer check."
        yield "`predict` compares each probability with it in the column `confident`, and"
        yield f"`--min-probability {least:g}` writes no label below it."
    yield ""
    heads = [
        f"{what} % ({split})" for split in ("dev", "test") for what in ("labelled", "accuracy")
    ]
    yield from (f"| minimum probability | {' | '.join(heads)} |", "|---|---|---|---|---|")
    for dev, test in zip(coverage["dev"], coverage["test"], strict=True):
        mark = " (suggested)" if test["min_probability"] == least else ""
        cells = [
            f"{test['min_probability']:g}{mark}",
            *(_format_percent(row[key]) for row in (dev, test) for key in ("coverage", "accuracy")),
        ]
        yield f"| {' | '.join(cells)} |"


def _format_percent(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _format_limits(exported: ExportedModel) -> Iterator[str]:
    yield f"The model is meant for dialogues like those of {exported.dataset}: in their language,"
    yield "about their topics, with these labels. Its scores on other dialogues may be much lower."
    yield "Check a sample of its predictions before use. Let people decide if much depends on it."


def _format_licences(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"- Data: {facts['licence']}"
    if facts["checkpoint"] is not None:
        known = find_licence(Path(facts["checkpoint"]))
        see = f"see the page of {facts['model']} ({facts['weights']})"
        yield f"- Base model: {known or see}"
    yield "- A model may carry over the conditions of both. The folder grants no further rights."


def find_licence(checkpoint: Path) -> str | None:
    """Find the licence in the model card of a checkpoint, or return None."""
    try:
        text = read_regular(checkpoint / FILE).decode("utf-8", "replace")
    except OSError:
        return None
    match = _LICENCE.search(text.partition("\n---")[0] if text.startswith("---") else "")
    return match[1].strip() if match else None


def format_summary(exported: ExportedModel, folder: Path) -> str:
    """Format a one-line summary of an exported model."""
    test = _format_interval(exported.scores["test"])
    least = exported.min_probability
    threshold = "" if least is None else f", suggested threshold {least:g}"
    return (
        f"{folder}: {exported.method} for {exported.dataset}/{exported.task}, test score {test}, "
        f"temperature {exported.temperature:g}{threshold}"
    )
