"""Kernels from files: ``file.py::name``, TileLang's own files unmodified.

While such a file loads, `tilelang` is this language, and what it imports beside it (torch, einops, ...) is replaced
by stand-ins where it is not installed.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ttexplore.language as language
from ttexplore.errors import TTExploreError, UsageError
from ttexplore.language.kernel import Compiled, JitKernel, PrimFunc, TracedKernel, Tuned, jit, trace
from ttexplore.record import Span

_STAND_INS = (
    "tilelang", "torch", "einops", "triton", "transformers", "fla", "bitblas", "flash_attn", "tqdm", "pandas", "scipy",
    "matplotlib", "cutlass", "vllm", "flashinfer", "tabulate", "deep_gemm", "quack", "cuda", "sklearn", "z3", "rich",
)  # fmt: skip


class _StandIn:
    """A value of a module that is not installed: whatever is done to it gives another stand-in."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # A decorator gives back what it decorates.
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else _StandIn(f"{self._name}()")

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return (object,)

    def __repr__(self) -> str:
        return self._name

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __format__(self, _spec: str) -> str:
        return self._name


def _operator(self: _StandIn, *_: Any) -> _StandIn:
    return self


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv matmul rmatmul neg or ror and rand getitem lt le gt ge pow rpow mod "
    "floordiv"
).split():
    setattr(_StandIn, f"__{_name}__", _operator)


class _StandInModule(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__all__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname.partition(".")[0] in _STAND_INS:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


def _autotune(*_args: Any, **_options: Any) -> Any:
    return lambda kernel: Tuned(kernel)


def _tilelang() -> dict[str, types.ModuleType]:
    root = _StandInModule("tilelang")
    tuner = _StandInModule("tilelang.autotuner")
    tuner.autotune = _autotune  # type: ignore[attr-defined]
    tuner.__all__ = ["autotune"]
    for name, value in {
        "jit": jit, "lazy_jit": jit, "language": language, "autotune": _autotune, "autotuner": tuner,
        "cdiv": language.ceildiv, "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
        "compile": lambda kernel, *_a, **_k: kernel, "__version__": "0",
    }.items():  # fmt: skip
        setattr(root, name, value)
    return {"tilelang": root, "tilelang.language": language, "tilelang.autotuner": tuner}


@contextlib.contextmanager
def _alias(folder: Path) -> Iterator[None]:
    before = dict(sys.modules)
    finder = _Finder()
    for name in [name for name in sys.modules if name.partition(".")[0] == "tilelang"]:
        del sys.modules[name]
    sys.modules.update(_tilelang())
    sys.meta_path.append(finder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - set(before):
            if name.partition(".")[0] in _STAND_INS:
                del sys.modules[name]
        sys.modules.update({n: m for n, m in before.items() if n.partition(".")[0] == "tilelang"})


def load_module(path: Path) -> types.ModuleType:
    """Run a file of kernels. Raises UsageError with the file's line for what goes wrong in it."""
    spec = importlib.util.spec_from_file_location(f"ttexplore_file_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _alias(path.parent):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                spec.loader.exec_module(module)
        except TTExploreError:
            raise
        except SyntaxError as error:
            line = error.lineno or 1
            raise UsageError(f"{error.msg}", span=Span(str(path), line, 1, line, 1), hint="mend the file") from error
        except Exception as error:
            raise UsageError(
                f"{type(error).__name__}: {error}",
                hint="the file raised this while it was loaded; guard what runs with `if __name__ == '__main__':`",
                span=_line_in(error, path),
            ) from error
    return module


def _line_in(error: BaseException, path: Path) -> Span | None:
    span, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            span = Span(str(path), step.tb_lineno, 1, step.tb_lineno, 1)
        step = step.tb_next
    return span


def load_kernel(path_and_name: str, **arguments: Any) -> TracedKernel:
    """Load ``file.py::name`` and trace the kernel with its arguments.

    Raises UsageError where the file, the kernel or an argument is missing, KernelError for errors in the kernel.
    """
    file, separator, name = path_and_name.rpartition("::")
    if not separator:
        file, name = path_and_name, ""
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}", hint="give a path as file.py::kernel_name")
    module = load_module(path)
    kernels = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, JitKernel | PrimFunc | Tuned | Compiled)
        or (isinstance(value, types.FunctionType) and value.__module__ == module.__name__)
    }
    if name not in kernels:
        named = [key for key, value in kernels.items() if not isinstance(value, types.FunctionType)] or list(kernels)
        close = difflib.get_close_matches(name, kernels, 1)
        hint = f"did you mean {file}::{close[0]}?" if close else f"it has {', '.join(named) or 'no kernels'}"
        raise UsageError(f"{file} has no kernel {name!r}" if name else f"{file}: name the kernel", hint=hint)
    with _alias(path.parent):
        return trace(kernels[name], **arguments)
