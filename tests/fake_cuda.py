"""A fake CUDA device that computes nothing, on which trainings run while operations are counted.

torch's fake tensors have shapes and a device but no values. An operation that mixes devices raises
an error as on a GPU. Autograd and ``Tensor.to`` also need a device guard and CUDA's hooks. Torch
builds without CUDA do not have them, so a small C++ library, loaded before torch, provides both.
Neither a GPU nor a driver is needed; time is not measured.

``python tests/fake_cuda.py FOLDER`` prints the operations of trainings (``fake_training``).
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARY = "fake_cuda.so"
SOURCE = """
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
using namespace c10;
struct Guard final : impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  static Device only() { return {DeviceType::CUDA, 0}; }
  Device getDevice() const override { return only(); }
  Device exchangeDevice(Device) const override { return only(); }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, only()); }
  Stream getDefaultStream(Device) const override { return Stream(Stream::DEFAULT, only()); }
  Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, only()); }
  void record(void**, const Stream&, const DeviceIndex, const EventFlag) const override {}
  void block(void*, const Stream&) const override {}
};
struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  bool isAvailable() const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
namespace at { using ::Hooks; C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks) }
"""


def compiler() -> str | None:
    """Return the C++ compiler of this machine, or None."""
    return next(
        (found for name in ("g++", "c++", "clang++") if (found := shutil.which(name))), None
    )


def build(folder: Path) -> None:
    """Compile the library that ``pretend`` loads into a folder; this takes seconds."""
    (folder / "fake_cuda.cpp").write_text(SOURCE)
    libraries = _libraries()
    command = [str(compiler()), "-std=c++20", "-w", "-fPIC", "-shared", "fake_cuda.cpp"]
    command += [f"-I{libraries.parent}/include", f"-L{libraries}", "-lc10", "-ltorch_cpu"]
    subprocess.run([*command, "-o", LIBRARY], cwd=folder, check=True)


def pretend(folder: Path) -> None:
    """Give this process a fake CUDA device.

    Call this before importing torch, which checks for devices only once.
    """
    for library in (_libraries() / "libc10.so", _libraries() / "libtorch_cpu.so", folder / LIBRARY):
        ctypes.CDLL(str(library))


def _libraries() -> Path:
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "lib"


def main(folder: Path) -> None:
    """Build the library in a folder if it is missing, and count operations."""
    if not (folder / LIBRARY).is_file():
        build(folder)
    pretend(folder)
    import fake_training  # noqa: PLC0415 - it imports torch

    print(json.dumps(fake_training.everything()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
