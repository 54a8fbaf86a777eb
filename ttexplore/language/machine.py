"""What kernels and their factories ask of a GPU, answered for the chip that is explored: its cores are what streaming
multiprocessors are there, the L1 of a core is the shared memory of a block."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass

from ttexplore.errors import KernelError, unknown
from ttexplore.target import Target, get_target

_EXPLORED: ContextVar[Target | None] = ContextVar("the target that is explored", default=None)
_UNITS = {"bytes": 1, "kb": 1024, "mb": 1024 * 1024}


@contextlib.contextmanager
def machine(target: Target) -> Generator[None]:
    """Inside, questions about the device are answered for `target`. Elsewhere, for a Wormhole n150."""
    token = _EXPLORED.set(target)
    try:
        yield
    finally:
        _EXPLORED.reset(token)


def _target() -> Target:
    return _EXPLORED.get() or get_target("wormhole_n150")


@dataclass(frozen=True)
class DeviceProperties:
    """Of ``torch.cuda.get_device_properties``: what has a meaning on these chips."""

    name: str
    multi_processor_count: int
    shared_memory_per_block: int
    total_memory: int

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        raise KernelError(
            "K011",
            f"{self.name} has no {name}",
            hint="pass the value as an argument of the kernel: a Tensix core has no GPU threads or registers",
        )


def get_device_properties(_device: object = 0) -> DeviceProperties:
    """Name, cores, L1 bytes of a core that programs can use, and DRAM bytes of the chip. Other properties of a GPU
    raise KernelError."""
    target = _target()
    return DeviceProperties(
        target.name, target.cores, target.l1_usable_bytes, target.dram_banks * target.dram_bank_bytes
    )


def get_device_name(_device: object = 0) -> str:
    """The name of the target."""
    return _target().name


def get_num_sms(_device: object = 0) -> int:
    """How many cores run kernels."""
    return _target().cores


def get_shared_memory(_device: object = 0, format: str = "bytes") -> int:
    """The L1 of a core that programs can use, in bytes, kb or mb, rounded down. Raises UsageError for another unit."""
    if format not in _UNITS:
        raise unknown("unit", format, _UNITS)
    return _target().l1_usable_bytes // _UNITS[format]
