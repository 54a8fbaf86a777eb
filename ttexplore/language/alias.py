"""TileLang under its own name, while a file that imports it runs: this language answers to `tilelang`.

Modules beside it that are not installed (torch, einops, ...) are replaced by stand-ins for the same time. Installed
ones are used as they are.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import ttexplore.language as language
from ttexplore.ir.adapter import older_names
from ttexplore.language.dtypes import DTYPES, dtype
from ttexplore.language.kernel import JitKernel, autotune, compiled, jit, loading_file
from ttexplore.language.standins import StandIn, StandInModule

# What TileLang's example files import, beside TileLang itself.
_STAND_INS = frozenset(
    [
        "tilelang",
        "torch",
        "einops",
        "triton",
        "transformers",
        "fla",
        "bitblas",
        "flash_attn",
        "flash_attn_interface",
        "flash_mla",
        "tqdm",
        "pandas",
        "scipy",
        "matplotlib",
        "cutlass",
        "vllm",
        "flashinfer",
        "tabulate",
        "deep_gemm",
        "deep_ep",
        "quack",
        "cuda",
        "sklearn",
        "z3",
        "rich",
        "prettytable",
        "yaml",
        "packaging",
        "pytest",
        "mamba_ssm",
        "native_sparse_attention",
        "modelscope",
        "accelerate",
        "xformers",
        "apex",
        "sageattention",
        "cloudpickle",
        "psutil",
    ]
)


# What is changed inside of tilelang_alias belongs to the whole process, so files load one after another. A file may
# itself explore a kernel of another one.
_LOADING = threading.RLock()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for what no other finder has found, in the thread that loads a file."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname.partition(".")[0] in _STAND_INS and threading.get_ident() == self._thread:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def _module(name: str, **values: Any) -> StandInModule:
    made = StandInModule(name)
    for key, value in values.items():
        setattr(made, key, value)
    return made


def _keep_inputs(*_args: Any, **_options: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _tilelang() -> dict[str, types.ModuleType]:
    """The modules that answer to TileLang's names; submodules that are not here are stand-ins."""
    dtypes = _module("tilelang.language.dtypes", dtype=dtype, **DTYPES)
    tuner = _module(
        "tilelang.autotuner", autotune=autotune, set_autotune_inputs=_keep_inputs, AutoTuner=StandIn("AutoTuner")
    )
    tuner.__all__ = ["autotune", "set_autotune_inputs", "AutoTuner"]
    root = _module(
        "tilelang",
        jit=jit,
        lazy_jit=jit,
        JITKernel=JitKernel,
        DataType=dtype,
        compile=compiled,
        language=language,
        autotune=autotune,
        autotuner=tuner,
        dtypes=dtypes,
        cdiv=language.ceildiv,
        ceildiv=language.ceildiv,
        # How some examples name a size that is known only when the kernel runs.
        tvm=_module("tilelang.tvm", te=_module("tilelang.tvm.te", var=language.dynamic)),
        next_power_of_2=lambda n: 1 << (n - 1).bit_length(),  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
        Layout=StandIn("tilelang.Layout"),
        Fragment=StandIn("tilelang.Fragment"),
    )
    tenstorrent = {
        name: _module(
            name,
            annotate_tt_layout=language.annotate_tt_layout,
            annotate_tt_schedule=language.annotate_tt_schedule,
            annotate_tt_sharding=language.annotate_tt_sharding,
            TTShard=language.TTShard,
        )
        for name in ("tilelang.tenstorrent", "tilelang.tt")
    }
    for name, module in tenstorrent.items():
        setattr(root, name.rpartition(".")[2], module)
    policy = _module("tilelang.tileop.base", GemmWarpPolicy=language.GemmWarpPolicy)
    return {
        "tilelang": root,
        "tilelang.language": language,
        "tilelang.language.dtypes": dtypes,
        "tilelang.autotuner": tuner,
        "tilelang.tileop.base": policy,
        **tenstorrent,
    }


@contextlib.contextmanager
def tilelang_alias(folder: Path) -> Generator[None]:
    """`tilelang` is this language, and files of `folder` can be imported, inside. Other threads wait for their turn."""
    with _LOADING:
        yield from _alias(folder)


def _alias(folder: Path) -> Generator[None]:
    before = dict(sys.modules)
    finder, place = _Finder(), str(folder)
    hidden = {name: module for name, module in before.items() if name.partition(".")[0] == "tilelang"}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(_tilelang())
    sys.meta_path.append(finder)
    sys.path.insert(0, place)
    token = loading_file.set(True)
    try:
        with older_names():
            yield
    finally:
        loading_file.reset(token)
        sys.path.remove(place)
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - set(before):
            if _is_temporary(sys.modules[name], folder):
                del sys.modules[name]
        for name in _tilelang():
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _is_temporary(module: Any, folder: Path) -> bool:
    """Whether a module is a stand-in or a file beside the kernel's, which saw stand-ins."""
    if isinstance(module, StandInModule):
        return True
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(folder)
