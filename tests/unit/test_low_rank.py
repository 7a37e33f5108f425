"""Low-rank adapters: equal to peft's own, heads fully trained, and starts from other adapters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from adapted_stages import (
    EMOTIONS,
    EVERY_FAMILY,
    LORA,
    NLI,
    TRAINING,
    adapted,
    bodies,
    get_split,
    loaded,
    logits,
    read_by,
    scored,
)
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from safetensors.torch import load_file
from torch.nn import functional
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GPT2LMHeadModel,
)

from architectures import build_config
from small_models import train_job
from tasktransfer.core.nodes import Start
from tasktransfer.core.specs import FAMILIES, Family, Selection, Training
from tasktransfer.datasets import get_task
from tasktransfer.encoding.encoded import EncodedSplit
from tasktransfer.errors import ConfigError, ModelError
from tasktransfer.models.load import Loading, load_model
from tasktransfer.models.low_rank import WEIGHTS_FILE, add_adapter
from tasktransfer.training.samplers import Schedule

CLASSES = {
    "encoder": AutoModel,
    "decoder": AutoModelForCausalLM,
    "encoder_decoder": AutoModelForSeq2SeqLM,
}
FILES = {"adapter_config.json", WEIGHTS_FILE}
LEFT = {
    "encoder": {*FILES, "heads.safetensors"},
    "decoder": FILES,
    "encoder_decoder": FILES,
    "dual_encoder": {
        *(f"{side}/{file}" for side in ("context", "candidate") for file in FILES),
        *("config.json", "heads.safetensors"),
    },
}
"""What a checkpoint holds: nothing of the model's own weights."""


# --- as peft does it ----------------------------------------------------------------------------


def pad_rows(rows: list[list[int]], fill: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [fill] * (width - len(row)) for row in rows])


