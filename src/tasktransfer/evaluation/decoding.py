"""Diverse beam search (Vijayakumar et al. 2018), the decoding of Rashkin et al.

Beams form groups. At each step the groups select their tokens in order. A token's score is lowered
by ``penalty`` for each beam of an earlier group that selected it at this step. Widths and penalty
are choices of this project, since the paper does not report them. The beam with the highest mean
log-probability of its tokens is returned.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tasktransfer.layers.ended import have_all_ended


def search_diverse_beams(
    model: Any,
    attended: Any,
    mask: Tensor,
    *,
    groups: int,
    beams: int,
    penalty: float,
    longest: int,
) -> Tensor:
    """Search the best answer of each row by diverse beam search.

    Args:
        model: an encoder-decoder of transformers.
        attended: encoder outputs, shape (rows, tokens, hidden size).
        mask: attention mask, (rows, tokens), 1 for tokens.
        beams: number of beams per group.
        longest: maximum number of new tokens.

    Returns:
        Token ids without the start token, (rows, new tokens), padded after the end.
    """
    config, states = model.config, attended.last_hidden_state
    rows, each = len(states), groups * beams
    end, pad = config.eos_token_id, config.pad_token_id
    states, mask = (x.repeat_interleave(each, 0) for x in (states, mask))
    generated = torch.full((rows, each, 1), config.decoder_start_token_id, device=states.device)
    totals = torch.full((rows, groups, beams), float("-inf"), device=states.device)
    totals[:, :, 0] = 0.0  # All beams start equal, so one per group continues.
    ended = torch.zeros((rows, each), dtype=torch.bool, device=states.device)
    for step in range(longest):
        logits = model(
            encoder_outputs=type(attended)(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=generated.flatten(0, 1),
            use_cache=False,
        ).logits[:, -1]
        logp = torch.log_softmax(logits.float(), -1).view(rows, groups, beams, -1)
        over = ended.view(rows, groups, beams)
        only_pad = torch.full_like(logp[0, 0, 0], float("-inf"))
        only_pad[pad] = 0.0
        logp = torch.where(over[..., None], only_pad, logp)
        generated, totals, ended = _append_token(generated, totals, ended, logp, penalty, pad, end)
        if have_all_ended(ended, step):
            break
    return _select_best_beam(generated, totals.flatten(1), pad)


def _append_token(
    generated: Tensor,
    totals: Tensor,
    ended: Tensor,
    logp: Tensor,
    penalty: float,
    pad: int,
    end: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Append a token to beams, and return them with log-probabilities and end flags."""
    rows, groups, beams, words = logp.shape
    chosen = torch.zeros((rows, words), device=logp.device)
    texts, sums, over = [], [], []
    for group in range(groups):
        scores = totals[:, group, :, None] + logp[:, group]
        penalised = scores - penalty * chosen[:, None]
        picked = penalised.flatten(1).topk(beams, dim=1).indices
        beam, word = picked // words, picked % words
        own = generated.view(rows, groups, beams, -1)[:, group]
        before = own.gather(1, beam[..., None].expand(-1, -1, own.shape[-1]))
        texts.append(torch.cat([before, word[..., None]], dim=-1))
        sums.append(scores.flatten(1).gather(1, picked))
        was = ended.view(rows, groups, beams)[:, group].gather(1, beam)
        over.append(was | (word == end))
        new = torch.where(was, torch.zeros_like(word, dtype=torch.float), 1.0)
        chosen.scatter_add_(1, word, new.to(chosen.dtype))
        chosen[:, pad] = 0.0
    return torch.cat(texts, 1), torch.stack(sums, 1), torch.cat(over, 1)


def _select_best_beam(generated: Tensor, totals: Tensor, pad: int) -> Tensor:
    lengths = (generated[..., 1:] != pad).sum(-1).clamp(min=1)
    best = (totals / lengths).argmax(1)
    return generated[torch.arange(len(generated), device=generated.device), best, 1:]
