"""Device queries of kernels and factories, answered for the explored chip: cores take the place of streaming
multiprocessors, and the L1 of a core that of a block's shared memory."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass

from ttexplore.errors import KernelError, unknown
from ttexplore.target import DEFAULT_TARGET, Target, get_target

_EXPLORED: ContextVar[Target | None] = ContextVar("the target that is explored", default=None)
_UNITS = {"bytes": 1, "kb": 1024, "mb": 1024 * 1024}


@contextlib.contextmanager
def machine(target: Target) -> Generator[None]:
    """Answer device queries for `target` inside the `with` block; elsewhere, for the default target."""
    token = _EXPLORED.set(target)
    try:
        yield
    finally:
        _EXPLORED.reset(token)


def _target() -> Target:
    return _EXPLORED.get() or get_target(DEFAULT_TARGET)


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of ``torch.cuda.get_device_properties`` that have a meaning on these chips."""

    name: str
    multi_processor_count: int
    shared_memory_per_block: int
    total_memory: int
    # Of the first GPU with bfloat16 and asynchronous copies: no chip here has a GPU's later instructions.
    major: int = 8
    minor: int = 0

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        raise KernelError(
            "K011",
            f"{self.name} has no {name}",
            hint="pass the value as an argument of the kernel: a Tensix core has no GPU threads or registers",
        )


def get_device_properties(_device: object = 0) -> DeviceProperties:
    """Name, cores, usable L1 bytes per core, and DRAM bytes of the chip. Other GPU properties raise KernelError."""
    target = _target()
    return DeviceProperties(
        target.name, target.cores, target.l1_usable_bytes, target.dram_banks * target.dram_bank_bytes
    )


def get_device_name(_device: object = 0) -> str:
    """The name of the target."""
    return _target().name


def get_device_capability(_device: object = 0) -> tuple[int, int]:
    """The capability of the GPU whose code asks for the least: no chip here has a GPU's later instructions."""
    return DeviceProperties.major, DeviceProperties.minor


def get_num_sms(_device: object = 0) -> int:
    """The number of cores that run kernels."""
    return _target().cores


def get_shared_memory(_device: object = 0, format: str = "bytes") -> int:
    """The usable L1 of a core in bytes, kb or mb, rounded down. Raises UsageError for another unit."""
    if format not in _UNITS:
        raise unknown("unit", format, _UNITS)
    return _target().l1_usable_bytes // _UNITS[format]
