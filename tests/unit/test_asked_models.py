"""Prompted models in this process: scores equal to a plain loop over choices.

Batches, order and shared prefixes change nothing beyond rounding. Also: generated text and its end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import architectures
from small_models import Loader
from tasktransfer.core.specs import Family, ModelSpec
from tasktransfer.data.cache import read_instances
from tasktransfer.datasets import get_task
from tasktransfer.errors import ModelError
from tasktransfer.evaluation.prompting.chat_template import ChatTemplate
from tasktransfer.evaluation.prompting.load import load_prompted_model
from tasktransfer.evaluation.prompting.local import CausalModel
from tasktransfer.evaluation.prompting.prompter import build_prompter
from tasktransfer.evaluation.prompting.seq2seq import Seq2SeqModel
from tasktransfer.tasks.asking import InstancePrompt, Prompt
from tasktransfer.training.hardware import Hardware

TASKS = (
    ("DailyDialog", "dialogue_act_classification"),
    ("DailyDialog", "adversarial_response_selection"),
    ("Friends", "personality_detection"),
)
CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}{{ '<assistant>' }}"
ROUNDING = 1e-5
FLOAT32 = Hardware("float32")


def questions(
    model: Any, base: Path, dataset: str, task: str, shots: int = 1
) -> list[InstancePrompt]:
    card = get_task(dataset, task)
    train, test = (
        read_instances(base / f"instances-{dataset}", task, s) for s in ("train", "test")
    )
    how = build_prompter(card, {"wording": 0, "shots": shots, "seed": 0}, train, model)
    return [one for instance in test for one in how.build_prompts(instance)]


def load_prompted(
    folder: Path, family: Family = "decoder", hardware: Hardware = FLOAT32, chat: Any = "auto"
) -> Any:
    return load_prompted_model(
        ModelSpec("small", family, "w", 512), str(folder), None, hardware, chat
    )


@pytest.fixture(scope="module")
def decoder(load: Loader, models_folder: Path) -> CausalModel:
    model = load_prompted(models_folder / "decoder")
    assert isinstance(model, CausalModel)
    with torch.no_grad():  # random weights would end at once
        model.module.get_output_embeddings().weight[model.texts.tokenizer.all_special_ids] = 0.0
    return model


def chat_of(model: CausalModel, template: str) -> ChatTemplate:
    return ChatTemplate(model.texts.tokenizer, template, "here", False, ())


def loop(model: CausalModel, asked: InstancePrompt) -> list[tuple[float, int]]:
    """Score every choice with its whole prompt, one after the other."""
    told = []
    for choice in asked.choices:
        prompt = model.texts.render_prompt(asked.prompt)
        text = f"{prompt}{'' if model.texts.chat else ' '}{choice}"
        read = model.texts.tokenizer
        encoded = read(text, add_special_tokens=False, return_offsets_mapping=True)
        added = [] if model.texts.chat else model.texts.tokenize_texts([""])[0]
        ids = torch.tensor([[*added, *encoded["input_ids"]]])
        with torch.inference_mode():
            logits = model.module(input_ids=ids).logits.float().log_softmax(-1)[0]
        own = [n for n, (_, end) in enumerate(encoded["offset_mapping"]) if end > len(prompt)]
        places = [n + len(added) for n in own]
        told.append((sum(float(logits[p - 1, ids[0, p]]) for p in places), len(places)))
    return told


def compare_with_loop(model: CausalModel, asked: list[InstancePrompt], error: float) -> None:
    for one, scored in zip(asked, model.compute_likelihoods(asked), strict=True):
        for (total, tokens), likelihood in zip(loop(model, one), scored, strict=True):
            assert likelihood.total == pytest.approx(total, abs=error * max(1, tokens))
            assert likelihood.tokens == tokens > 0


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("dataset", "task"), TASKS)
def test_scores_are_those_of_a_plain_loop(
    decoder: CausalModel, models_folder: Path, dataset: str, task: str, chat: bool
) -> None:
    decoder.texts.chat = chat_of(decoder, CHAT) if chat else None
    compare_with_loop(decoder, questions(decoder, models_folder, dataset, task), ROUNDING)
    decoder.texts.chat = None


def test_batches_order_and_shared_beginnings_change_nothing(
    decoder: CausalModel, models_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = questions(decoder, models_folder, "DailyDialog", "dialogue_act_classification")
    whole = decoder.compute_likelihoods(asked)
    alone = [decoder.compute_likelihoods([one])[0] for one in asked]
    backwards = decoder.compute_likelihoods(asked[::-1])[::-1]
    with monkeypatch.context() as patch:
        patch.setattr(decoder, "_extract_common_prefix", lambda rows: [])
        unshared = decoder.compute_likelihoods(asked)
        written = decoder.generate([one.prompt for one in asked], 6, ("\n",))
    narrow = decoder.setup.eval_budget.tokens
    decoder.setup.eval_budget.tokens = 16
    few = decoder.compute_likelihoods(asked)
    decoder.setup.eval_budget.tokens = narrow
    for other in (alone, backwards, unshared, few):
        for ours, theirs in zip(whole, other, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert a.tokens == b.tokens
                assert a.total == pytest.approx(b.total, abs=ROUNDING * max(1, a.tokens))
    assert written == decoder.generate([one.prompt for one in asked], 6, ("\n",))


def test_what_is_written_is_what_transformers_writes(
    decoder: CausalModel, models_folder: Path
) -> None:
    asked = questions(decoder, models_folder, "Friends", "question_answering")[:3]
    prompts = [one.prompt for one in asked]
    written = decoder.generate(prompts, 8, ("§",))
    assert any(written)
    for prompt, text in zip(prompts, written, strict=True):
        ids = torch.tensor([decoder.texts.tokenize_texts([prompt.text])[0]])
        with torch.inference_mode():
            whole = decoder.module.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
            )
        theirs = decoder.texts.tokenizer.decode(whole[0, ids.shape[1] :], skip_special_tokens=True)
        assert text == theirs.lstrip()
        stop = text[len(text) // 2 :][:1] or "never"
        assert decoder.generate([prompt], 8, (stop,)) == [text.split(stop)[0]]


def test_a_token_that_takes_the_end_of_the_prompt_is_counted(decoder: CausalModel) -> None:
    asked = InstancePrompt(Prompt(("hello th",)), 0, ("ere", "e"))
    decoder.texts.chat = chat_of(decoder, "{{ messages[0].content }}")
    compare_with_loop(decoder, [asked], ROUNDING)
    decoder.texts.chat = None


DECODERS = {"gpt2": {}, "llama": {}, "qwen3": {}, "opt": {}, "gpt_neox": {},
            "modernbert-decoder": {"local_attention": 8, "sliding_window": 8}}  # fmt: skip


@pytest.mark.parametrize("architecture", DECODERS)
def test_every_architecture_is_asked(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(architectures.FAMILY_OF, architecture, "decoder")
    start = architectures.write_checkpoint(architecture, tmp_path, **DECODERS[architecture])
    model = load_prompted_model(ModelSpec("m", "decoder", "w", 200), str(start), None, FLOAT32)
    assert isinstance(model, CausalModel)
    texts = ("Hello there, how are you", "the quick brown fox", "the quick brown fox jumps over")
    asked = [
        InstancePrompt(Prompt((f"we talk, {text}",)), 0, ("today", "I am fine")) for text in texts
    ]
    compare_with_loop(model, asked, ROUNDING)
    prompts = [one.prompt for one in asked]
    assert model.generate(prompts, 3, ("\n",)) == [
        model.generate([p], 3, ("\n",))[0] for p in prompts
    ]


def test_an_encoder_decoder_is_prompted_through_its_decoder(
    load: Loader, models_folder: Path
) -> None:
    model = load_prompted(models_folder / "encoder_decoder", "encoder_decoder")
    assert isinstance(model, Seq2SeqModel)
    asked = questions(model, models_folder, "DailyDialog", "dialogue_nli")[:2]
    for one, scored in zip(asked, model.compute_likelihoods(asked), strict=True):
        ids = model.texts.tokenizer(one.prompt.text, return_tensors="pt")
        for choice, likelihood in zip(one.choices, scored, strict=True):
            labels = model.texts.tokenizer(text_target=choice, return_tensors="pt")["input_ids"]
            with torch.inference_mode():
                logits = model.module(**ids, labels=labels).logits.log_softmax(-1)[0]
            own = [
                n for n, i in enumerate(labels[0]) if int(i) != model.texts.tokenizer.eos_token_id
            ]
            total = sum(float(logits[n, labels[0, n]]) for n in own)
            assert likelihood.total == pytest.approx(total, abs=1e-4)
            assert likelihood.tokens == len(own)
    assert len(model.generate([asked[0].prompt], 4, ("\n",))) == 1


def test_bfloat16_rounds_and_says_so(load: Loader, models_folder: Path) -> None:
    model = load_prompted(models_folder / "decoder", hardware=Hardware("bfloat16"))
    assert model.setup.precision == "bfloat16"
    assert {p.dtype for p in model.module.parameters()} == {torch.bfloat16}
    asked = questions(model, models_folder, "DailyDialog", "dialogue_nli")[:2]
    exact = load_prompted(models_folder / "decoder")
    totals = [
        [likelihood.total for scored in each.compute_likelihoods(asked) for likelihood in scored]
        for each in (model, exact)
    ]
    assert totals[0] == pytest.approx(totals[1], rel=0.05)


def test_what_cannot_be_asked_is_reported(load: Loader, models_folder: Path) -> None:
    with pytest.raises(ModelError, match="An encoder cannot generate"):
        load_prompted(models_folder / "encoder", "encoder")
    with pytest.raises(ModelError, match="no chat template"):
        load_prompted(models_folder / "decoder", chat="yes")


def test_a_prompt_that_does_not_fit_is_reported(decoder: CausalModel, models_folder: Path) -> None:
    decoder.texts.max_length = 20
    with pytest.raises(ModelError, match="use fewer shots"):
        questions(decoder, models_folder, "DailyDialog", "dialogue_act_classification")
    decoder.texts.max_length = 512
