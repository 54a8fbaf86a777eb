"""Load kernels from files: ``file.py::name``, including TileLang's own files without changes."""

from __future__ import annotations

import contextlib
import difflib
import functools
import hashlib
import linecache
import os
import sys
import threading
import types
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ttexplore.errors import TTExploreError, UsageError, said, shown
from ttexplore.language.alias import tilelang_alias
from ttexplore.language.tracer.kernel import (
    JitKernel,
    PrimFunc,
    TracedKernel,
    Tuned,
    is_kernel_function,
    trace,
    trace_named,
)
from ttexplore.language.tracer.spans import code_file, error_span
from ttexplore.record import Span, lines_of


@functools.lru_cache(maxsize=64)
def _compiled(text: str, file: str) -> types.CodeType:
    """The code of a file with this text. Raises SyntaxError."""
    return compile(text, file, "exec", dont_inherit=True)


def load_module(file: str | Path) -> types.ModuleType:
    """Run a file of kernels as a module. Its output is dropped, and `tilelang` is this language.

    Raises UsageError, with the line, for a file that is missing, is not valid Python, or raises while it runs.
    """
    file = str(file)
    path = Path(file)
    try:
        file.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "U002", f"{shown(file)} cannot be read: its name is not UTF-8", hint="give the file another name"
        ) from None
    # Unlike Path.is_file this takes names that no file system takes.
    if not os.path.isfile(file):
        raise UsageError("U002", f"there is no file {shown(file)[1:-1]}", hint="give a path as file.py::kernel_name")
    try:
        text = path.read_text(encoding="utf-8-sig")
        # The code keeps the path as it was given, and the text as it is now, for spans and listings.
        code = _compiled(text, file)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        span = Span(file, line, column, error.end_lineno or line, max(error.end_offset or 0, column))
        raise UsageError(
            "U004", f"{error.msg}", hint="fix the syntax error: the file is not valid Python", span=span
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError("U002", f"{file} cannot be read: {error}", hint="give a Python file in UTF-8") from error
    linecache.cache[file] = (len(text), None, [line + "\n" for line in lines_of(text)], file)
    module = types.ModuleType(f"ttexplore_file_{path.stem}")
    module.__file__ = str(path.absolute())
    try:
        with tilelang_alias(path.absolute().parent), _as_program(module, file), _muted():
            exec(code, module.__dict__)
    except TTExploreError as error:
        raise error.at(error_span(error, {file: file})) from error.__cause__
    except (Exception, SystemExit) as error:
        raise UsageError(
            "U004",
            said(error),
            hint=_hint(error),
            span=error_span(error, {file: file}),
        ) from error
    return module


def _hint(error: BaseException) -> str:
    """The hint for an exception that a file raised while it was loaded."""
    match error:
        case ModuleNotFoundError():
            return f"install {error.name}, or move the code that imports it to a file without kernels"
        case ImportError() if "relative import" in said(error):
            return "import neighbouring files by their plain names: the file is not part of a package here"
        case ImportError():
            return "check the name against dir() of the module"
        case _:
            return "the file raised this while it was loaded; put what runs kernels under `if __name__ == '__main__':`"


@contextlib.contextmanager
def _as_program(module: types.ModuleType, file: str) -> Generator[None]:
    """Make `module` importable, and the running program, inside the `with` block."""
    arguments, hidden = sys.argv, sys.modules.get(module.__name__)
    sys.modules[module.__name__], sys.argv = module, [file]
    try:
        yield
    finally:
        sys.argv = arguments
        if hidden is None:
            sys.modules.pop(module.__name__, None)
        else:
            sys.modules[module.__name__] = hidden


class _Muted:
    """A stream that redirects one thread to another stream, and passes other threads through."""

    def __init__(self, stream: IO[str], dropped: IO[str]) -> None:
        self.stream, self.dropped, self.thread = stream, dropped, threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dropped if threading.get_ident() == self.thread else self.stream, name)


