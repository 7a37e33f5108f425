"""A CUDA device that computes nothing: trainings run on it, and what they ask of it is counted.

torch's fake tensors have shapes and a device but no values. An operation that mixes devices raises
on them as it would on a GPU. Autograd and ``Tensor.to`` besides want a device guard and CUDA's
hooks, which a build of torch without CUDA lacks: a small C++ library, loaded before torch, brings
both. No GPU and no driver is needed; no time is measured.

``python tests/fake_cuda.py FOLDER`` prints what trainings ask of it (``fake_training``).
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
    """The C++ compiler of this machine, if it has one."""
    return next(
        (found for name in ("g++", "c++", "clang++") if (found := shutil.which(name))), None
    )


def build(folder: Path) -> None:
    """Compile the library that ``pretend`` loads into a folder; seconds."""
    (folder / "fake_cuda.cpp").write_text(SOURCE)
    libraries = _libraries()
    command = [str(compiler()), "-std=c++20", "-w", "-fPIC", "-shared", "fake_cuda.cpp"]
    command += [f"-I{libraries.parent}/include", f"-L{libraries}", "-lc10", "-ltorch_cpu"]
    subprocess.run([*command, "-o", LIBRARY], cwd=folder, check=True)


def pretend(folder: Path) -> None:
    """Give this process a CUDA device. To be called before torch is imported: it asks once."""
    for library in (_libraries() / "libc10.so", _libraries() / "libtorch_cpu.so", folder / LIBRARY):
        ctypes.CDLL(str(library))


def _libraries() -> Path:
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "lib"


def main(folder: Path) -> None:
    """Build the library in a folder unless it is there, and count."""
    if not (folder / LIBRARY).is_file():
        build(folder)
    pretend(folder)
    import fake_training  # noqa: PLC0415 - it imports torch

    print(json.dumps(fake_training.everything()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