def reference_loss(
    family: Family, peft: Any, head: Any, split: EncodedSplit, batch: list[int], pad: int
) -> torch.Tensor:
    """Compute the mean loss of a padded batch with transformers and torch alone."""
    rows = [split.sequences[int(split.first_sequence[u])].tolist() for u in batch]
    answers = [split.labels[u].tolist() for u in batch]
    if family == "decoder":
        pairs = [*zip(rows, answers, strict=True)]
        labels = pad_rows([[-100] * len(row) + answer for row, answer in pairs], -100)
        rows = [row + answer for row, answer in pairs]
    ids, mask = pad_rows(rows, pad), pad_rows([[1] * len(row) for row in rows], 0)
    if family == "decoder":
        found = peft(input_ids=ids, attention_mask=mask).logits
        return functional.cross_entropy(found[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    if family == "encoder_decoder":
        return peft(input_ids=ids, attention_mask=mask, labels=pad_rows(answers, -100)).loss
    seconds = torch.tensor([int(split.second_starts[int(split.first_sequence[u])]) for u in batch])
    types = (torch.arange(ids.shape[1]) >= seconds[:, None]) * mask
    pooled = peft(input_ids=ids, attention_mask=mask, token_type_ids=types).pooler_output
    return functional.cross_entropy(head(pooled), torch.tensor([a[0] for a in answers]))


@pytest.mark.parametrize("family", FAMILIES)
def test_ten_updates_have_the_losses_of_pefts_own_model(
    family: Family, small: Path, tmp_path: Path
) -> None:
    stage = adapted(family, selection=Selection((EMOTIONS,), every=1))
    stage = replace(stage, training=replace(TRAINING, epochs=20))
    begun = loaded(small, stage, small / family)
    record = train_job(small, stage, tmp_path)
    ours = [one["train_loss"][EMOTIONS] for one in record["training"]["rounds"]][:10]
    base = CLASSES[family].from_pretrained(small / family)
    # The small encoder's checkpoint has no pooler.
    whole = ["pooler"] if family == "encoder" else None
    config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", modules_to_save=whole)
    peft = get_peft_model(base, config)
    (body,) = bodies(begun, family)
    start = get_peft_model_state_dict(body.adapted.peft, save_embedding_layers=False)
    set_peft_model_state_dict(peft, start)  # the same weights: A is drawn, B is zero
    head = begun.module["heads"][EMOTIONS] if family == "encoder" else None
    moving = [p for p in peft.parameters() if p.requires_grad]
    moving += [] if head is None else [*head.parameters()]
    adam = torch.optim.Adam(moving, lr=stage.training.learning_rate)
    split = get_split(small, family)
    schedule = Schedule.build(stage, {EMOTIONS: split})
    pad = base.config.pad_token_id or 0
    theirs = []
    for number in range(1, 11):
        ((batch,),) = schedule.iterate_round(number)
        loss = reference_loss(family, peft.train(), head, split, list(batch.examples), pad)
        theirs.append(float(loss.detach()))
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(moving, 1.0)
        adam.step()
    assert max(theirs) - min(theirs) > 1e-2  # they move
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


# --- files of a checkpoint ----------------------------------------------------------------------


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_an_adapter_is_saved_with_its_heads_and_loads_as_it_was(
    family: Family, small: Path, tmp_path: Path
) -> None:
    stage = adapted(family)
    record = train_job(small, stage, tmp_path)
    folder = tmp_path / "checkpoint"
    kept = {str(file.relative_to(folder)) for file in folder.rglob("*.*")}
    assert kept == LEFT[family]
    model = loaded(small, stage, folder)
    split = get_split(small, family, split="test")
    numbers = record["provenance"]["training"]["parameters"]  # type: ignore[index]
    assert numbers["trained"] < numbers["all"] / 4
    assert numbers["trained"] == numbers["learnable"]
    # What it answers is what the record was scored on.
    assert scored(model, split) == record["results"][EMOTIONS]["measures"]
    if "heads.safetensors" in kept:  # trained whole
        saved = load_file(folder / "heads.safetensors")
        fresh = loaded(small, stage, small / "encoder").module["heads"].state_dict()  # type: ignore[union-attr]
        assert not any(torch.equal(saved[n], fresh[n]) for n in saved if n.startswith(EMOTIONS))
    # The model under it has not moved, and is not on the disk.
    plain = CLASSES[read_by(family)].from_pretrained(small / read_by(family))
    released = dict(plain.named_parameters())
    for body in bodies(model, family):
        own = {n.replace("base_layer.", ""): p for n, p in body.named_parameters()}
        there = [name for name in own if name in released and "pooler" not in name]
        assert there and all(torch.equal(own[name], released[name]) for name in there)
    assert sum(f.stat().st_size for f in folder.rglob("*.*")) < 5 * numbers["trained"] + 30_000


def test_a_pooler_that_the_checkpoint_lacks_is_trained_whole(small: Path, tmp_path: Path) -> None:
    """If frozen, it would keep random weights and the head would be useless."""
    base, stage, encoded = small / "encoder", adapted("encoder"), small / "DailyDialog-encoder"
    assert not any("pooler" in name for name in load_file(base / "model.safetensors"))
    train_job(small, stage, tmp_path)
    saved = load_file(tmp_path / "checkpoint" / WEIGHTS_FILE)
    whole = [name for name in saved if "pooler" in name]
    assert sorted(name.rpartition("dense.")[2] for name in whole) == ["bias", "weight"]
    loading = Loading(stage.model, TRAINING, encoded, 7, torch.device("cpu"), base=str(base))
    cards = {EMOTIONS: get_task("DailyDialog", EMOTIONS)}
    for adapter in (LORA, replace(LORA, start="merge"), replace(LORA, start="stack")):
        spec = replace(stage.model, adapter=adapter)
        folder, told = str(tmp_path / "checkpoint"), replace(loading, model=spec)
        again = [load_model(replace(told, begins=b), folder, None, cards) for b in (False, True)]
        split = get_split(small, "encoder")
        for model in again:
            model.module.eval()
        torch.testing.assert_close(*(logits(model, split) for model in again))


@pytest.mark.parametrize("family", FAMILIES)
def test_peft_reads_a_checkpoint_and_merged_it_answers_the_same(
    family: Family, small: Path, tmp_path: Path
) -> None:
    stage = adapted(family)
    train_job(small, stage, tmp_path)
    base = CLASSES[family].from_pretrained(small / family)
    peft = PeftModel.from_pretrained(base, str(tmp_path / "checkpoint")).eval()
    ids = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    if family == "encoder_decoder":
        ids["decoder_input_ids"] = torch.tensor([[0, 3]])
    ours = loaded(small, stage, tmp_path / "checkpoint")
    (body,) = bodies(ours, family)
    with torch.no_grad():
        apart, own = peft(**ids)[0], body(**ids)[0]
        merged = peft.merge_and_unload()(**ids)[0]
    torch.testing.assert_close(own, apart, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(merged, apart, atol=1e-5, rtol=1e-5)


# --- identities and refusals --------------------------------------------------------------------


def test_an_adapter_is_part_of_the_identity_and_its_start_of_those_that_start() -> None:
    plain, lora = adapted("encoder", None), adapted("encoder")
    assert "adapter" not in plain.identity["model"]
    assert plain.digest != lora.digest
    merging = replace(LORA, start="merge")
    assert adapted("encoder", merging).digest == lora.digest
    ends = [
        adapted("encoder", one, starts=(Start(adapted("encoder", one, NLI)),)).digest
        for one in (LORA, merging, replace(LORA, start="stack"))
    ]
    assert len({*ends}) == 3
    changes = ({"rank": 8}, {"alpha": 9}, {"dropout": 0.1}, {"target_modules": ("query",)})
    for change in changes:
        assert adapted("encoder", replace(LORA, **change)).digest != lora.digest


def test_the_learning_rate_is_ten_times_that_of_whole_models_unless_it_is_given() -> None:
    model = adapted("encoder").model
    assert model.apply_learning_rate(Training()).learning_rate == 3e-4
    assert replace(model, adapter=None).apply_learning_rate(Training()).learning_rate == 3e-5
    own = replace(model, adapter=replace(LORA, learning_rate=1e-3))
    assert own.apply_learning_rate(Training()).learning_rate == 1e-3


def test_adapters_of_two_kinds_do_not_start_from_each_other() -> None:
    with pytest.raises(ConfigError, match=r"adapters differ.*models\[\]\.adapter to the same"):
        adapted("encoder", starts=(Start(adapted("encoder", None, NLI)),))
    source = adapted("encoder", replace(LORA, start="merge"), NLI)
    source = replace(source, selection=replace(source.selection, keep="every"))
    with pytest.raises(ConfigError, match="start: continue"):
        adapted("encoder", replace(LORA, start="merge"), starts=(Start(source, at="last"),))


def gpt2() -> Any:
    """Write a GPT-2 with random weights; its linear layers are transformers' Conv1D."""
    torch.manual_seed(3)
    return GPT2LMHeadModel(build_config("gpt2", vocab_size=50)).eval()


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(("q_proj", "v_proj"), id="none fits"),
        pytest.param(("attn.c_attn", "c_fcc"), id="one fits"),
        pytest.param(("ln_1",), id="a layer that cannot get an adapter"),
    ],
)
def test_the_linear_layers_of_gpt2_are_named(targets: tuple[str, ...]) -> None:
    names = r"linear layers of gpt2 \(c_attn, c_fc, c_proj\)\.$"
    with pytest.raises(ModelError, match=rf"target_modules: .*{targets[-1]}.*{names}"):
        add_adapter(gpt2(), replace(LORA, target_modules=targets), "decoder", None, seed=0)


@pytest.mark.parametrize("targets", [(), ("c_attn",), ("mlp.c_proj", "c_fc")])
def test_an_adapter_of_gpt2_is_the_product_of_its_matrices(targets: tuple[str, ...]) -> None:
    """Conv1D stores a weight as (inputs, outputs), so the transposed product is added."""
    model, lora = gpt2(), replace(LORA, target_modules=targets)
    add_adapter(model, lora, "decoder", None, seed=0)
    parts = model.adapted.peft.get_submodule("base_model.model")
    moved = {n: m for n, m in parts.named_modules() if hasattr(m, "lora_A")}
    per_layer = {(): 4, ("c_attn",): 1}.get(targets, 2)
    assert len(moved) == 2 * per_layer
    expected = gpt2()
    torch.manual_seed(5)
    for name, layer in moved.items():
        up = torch.randn_like(layer.lora_B["default"].weight)
        layer.lora_B["default"].weight.data.copy_(up)
        product = (up @ layer.lora_A["default"].weight).T * (lora.alpha / lora.rank)
        expected.get_submodule(name).weight.data.add_(product)
    ids = torch.tensor([[4, 8, 15, 16, 23, 42]])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, expected(ids).logits)
        assert not torch.allclose(expected(ids).logits, gpt2()(ids).logits)


def test_a_damaged_or_foreign_adapter_is_refused(small: Path, tmp_path: Path) -> None:
    stage = adapted("encoder")
    train_job(small, stage, tmp_path)
    folder = tmp_path / "checkpoint"
    wider = adapted("encoder", replace(LORA, rank=8))
    with pytest.raises(ModelError, match=r"lora_A.*same model, rank and target_modules"):
        loaded(small, wider, folder)
    plain = adapted("encoder", None)
    with pytest.raises(ModelError, match=r"contains an adapter.*without its base model"):
        loaded(small, plain, folder)
    file = folder / WEIGHTS_FILE
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ModelError, match="damaged"):
        loaded(small, stage, folder)
