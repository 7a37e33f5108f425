"""Encoders and decoders of sequence-to-sequence models, for teacher forcing and generation.

Rows are packed for LSTMs and masked for Transformers, so that padding is ignored. Shapes: ids
(rows, positions), states (rows, positions, units).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tasktransfer.layers.ended import have_all_ended

LstmState = tuple[Tensor, Tensor]
"""An LSTM's hidden states and cell states, each (layers, rows, units)."""


class EncoderOutput(NamedTuple):
    """The output of an encoder.

    Attributes:
        memory: states of the top layer, (rows, positions, units).
        mask: mask of valid positions, (rows, positions).
        last: last states of all layers, (layers, rows, units); None for a Transformer.
    """

    memory: Tensor
    mask: Tensor
    last: LstmState | None


class RecurrentEncoder(nn.Module):
    """LSTM layers over words; outputs and states of two directions are added."""

    def __init__(
        self, vocabulary: int, embedding: int, units: int, layers: int, *, both_ways: bool
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, units, layers, batch_first=True, bidirectional=both_ways)

    def forward(self, ids: Tensor, lengths: Tensor) -> EncoderOutput:
        return _run_lstm(self.lstm, self.embed(ids), lengths)


class HierarchicalEncoder(nn.Module):
    """HRED's encoder (Sordoni et al. 2015): an LSTM over words, and one over sentences."""

    def __init__(
        self, vocabulary: int, embedding: int, units: int, layers: int, sentence_end: int
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.sentence = nn.LSTM(embedding, units, layers, batch_first=True)
        self.context = nn.LSTM(units, units, layers, batch_first=True)
        self.sentence_end = sentence_end

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> EncoderOutput:
        """Encode rows of words as states.

        Args:
            words: ids on the host, where they are split into sentences, which avoids waiting for
                the device; None if ``ids`` are on the host.
        """
        words = ids if words is None else words
        ends = [
            self._find_sentence_ends(row[:n])
            for row, n in zip(words, lengths.tolist(), strict=True)
        ]
        cut = [_split_row(row, to) for row, to in zip(ids, ends, strict=True)]
        flat = [sentence for sentences in cut for sentence in sentences]
        counts = torch.tensor([len(sentences) for sentences in cut])
        sizes = torch.tensor([len(sentence) for sentence in flat])
        read = _run_lstm(self.sentence, self.embed(pad_sequence(flat, batch_first=True)), sizes)
        assert read.last is not None
        vectors = read.last[0][-1]
        of_rows = list(torch.split(vectors, counts.tolist()))
        return _run_lstm(self.context, pad_sequence(of_rows, batch_first=True), counts)

    def _find_sentence_ends(self, row: Tensor) -> list[int]:
        """Find the ends of sentences in a row.

        A sentence ends after its end mark, and the last one at the end of the row.
        """
        ends: list[int] = (torch.nonzero(row[:-1] == self.sentence_end).flatten() + 1).tolist()
        return [*ends, len(row)]


class TransformerEncoder(nn.Module):
    """Self-attention layers over words with sinusoidal positions."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        heads: int,
        feed_forward: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, heads, feed_forward, dropout, batch_first=True)
        norm = nn.LayerNorm(width)
        self.layers = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)

    def forward(self, ids: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = _build_mask(ids, lengths)
        states = self.layers(add_positions(self.embed(ids)), src_key_padding_mask=~mask)
        return EncoderOutput(states, mask, None)


class RecurrentDecoder(nn.Module):
    """LSTM layers that start from the encoder's last states.

    With attention, each state is concatenated with a weighted mean of the memory, by additive
    scores (Bahdanau et al. 2015). Attention is computed after the step, as in Luong et al. 2015, so
    that a whole target is one call.
    """

    def __init__(
        self, vocabulary: int, embedding: int, units: int, layers: int, *, attends: bool
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, units, layers, batch_first=True)
        self.attends = attends
        if attends:
            self.of_memory = nn.Linear(units, units, bias=False)
            self.of_state = nn.Linear(units, units, bias=False)
            self.score = nn.Linear(units, 1, bias=False)
            self.join = nn.Linear(2 * units, units)
        self.words = nn.Linear(units, vocabulary)

    def forward(self, ids: Tensor, read: EncoderOutput) -> Tensor:
        """Compute the logits of the next word after each ID, (rows, positions, vocabulary)."""
        states, _ = self.lstm(self.embed(ids), read.last)
        return self._compute_logits(states, read)

    def generate(self, read: EncoderOutput, start: int, end: int, longest: int) -> Tensor:
        """Generate words greedily until all rows have ended, (rows, steps).

        On a device the end is noticed with some delay.
        """
        rows, carried = read.memory.shape[0], read.last
        word = read.memory.new_full((rows, 1), start, dtype=torch.long)
        words, ended = [], torch.zeros(rows, dtype=torch.bool, device=word.device)
        for step in range(longest):
            states, carried = self.lstm(self.embed(word), carried)
            word = self._compute_logits(states, read).argmax(-1)
            words.append(word)
            ended |= word[:, 0] == end
            if have_all_ended(ended, step):
                break
        return torch.cat(words, 1)

    def _compute_logits(self, states: Tensor, read: EncoderOutput) -> Tensor:
        if self.attends:
            both = self.of_state(states)[:, :, None] + self.of_memory(read.memory)[:, None]
            scores = self.score(both.tanh())[..., 0]
            weights = scores.masked_fill(~read.mask[:, None], -math.inf).softmax(-1)
            states = self.join(torch.cat([states, weights @ read.memory], -1)).tanh()
        logits: Tensor = self.words(states)
        return logits


class TransformerDecoder(nn.Module):
    """Attention layers over the previous words and over the memory."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        heads: int,
        feed_forward: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerDecoderLayer(width, heads, feed_forward, dropout, batch_first=True)
        self.layers = nn.TransformerDecoder(layer, layers, nn.LayerNorm(width))
        self.words = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor, read: EncoderOutput) -> Tensor:
        """Compute the logits of the next word after each ID, (rows, positions, vocabulary)."""
        logits: Tensor = self.words(self._compute_states(ids, read))
        return logits

    def generate(self, read: EncoderOutput, start: int, end: int, longest: int) -> Tensor:
        """Generate words greedily until all rows have ended, (rows, steps).

        Each step computes all previous words again.
        """
        rows = read.memory.shape[0]
        ids = read.memory.new_full((rows, 1), start, dtype=torch.long)
        ended = torch.zeros(rows, dtype=torch.bool, device=ids.device)
        for step in range(longest):
            word = self.words(self._compute_states(ids, read)[:, -1:]).argmax(-1)
            ids = torch.cat([ids, word], 1)
            ended |= word[:, 0] == end
            if have_all_ended(ended, step):
                break
        return ids[:, 1:]

    def _compute_states(self, ids: Tensor, read: EncoderOutput) -> Tensor:
        count = ids.shape[1]
        later = torch.ones(count, count, dtype=torch.bool, device=ids.device).triu(1)
        states: Tensor = self.layers(
            add_positions(self.embed(ids)),
            read.memory,
            tgt_mask=later,
            tgt_is_causal=True,  # otherwise torch compares the mask, and the host waits
            memory_key_padding_mask=~read.mask,
        )
        return states


