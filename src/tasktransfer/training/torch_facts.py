"""Facts about this machine from torch, for records and messages."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tasktransfer.results.provenance import describe_host
from tasktransfer.results.schema import Host
from tasktransfer.training.bfloat16_gain import list_bfloat16_units


def describe_machine(device: torch.device, precision: str, threads: int) -> Host:
    """Describe the machine and the device of a computation for a record."""
    here = describe_host(threads) | {"precision": precision}
    if device.type == "cuda":
        here |= {"device": "cuda", "gpu": torch.cuda.get_device_name(device)}
    return here


def read_peak_gpu_memory(device: torch.device) -> float | None:
    """Return the peak GPU memory according to torch in MiB, or None without a GPU."""
    is_gpu = device.type == "cuda"
    return float(torch.cuda.max_memory_allocated(device)) / 2**20 if is_gpu else None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its name, its memory in bytes, and whether it multiplies in bfloat16."""

    name: str
    memory: int
    bfloat16: bool


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """Facts about torch and the hardware it uses.

    Attributes:
        version: version of torch.
        cuda: CUDA version that torch was built with; None for a CPU build.
        gpus: available GPUs.
        cpu_units: the CPU's instructions for bfloat16.
        capability: torch's name of the CPU's vector instructions.
    """

    version: str
    cuda: str | None
    gpus: tuple[Gpu, ...]
    cpu_units: tuple[str, ...]
    capability: str


def collect_torch_facts() -> TorchFacts:
    """Collect facts about torch and its hardware, which initialises CUDA on a GPU."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    seen = [torch.cuda.get_device_properties(number) for number in range(count)]
    has = count > 0 and torch.cuda.is_bf16_supported(including_emulation=False)
    return TorchFacts(
        torch.__version__,
        torch.version.cuda,
        tuple(Gpu(gpu.name, gpu.total_memory, has) for gpu in seen),
        tuple(list_bfloat16_units()),
        torch.backends.cpu.get_cpu_capability(),
    )
