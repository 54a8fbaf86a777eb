"""The modules that take the place of TileLang's, and what is known of modules that its examples import."""

from __future__ import annotations

import contextlib
import importlib
import operator
import sys
import types
from typing import SupportsIndex

from tvm import ir, tirx

import ttexplore.language as language
from ttexplore.errors import KernelError, shown
from ttexplore.language.guard.standins import StandIn, StandInBase, StandInModule
from ttexplore.language.machine import (
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_num_sms,
    get_shared_memory,
)
from ttexplore.language.tracer.dtypes import ALIASES, DTYPES, dtype
from ttexplore.language.tracer.kernel import JitKernel, autotune, compiled, jit

# The functions of the documents need the passes, which need this language: they are imported when they are asked for.
_ELSEWHERE = {"tilelang.tenstorrent": "ttexplore.tenstorrent", "tilelang.tt": "ttexplore.tenstorrent"}


class _Root(StandInModule):
    """`tilelang` itself."""

    def __getattr__(self, name: str) -> object:
        if f"{self.__name__}.{name}" in _ELSEWHERE:
            return importlib.import_module(_ELSEWHERE[f"{self.__name__}.{name}"])
        return super().__getattr__(name)


class _Targets(StandInModule):
    """Questions whether a target is a certain GPU, or has what one has: the explored chip is none and has none."""

    def __getattr__(self, name: str) -> object:
        return _no_gpu if name.startswith(("target_is_", "target_has_")) else super().__getattr__(name)


def next_power_of_2(n: SupportsIndex) -> int:
    """The smallest power of 2 not below `n`. Raises KernelError unless `n` is an integer known at compile time."""
    try:
        return 1 << (operator.index(n) - 1).bit_length()
    except TypeError:
        raise KernelError(
            "K008", f"next_power_of_2 works on numbers, not on {shown(n)}", hint="give the kernel constant sizes"
        ) from None


def determine_fp8_type(fp8_format: str = "e4m3") -> dtype:
    """The float8 of a GPU with four or with five bits of exponent. Raises KernelError for other formats."""
    formats = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
    if fp8_format not in formats:
        raise KernelError("K009", f"{shown(fp8_format)} is no format of float8", hint="use e4m3 or e5m2")
    return DTYPES[formats[fp8_format]]


def tilelang_modules() -> dict[str, types.ModuleType]:
    """The modules by name; `tilelang` is the first. Other submodules are stand-ins."""
    dtypes = StandInModule("tilelang.language.dtypes", {"dtype": dtype, **DTYPES})
    tuner = StandInModule(
        "tilelang.autotuner",
        {"autotune": autotune, "set_autotune_inputs": _keep_inputs, "AutoTuner": StandIn("AutoTuner")},
    )
    tuner.__all__ = ["autotune", "set_autotune_inputs", "AutoTuner"]
    functions = {"next_power_of_2": next_power_of_2, "cdiv": language.ceildiv, "ceildiv": language.ceildiv}
    mathematics = StandInModule("tilelang.math", functions)
    driver = StandInModule(
        "tilelang.carver.arch.driver",
        {
            "get_num_sms": get_num_sms,
            "get_device_name": get_device_name,
            "get_cuda_device_properties": get_device_properties,
            "get_shared_memory_per_block": get_shared_memory,
            "get_max_dynamic_shared_size_bytes": get_shared_memory,
        },
    )
    arch = StandInModule("tilelang.carver.arch", {"driver": driver})
    carver = StandInModule("tilelang.carver", {"arch": arch})
    policy = StandInModule("tilelang.tileop.base", {"GemmWarpPolicy": language.GemmWarpPolicy})
    fp8 = StandInModule("tilelang.language.fp8", {"determine_fp8_type": determine_fp8_type})
    # Marks for a profiler of GPUs: they change no result.
    iket = StandInModule("tilelang.tools.cuda.iket", {"mark": _marked, "range": _marked_range})
    cuda = StandInModule("tilelang.tools.cuda", {"iket": iket})
    tools = StandInModule("tilelang.tools", {"cuda": cuda})
    # How some examples name a size that is known only when the kernel runs.
    te = StandInModule("tilelang.tvm.te", {"var": language.dynamic})
    targets = [_Targets(f"tilelang.{maker}.target") for maker in ("cuda", "rocm", "metal")]
    root = _Root(
        "tilelang",
        {
            "jit": jit,
            "lazy_jit": jit,
            "JITKernel": JitKernel,
            "DataType": dtype,
            "compile": compiled,
            "language": language,
            "autotune": autotune,
            "autotuner": tuner,
            "dtypes": dtypes,
            "math": mathematics,
            **functions,
            "carver": carver,
            "tools": tools,
            "tvm": StandInModule("tilelang.tvm", {"te": te, "ir": ir, "tirx": tirx}),
            "Layout": StandIn("tilelang.Layout"),
            "Fragment": StandIn("tilelang.Fragment"),
        },
    )
    modules = [root, dtypes, tuner, mathematics, carver, arch, driver, policy, fp8, tools, cuda, iket, *targets]
    return {**{module.__name__: module for module in modules}, "tilelang.language": language}


def made_module(name: str) -> types.ModuleType:
    """The module for a TileLang name, or a stand-in for any other. `tilelang` brings its submodules along."""
    if name != "tilelang":
        return stand_in(name)
    modules = tilelang_modules()
    sys.modules.update({module_name: module for module_name, module in modules.items() if module_name != name})
    return modules[name]


def put_in_place(module: types.ModuleType) -> None:
    """Replace `module`, which the import system has created, by the module that its name stands for."""
    if module.__name__ in _ELSEWHERE:
        sys.modules[module.__name__] = importlib.import_module(_ELSEWHERE[module.__name__])


def _keep_inputs(*_args: object, **_options: object) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _no_gpu(_target: object, *_options: object, **_more: object) -> bool:
    return False


def _marked(*_names: object, **_options: object) -> None:
    pass


def _marked_range(*_names: object, **_options: object) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def stand_in(name: str) -> StandInModule:
    """The stand-in for a module that is not installed. For torch, the dtypes are known, the chip is the only
    device, and its properties are the device's."""
    members: dict[str, object] = {}
    if name == "torch":
        members = {
            **DTYPES,
            **{alias: DTYPES[name] for alias, name in ALIASES.items()},
            "dtype": dtype,
            "Tensor": type("Tensor", (StandInBase,), {}),
            "cuda": stand_in("torch.cuda"),
            "version": stand_in("torch.version"),
        }
    elif name == "torch.cuda":
        members = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "get_device_name": get_device_name,
            "get_device_capability": get_device_capability,
            "get_device_properties": get_device_properties,
        }
    elif name == "torch.version":
        members = {"cuda": None, "hip": None}
    return StandInModule(name, members)
