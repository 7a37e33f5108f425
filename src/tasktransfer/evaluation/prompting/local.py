"""A causal language model in this process, prompted in batches.

All prompts of a task share a prefix (an instruction and the same examples), and so do all choices
of a question. Both prefixes are computed once: their keys and values are cached, and batches
continue from there. Results differ by rounding only.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tasktransfer.evaluation.prompting.model import Likelihood, has_stopped, truncate_at_stop
from tasktransfer.evaluation.prompting.texts import Ids, PromptTokenizer, TokenRow
from tasktransfer.tasks.asking import InstancePrompt, Prompt
from tasktransfer.training.setup import Setup

MAX_CACHE_FACTOR = 4
"""Maximum number of tokens in the key-value cache, as a multiple of the tokens per batch."""
LOGITS_DIVISOR = 8
"""Divisor of the tokens per batch when logits of the whole (large) vocabulary are needed."""


@dataclass
class CausalModel:
    """A decoder with its tokenizer and chat template."""

    module: Any
    texts: PromptTokenizer
    device: torch.device
    setup: Setup
    counts: dict[str, float] = field(
        default_factory=lambda: {"read_tokens": 0, "generated_tokens": 0}
    )
    gives_likelihoods: bool = True

    def __post_init__(self) -> None:
        self.module.eval()
        self._takes = set(inspect.signature(self.module.forward).parameters)
        config = self.module.config.get_text_config()
        window = getattr(config, "sliding_window", None) or getattr(config, "local_attention", None)
        # An attention window counts padding as positions, so such rows are computed one by one.
        self._padded = not window or window >= self.texts.max_length

    @property
    def max_length(self) -> int:
        return self.texts.max_length

    def list_notes(self, *, chooses: bool) -> list[str]:
        return list(self.texts.notes)

    def count_tokens(self, prompt: Prompt) -> int:
        return self.texts.count_tokens(prompt)

    def truncate_text(self, text: str, most: int, keeps: str) -> str:
        return self.texts.truncate_text(text, most, keeps)

    # --- likelihoods ---

    def compute_likelihoods(self, prompts: Sequence[InstancePrompt]) -> list[list[Likelihood]]:
        rows = [self.texts.tokenize_choices(question) for question in prompts]
        scored: list[list[Likelihood]] = self._run_within_budget(
            lambda tokens: self._compute_likelihoods(rows, tokens)
        )
        return scored

    def _compute_likelihoods(
        self, rows: Sequence[Sequence[TokenRow]], tokens: int
    ) -> list[list[Likelihood]]:
        prefixes = [self._extract_question_prefix(each) for each in rows]
        scored: dict[int, list[Likelihood]] = {}
        head = self._extract_common_prefix(prefixes)
        for batch in self._batch_by_length(prefixes, len(head), tokens):
            state = self._compute_state([prefixes[n] for n in batch], head)
            choices = [
                (index, row.ids[len(prefixes[n]) :], row.begin - len(prefixes[n]))
                for index, n in enumerate(batch)
                for row in rows[n]
            ]
            continued = iter(self._score_choices(state, choices, tokens))
            for n in batch:
                scored[n] = [next(continued) for _ in rows[n]]
        return [scored[n] for n in range(len(rows))]

    @staticmethod
    def _extract_question_prefix(rows: Sequence[TokenRow]) -> Ids:
        """Return the common prefix of a prompt's rows, up to the first token of a choice."""
        shared = _measure_common_prefix([row.ids for row in rows])
        least = min(min(row.begin, len(row.ids) - 1) for row in rows)
        return rows[0].ids[: max(1, min(shared, least))]

    def _score_choices(
        self, state: _BatchState, choices: Sequence[tuple[int, Ids, int]], tokens: int
    ) -> Iterator[Likelihood]:
        """Yield the likelihood of each choice after its prompt.

        Args:
            choices: (row of the state, remaining token ids, index of the first of them that
                belongs to the choice) of each choice.
        """
        first = state.logits.log_softmax(-1)
        at = torch.tensor([(row, ids[0]) for row, ids, _ in choices], device=self.device)
        each = [[value] for value in first[at[:, 0], at[:, 1]].tolist()]
        longer = [n for n, (_, ids, _) in enumerate(choices) if len(ids) > 1]
        width = max((len(choices[n][1]) for n in longer), default=0) - 1
        together = min(
            tokens // LOGITS_DIVISOR // max(1, width),
            MAX_CACHE_FACTOR * tokens // (state.width + width),
        )
        for begin in range(0, len(longer), max(1, together)):
            some = longer[begin : begin + max(1, together)]
            later = self._score_later_tokens(state, [choices[n][:2] for n in some])
            for n, likelihood in zip(some, later, strict=True):
                each[n] += likelihood
        for question, (_, ids, counted) in zip(each, choices, strict=True):
            yield Likelihood(sum(question[counted:]), len(ids) - counted)

    def _score_later_tokens(
        self, state: _BatchState, choices: Sequence[tuple[int, Ids]]
    ) -> list[list[float]]:
        """Compute the log-probabilities of each choice's tokens after the first token."""
        rows = torch.tensor([row for row, _ in choices], device=self.device)
        width = max(len(ids) for _, ids in choices)
        ids = torch.zeros((len(choices), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, (_, choice) in enumerate(choices):
            ids[index, : len(choice)] = torch.tensor(choice)
            mask[index, : len(choice)] = 1
        ids, mask = ids.to(self.device), mask[:, :-1].to(self.device)
        whole = torch.cat([state.mask[rows], mask], 1)
        logits, _ = self._forward(
            ids[:, :-1], whole, _copy_cache_rows(state.cache, rows), width - 1
        )
        log_likelihoods = logits.gather(-1, ids[:, 1:, None])[..., 0] - logits.logsumexp(-1)
        return [
            row[: len(c) - 1] for row, (_, c) in zip(log_likelihoods.tolist(), choices, strict=True)
        ]

    # --- generation ---

    def generate(self, prompts: Sequence[Prompt], most: int, stops: Sequence[str]) -> list[str]:
        rows = self.texts.tokenize_texts([self.texts.render_prompt(prompt) for prompt in prompts])
        written: list[str] = self._run_within_budget(
            lambda tokens: self._generate_batches(rows, most, stops, tokens)
        )
        return written

    def _generate_batches(
        self, rows: Sequence[Ids], most: int, stops: Sequence[str], tokens: int
    ) -> list[str]:
        written: dict[int, str] = {}
        head = self._extract_common_prefix(rows)
        for batch in self._batch_by_length(rows, len(head), tokens):
            state = self._compute_state([rows[n] for n in batch], head)
            written |= dict(zip(batch, self._generate_greedily(state, most, stops), strict=True))
        return [written[n] for n in range(len(rows))]

    def _generate_greedily(self, state: _BatchState, most: int, stops: Sequence[str]) -> list[str]:
        """Generate the answer of each row greedily, with at most ``most`` tokens."""
        written: list[Ids] = [[] for _ in state.logits]
        left, logits, mask, cache = list(range(len(written))), state.logits, state.mask, state.cache
        for _ in range(most):
            chosen = logits.argmax(-1).tolist()
            going = []
            for index, (row, token) in enumerate(zip(left, chosen, strict=True)):
                if token in self._end_ids:
                    continue
                written[row].append(token)
                if not has_stopped(self._decode_answer(written[row]), stops):
                    going.append(index)
            self.counts["generated_tokens"] += len(left)
            if not going:
                break
            if len(going) < len(left):  # Continue with a copy of the cache of the unfinished rows.
                kept = torch.tensor(going, device=self.device)
                left = [left[index] for index in going]
                cache, mask = _copy_cache_rows(cache, kept), mask[kept]
            mask = torch.cat([mask, mask.new_ones(len(left), 1)], 1)
            ids = torch.tensor([[written[row][-1]] for row in left], device=self.device)
            logits, cache = self._forward(ids, mask, cache, 1)
            logits = logits[:, -1]
        return [truncate_at_stop(self._decode_answer(ids), stops) for ids in written]

    def _decode_answer(self, ids: Ids) -> str:
        text: str = self.texts.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    @property
    def _end_ids(self) -> set[int]:
        """IDs of tokens that end an answer."""
        named = self.module.generation_config.eos_token_id
        listed = named if isinstance(named, list) else [named]
        return {i for i in (*listed, self.texts.tokenizer.eos_token_id) if i is not None}

    # --- computing ---

    def _run_within_budget(self, work: Any) -> Any:
        with torch.inference_mode():
            return self.setup.eval_budget.run_within_memory(work, undo=lambda: None)

    def _extract_common_prefix(self, rows: Sequence[Ids]) -> Ids:
        """Return the common prefix of all rows, without the shortest row's last token.

        It is empty for a single row, for which a cached prefix would not save time.
        """
        if len(rows) < 2:
            return []
        shared = _measure_common_prefix(rows)
        return rows[0][: max(0, min(shared, min(map(len, rows)) - 1))]

    def _batch_by_length(self, rows: Sequence[Ids], head: int, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of rows in batches of similar lengths within the token budget.

        The budget covers the computation and the cache.
        """
        batch: list[int] = []
        for n in sorted(range(len(rows)), key=lambda n: -len(rows[n])):
            longest = len(rows[batch[0]] if batch else rows[n])
            count = len(batch) + 1
            full = count * (longest - head) > tokens or count * longest > MAX_CACHE_FACTOR * tokens
            if batch and (full or not self._padded):
                yield batch
                batch = []
            batch.append(n)
        if batch:
            yield batch

    def _compute_state(self, rows: Sequence[Ids], head: Ids) -> _BatchState:
        """Compute the model's state after each row, sharing the common prefix ``head``."""
        count = len(rows)
        own = [row[len(head) :] for row in rows]
        width = max(map(len, own))
        ids = torch.zeros((count, width), dtype=torch.long)
        mask = torch.ones((count, len(head) + width), dtype=torch.long)
        for index, row in enumerate(own):
            ids[index, width - len(row) :] = torch.tensor(row)
            mask[index, len(head) : len(head) + width - len(row)] = 0
        cache = None
        if head:
            cache = _copy_cache_rows(
                self._get_prefix_cache(head),
                torch.zeros(count, dtype=torch.long, device=self.device),
            )
        mask = mask.to(self.device)
        logits, cache = self._forward(ids.to(self.device), mask, cache, 1)
        self.counts["read_tokens"] += sum(map(len, own))
        return _BatchState(logits[:, -1], cache, mask)

    def _get_prefix_cache(self, head: Ids) -> Any:
        """Return the keys and values of a common prefix, cached for the last prefix."""
        if getattr(self, "_last_head", None) != head:
            ids = torch.tensor([head], device=self.device)
            _, self._last_cache = self._forward(ids, torch.ones_like(ids), None, 1)
            self._last_head = head
            self.counts["read_tokens"] += len(head)
        return self._last_cache

    def _forward(self, ids: Tensor, mask: Tensor, cache: Any, last: int) -> tuple[Tensor, Any]:
        """Run the model, and return the last tokens' logits with the key-value cache.

        Logits have the shape (rows, ``last``, vocabulary), in float32.
        """
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        more = {"position_ids": places, "logits_to_keep": last}
        output = self.module(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **{name: value for name, value in more.items() if name in self._takes},
        )
        return output.logits[:, -last:].float(), output.past_key_values

    def get_counts(self) -> dict[str, float]:
        return dict(self.counts)


@dataclass(frozen=True, slots=True)
class _BatchState:
    """The model's state after a batch of rows.

    Attributes:
        logits: logits of the next token, (rows, vocabulary).
        cache: keys and values.
        mask: attention mask, (rows, positions).
    """

    logits: Tensor
    cache: Any
    mask: Tensor

    @property
    def width(self) -> int:
        return int(self.mask.shape[1])


def _measure_common_prefix(rows: Sequence[Ids]) -> int:
    """Measure the common prefix of all rows in tokens."""
    first, last = min(rows), max(rows)  # The prefix that these two share is common to all.
    pairs = enumerate(zip(first, last, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(last)))


def _copy_cache_rows(cache: Any, rows: Tensor) -> Any:
    """Copy the keys and values of given rows, which may be repeated.

    Layers are copied shallowly: a layer that continues creates new tensors and does not change
    those of other copies.
    """
    new = copy.copy(cache)
    new.layers = [copy.copy(layer) for layer in cache.layers]
    new.batch_select_indices(rows)
    return new