def add_positions(embedded: Tensor) -> Tensor:
    """Scale embeddings and add sinusoidal positions (Vaswani et al. 2017, section 3.5)."""
    _, count, width = embedded.shape
    position = torch.arange(count, device=embedded.device)[:, None]
    even = torch.arange(0, width, 2, device=embedded.device)
    angles = position * torch.exp(even * (-math.log(10_000.0) / width))
    sinusoids = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return embedded * math.sqrt(width) + sinusoids


def _run_lstm(lstm: nn.LSTM, inputs: Tensor, lengths: Tensor) -> EncoderOutput:
    """Run an LSTM over rows of given lengths, ignoring padding."""
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, (hidden, cells) = lstm(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    if lstm.bidirectional:
        memory = torch.unflatten(memory, -1, (2, -1)).sum(-2)
        hidden, cells = (torch.unflatten(states, 0, (-1, 2)).sum(1) for states in (hidden, cells))
    return EncoderOutput(memory, _build_mask(memory[..., 0], lengths), (hidden, cells))


def _split_row(row: Tensor, ends: Sequence[int]) -> list[Tensor]:
    return [row[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _build_mask(ids: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of valid positions.

    Args:
        lengths: lengths on the host, copied to the device without waiting.
    """
    if ids.device.type != "cpu":
        lengths = lengths.pin_memory().to(ids.device, non_blocking=True)
    return torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