@contextlib.contextmanager
def _muted() -> Generator[None]:
    """Drop what this thread prints inside the `with` block, but not what other threads print."""
    stream = sys.stdout
    with open(os.devnull, "w", encoding="utf-8") as dropped:
        muted = _Muted(stream, dropped)
        sys.stdout = muted
        try:
            yield
        finally:
            # Others may have put a stream in its place, or have kept this one to put it back later.
            muted.dropped = stream
            if sys.stdout is muted:
                sys.stdout = stream


def load_text(text: str, display: str, name: str, arguments: dict[str, object]) -> TracedKernel:
    """Run the text of a module, which messages call `display`, and trace its kernel `name` with its arguments.

    Raises what :func:`load_kernel` raises for arguments and kernels.
    """
    file = code_file(display, hashlib.sha256(text.encode()).hexdigest()[:16], edited=False)
    linecache.cache[file] = (len(text), None, [line + "\n" for line in lines_of(text)], file)
    module = types.ModuleType("ttexplore_text")
    exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    return trace_named(vars(module)[name], arguments, f"{display}::{name}")


def kernels_in(module: types.ModuleType) -> dict[str, object]:
    """The kernels of a loaded file by name: eager ones, factories and T.prim_funcs."""
    kernels: dict[str, object] = {}
    for name, value in vars(module).items():
        is_own_function = isinstance(value, types.FunctionType) and value.__module__ == module.__name__
        if isinstance(value, JitKernel | PrimFunc | Tuned | TracedKernel) or (
            is_own_function and is_kernel_function(value)
        ):
            kernels[name] = value
    return kernels


@dataclass(frozen=True, eq=False)
class FoundKernel:
    """A kernel as its file defines it, to be traced with arguments: an eager one, a factory or a T.prim_func.

    `reference` is how the user named it, ``file.py::name``; while it is traced, files in `folder` are importable.
    """

    kernel: object
    reference: str
    folder: Path

    def trace(self, arguments: dict[str, object]) -> TracedKernel:
        """Trace the kernel with its arguments. Raises what :func:`load_kernel` raises for them."""
        with tilelang_alias(self.folder):
            return trace_named(self.kernel, arguments, self.reference)


def load_kernel(path_and_name: str, /, **arguments: object) -> TracedKernel:
    """Load ``file.py::name`` and trace the kernel with its arguments.

    The name may be omitted if the file has one kernel. Raises UsageError if the file, the kernel or an argument is
    missing or wrong, KernelError for errors in the kernel, Unsupported for constructs that are not lowered.
    """
    return find_kernel(path_and_name).trace(arguments)


def find_kernel(path_and_name: str) -> FoundKernel:
    """Load ``file.py::name``; the name may be omitted if the file has one kernel.

    Raises UsageError if the file or the kernel is missing.
    """
    path_and_name = str.__str__(path_and_name)
    file, separator, name = path_and_name.rpartition("::")
    if not separator:
        file, name = path_and_name, ""
    module = load_module(file)
    kernels = kernels_in(module)
    if not name and len(kernels) == 1:
        name = next(iter(kernels))
    kernel = kernels.get(name)
    # Any function may be a factory; only those that look like one are suggested.
    if kernel is None and isinstance(vars(module).get(name), types.FunctionType):
        kernel = vars(module)[name]
    if kernel is None:
        close = difflib.get_close_matches(name, kernels, 1) if name else []
        listed = ", ".join(kernels) or "no kernels"
        hint = f"did you mean {file}::{close[0]}?" if close else f"the file has {listed}"
        raise UsageError(
            "U002", f"{file} has no kernel {name}" if name else f"{file}: which kernel is meant?", hint=hint
        )
    return FoundKernel(kernel, f"{file}::{name}", Path(file).absolute().parent)


__all__ = [
    "FoundKernel",
    "TracedKernel",
    "find_kernel",
    "kernels_in",
    "load_kernel",
    "load_module",
    "load_text",
    "trace",
]
