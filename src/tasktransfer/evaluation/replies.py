"""Evaluation of retrieved or generated replies: P@1, BLEU against pools, perplexity.

Each measure is requested by name, and writes one row per instance:

    p_at_1      prediction: the best reply of the block; score: 100 if it is the gold reply
    bleu        prediction: the retrieved reply and its pool, or the generated reply
    perplexity  predicted_value: negative log-probability of the gold reply, in nats; gold_value:
                its number of tokens

``gold`` is the gold reply, and the instance's label (its emotion) if it has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from tasktransfer.core.identity import compute_digest
from tasktransfer.core.nodes import Evaluation, Outcome, Pool
from tasktransfer.data.samples import select_indices
from tasktransfer.encoding.encoded import EncodedSplit, read_split
from tasktransfer.errors import ConfigError, DataError
from tasktransfer.evaluation.decoding import search_diverse_beams
from tasktransfer.evaluation.outcome import EvaluationInputs, load_evaluated_model
from tasktransfer.files import replace_file
from tasktransfer.files.progress import show_progress
from tasktransfer.metrics import bleu
from tasktransfer.metrics.answers import encode_answers
from tasktransfer.metrics.retrieval import Numbers, compute_block_measures, select_block_rows
from tasktransfer.models.dual_encoder import CANDIDATE, CONTEXT, DualEncoder
from tasktransfer.models.family import FamilyModel
from tasktransfer.models.reply_writer import ReplyWriter
from tasktransfer.models.text_to_text import EncoderDecoder
from tasktransfer.tasks.card import Instance
from tasktransfer.tasks.compose import PREFIX_FIELD, get_gold_answers, strip_reply_prefix
from tasktransfer.training.setup import Setup

Floats = npt.NDArray[np.float32]
EMBEDDING_VERSION = 1
BLOCK_ROWS = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplyResults:
    """The measures, and for each instance its prediction, gold reply, two numbers and score."""

    measures: dict[str, float]
    instances: list[Instance]
    predictions: list[tuple[str, ...]]
    golds: list[tuple[str, ...]]
    values: list[float | None]
    gold_values: list[float | None]
    scores: list[float | None]


@dataclass(frozen=True, slots=True)
class ReplyEvaluation:
    """An evaluation with its inputs.

    Attributes:
        instances: instances of the split.
        pools: training instances of each pool.
        cache: folder of embedded pools.
    """

    evaluation: Evaluation
    outcome: Outcome
    places: EvaluationInputs
    instances: Sequence[Instance]
    pools: Mapping[Pool, Sequence[Instance]]
    cache: Path

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.evaluation.settings


def evaluate_replies(inputs: ReplyEvaluation) -> tuple[ReplyResults, Setup]:
    """Evaluate an outcome's replies, and return the results and the setup.

    Raises:
        ConfigError: the measures are not available for this model.
        DataError: there are fewer rows than a block, a pool's filter leaves no candidates, or token
            ids are damaged.
        MemoryShortageError: not even one instance at a time fits into memory.
    """
    device = inputs.places.hardware.prepare_device()
    evaluation = inputs.evaluation
    model = load_evaluated_model(evaluation, inputs.outcome, inputs.places, device)
    model.module.eval()
    folder = inputs.places.encoded[evaluation.data, evaluation.model_names[0]]
    split = read_split(folder, evaluation.task, evaluation.split)
    (first, *_) = evaluation.measures
    kept = _select_evaluated_instances(inputs.settings, first, len(split.ids))
    split = split.select_instances(kept)
    instances = [inputs.instances[i] for i in kept]
    functions: dict[tuple[type, str], Callable[..., ReplyResults]] = {
        (DualEncoder, "p_at_1"): _evaluate_p_at_1,
        (DualEncoder, "bleu"): _evaluate_retrieval,
        (EncoderDecoder, "bleu"): _evaluate_generation,
        (EncoderDecoder, "perplexity"): evaluate_perplexity,
    }
    kind = EncoderDecoder if isinstance(model, ReplyWriter) else type(model)
    if (kind, first) not in functions:
        available = [name for family, name in functions if family is kind]
        raise ConfigError(
            f"{evaluation.label}: The measure {first!r} is not available for this model. "
            f"Choose from {', '.join(available) or 'no measure of replies'}."
        )
    released = inputs.outcome.model
    family = released.family if released else inputs.outcome.stages[0].model.family
    setup = inputs.places.hardware.choose_setup(model, family, device)
    with torch.inference_mode():
        return functions[kind, first](inputs, model, setup, split, instances), setup


def _compute_in_batches(
    model: FamilyModel,
    setup: Setup,
    split: EncodedSplit,
    rows: Sequence[int],
    compute: Callable[[list[int]], Sequence[T]],
    share: int = 1,
) -> list[T]:
    """Compute a result for each row in micro-batches, in the order of ``rows``.

    Args:
        share: number of times that a row's tokens count in the token budget.
    """

    def compute_within(tokens: int) -> dict[int, T]:
        results: dict[int, T] = {}
        with setup.autocast():
            micro_batches = model.split_for_prediction(split, rows, max(1, tokens // share))
            for batch in show_progress(micro_batches, "computing replies, batches"):
                results |= dict(zip(batch, compute(batch), strict=True))
        return results

    by_row = setup.eval_budget.run_within_memory(compute_within, undo=lambda: None)
    return [by_row[row] for row in rows]


def _select_evaluated_instances(settings: Mapping[str, Any], measure: str, count: int) -> Numbers:
    """Select the indices of evaluated instances, which fill complete blocks for P@1."""
    if measure != "p_at_1":
        return select_indices(count, settings.get("limit"))
    most, drop_last = settings.get("blocks"), bool(settings.get("drop_last_block", False))
    return select_block_rows(count, settings["block"], most=most, drop_last=drop_last)


# --- retrieval ----------------------------------------------------------------------------------


def _evaluate_p_at_1(
    inputs: ReplyEvaluation,
    model: DualEncoder,
    setup: Setup,
    split: EncodedSplit,
    instances: list[Instance],
) -> ReplyResults:
    contexts, replies = (_encode_rows(model, setup, split, side) for side in (CONTEXT, CANDIDATE))
    settings, size = inputs.settings, inputs.settings["block"]

    def compute_scores(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Any:
        scores = model.compute_scores(
            torch.from_numpy(contexts[rows]), torch.from_numpy(replies[columns])
        )
        return scores.double().numpy()

    measures, right = compute_block_measures(
        compute_scores, np.arange(len(split)), size, settings.get("shuffles", 20)
    )
    none: list[float | None] = [None] * len(instances)
    golds = [get_gold_answers(instance) for instance in instances]
    points: list[float | None] = [100 * float(value) for value in right]
    return ReplyResults(measures, instances, [g[:1] for g in golds], golds, none, none, points)


def _evaluate_retrieval(
    inputs: ReplyEvaluation,
    model: DualEncoder,
    setup: Setup,
    split: EncodedSplit,
    instances: list[Instance],
) -> ReplyResults:
    contexts = _encode_rows(model, setup, split, CONTEXT)
    texts: list[str] = []
    pool_names: list[str] = []
    vectors: list[Floats] = []
    seen: set[str] = set()
    for pool, rows in inputs.pools.items():
        kept, embedded = _encode_pool(inputs, model, setup, pool, rows)
        for row, instance in enumerate(kept):
            text = strip_reply_prefix(instance)
            if text not in seen:
                seen.add(text)
                texts.append(text)
                pool_names.append(pool.data.name)
                vectors.append(embedded[row])
    candidates = torch.from_numpy(np.stack(vectors))
    best: list[int] = []
    blocks = range(0, len(contexts), BLOCK_ROWS)
    for begin in show_progress(blocks, "ranking replies, blocks"):
        some = torch.from_numpy(contexts[begin : begin + BLOCK_ROWS])
        best += model.compute_scores(some, candidates).argmax(1).tolist()
    predictions = [(texts[index], pool_names[index]) for index in best]
    return _evaluate_bleu(instances, [(text,) for text, _ in predictions], predictions)


def _encode_pool(
    inputs: ReplyEvaluation, model: DualEncoder, setup: Setup, pool: Pool, rows: Sequence[Instance]
) -> tuple[list[Instance], Floats]:
    """Encode those candidates of a pool that pass the filter."""
    name = inputs.evaluation.model_names[0]
    folder = inputs.places.encoded[pool.data, name]
    split = read_split(folder, pool.task, "train")
    unknown = inputs.places.get_unknown_token_id(folder)
    limits = inputs.settings.get("pool_limit"), inputs.settings["pool_words"]
    places = select_candidates(rows, split, unknown, *limits, pool.data.label)
    key = compute_digest(
        {
            "version": EMBEDDING_VERSION,
            "of": inputs.outcome.digest,
            "pool": pool.data.digest,
            "task": pool.task,
            "rows": compute_digest(places),
            **({} if setup.precision == "float32" else {"precision": setup.precision}),
        }
    )
    file = inputs.cache / f"{key[:24]}.npy"
    if file.exists():
        return [rows[i] for i in places], np.load(file)
    vectors = _encode_rows(model, setup, split, CANDIDATE, places)
    with replace_file(file) as part, part.open("wb") as handle:
        np.save(handle, vectors)
    return [rows[i] for i in places], vectors


def select_candidates(
    rows: Sequence[Instance],
    split: EncodedSplit,
    unknown: int,
    limit: int | None,
    most: int,
    pool: str,
) -> list[int]:
    """Select the rows of a pool that are candidates.

    Candidates are distinct replies of at most ``most`` words, without the token id ``unknown`` and
    without quotations of Reddit (">").

    Args:
        limit: maximum number of rows to consider.

    Raises:
        DataError: no candidates are left.
    """
    seen: set[str] = set()
    left: list[int] = []
    for row in select_indices(len(rows), limit).tolist():
        text = strip_reply_prefix(rows[row])
        prefix = len(bleu.split_words(rows[row].query.get(PREFIX_FIELD, "")))
        ids = split.sequences[int(split.first_sequence[row]) + CANDIDATE]
        fits = 0 < len(bleu.split_words(rows[row].target[0])) <= most + prefix
        if fits and text not in seen and not text.startswith(">") and unknown not in ids:
            seen.add(text)
            left.append(row)
    if not left:
        raise DataError(
            f"{pool}: None of the {len(rows):,} candidates passes the filter (at most {most} "
            "words, without unknown words). Raise evaluation.pool_words, or use another pool."
        )
    return left


def _encode_rows(
    model: DualEncoder,
    setup: Setup,
    split: EncodedSplit,
    side: int,
    rows: Sequence[int] | None = None,
) -> Floats:
    selected = list(range(len(split))) if rows is None else list(rows)

    def encode_some(some: list[int]) -> list[Floats]:
        return [*model.encode_side(split, some, side).float().cpu().numpy()]

    return np.stack(_compute_in_batches(model, setup, split, selected, encode_some))


def _evaluate_bleu(
    instances: list[Instance],
    replies: Sequence[tuple[str, ...]],
    predictions: Sequence[tuple[str, ...]],
) -> ReplyResults:
    golds = [get_gold_answers(instance) for instance in instances]
    tally = bleu.tally_ngrams(encode_answers(replies), encode_answers([gold[:1] for gold in golds]))
    none: list[float | None] = [None] * len(instances)
    alone: list[float | None] = [100 * float(value) for value in bleu.compute_mean_bleu(tally)]
    measures = {"bleu": 100 * float(bleu.compute_mean_bleu(tally.sum(axis=0)))}
    return ReplyResults(measures, instances, list(predictions), golds, none, none, alone)


# --- generation ---------------------------------------------------------------------------------


def evaluate_perplexity(
    inputs: ReplyEvaluation,
    model: EncoderDecoder | ReplyWriter,
    setup: Setup,
    split: EncodedSplit,
    rows: list[Instance],
) -> ReplyResults:
    """Compute the perplexity of gold replies, per token of the model and per word."""

    def compute_losses(some: list[int]) -> list[float]:
        losses: list[float] = model.compute_losses(split, some).double().tolist()
        return losses

    losses = np.array(_compute_in_batches(model, setup, split, range(len(split)), compute_losses))
    tokens = split.labels.lengths()
    # The end of a reply counts as a word, because it counts as a token.
    count = sum(len(bleu.split_words(row.target[0])) + 1 for row in rows)
    measures = {
        "perplexity": math.exp(losses.sum() / tokens.sum()),
        "word_perplexity": math.exp(losses.sum() / count),
    }
    golds = [get_gold_answers(row) for row in rows]
    values: list[float | None] = list(losses.tolist())
    counts: list[float | None] = tokens.astype(float).tolist()
    none: list[float | None] = [None] * len(rows)
    return ReplyResults(measures, rows, [("",)] * len(rows), golds, values, counts, none)


def _evaluate_generation(
    inputs: ReplyEvaluation,
    model: EncoderDecoder | ReplyWriter,
    setup: Setup,
    split: EncodedSplit,
    rows: list[Instance],
) -> ReplyResults:
    inner = model.model if isinstance(model, ReplyWriter) else model

    def generate_texts(some: list[int]) -> list[str]:
        ids = _generate_tokens(inputs.settings, inner, split, some)
        texts: list[str] = inner.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return texts

    texts = _compute_in_batches(model, setup, split, range(len(split)), generate_texts, share=4)
    replies = [(text.strip(),) for text in texts]
    return _evaluate_bleu(rows, replies, replies)


def _generate_tokens(
    settings: Mapping[str, Any], model: EncoderDecoder, split: EncodedSplit, some: Sequence[int]
) -> torch.Tensor:
    inputs = model.build_inputs(split, some, {})
    attended = model.encode_context(split, some, inputs)["encoder_outputs"]
    return search_diverse_beams(
        model.module,
        attended,
        inputs["mask"],
        groups=settings.get("groups", 1),
        beams=settings.get("beams", 1),
        penalty=settings.get("penalty", 0.0),
        longest=settings["longest"],
    )
