"""Kernels: T.prim_func, eager @jit functions, macros; and tracing them to TIR."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import KernelError, TTExploreError, UsageError
from ttexplore.ir.adapter import is_buffer, to_tvm_span
from ttexplore.language.builder import Builder, TensorSpec, current, sequence, tracing
from ttexplore.language.dtypes import DTYPES, dtype_of
from ttexplore.language.rewrite import Hooks, definition, rewrite
from ttexplore.record import Line, Listing, Origin, Span


@dataclass(frozen=True)
class TracedKernel:
    """A kernel as TIR. `outputs` are parameter indices, empty where only dataflow tells; `source` is the text of the
    kernel's function, `first_line` the file's number of its first line; `notes` are hints without meaning here."""

    name: str
    function: Any
    outputs: tuple[int, ...]
    source: Listing
    first_line: int
    file: str
    notes: tuple[str, ...] = ()


def display_file(function: types.FunctionType) -> str:
    """How a kernel's file is called: its path, or ``cell N`` in a notebook; never a temporary path."""
    file = function.__code__.co_filename
    cell = re.fullmatch(r"<ipython-input-(\d+)-.*>", file)
    if cell:
        return f"cell {cell[1]}"
    if re.search(r"ipykernel_\d+", file):
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        # The history counter is one past the cell that defines the kernel only after that cell has run.
        return f"cell {shell.execution_count}" if shell is not None else "cell"
    return file


def _source_listing(function: types.FunctionType, file: str) -> tuple[Listing, int]:
    node = definition(function)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    texts = linecache.getlines(function.__code__.co_filename)[first - 1 : node.end_lineno]
    lines = tuple(
        Line(text.rstrip("\n"), (Origin(Span(file, first + index, 1, first + index, len(text.rstrip()) + 1), "exact"),))
        for index, text in enumerate(texts)
    )
    return Listing("python", lines, function.__name__), first


def _run_traced(twin: Callable[..., Any], hooks: Hooks, builder: Builder, *args: Any, **kwargs: Any) -> None:
    """Run a rewritten kernel; a Python error in it becomes a KernelError at its line."""
    try:
        twin(*args, **kwargs)
    except TTExploreError as error:
        raise error.at(builder.span) from error.__cause__
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise KernelError(
            message, hint="the kernel's own Python raised this while it was traced", span=builder.span
        ) from error


def _finish(builder: Builder, function: types.FunctionType, file: str) -> TracedKernel:
    source, first = _source_listing(function, file)
    node = definition(function)
    span = Span(file, node.lineno, node.col_offset + 1, node.lineno, node.col_offset + 5 + len(node.name))
    if builder.missing:
        raise UsageError(
            f"{function.__name__} needs values for {', '.join(builder.missing)}",
            hint="pass them by name: explore(kernel, " + ", ".join(f"{name}=256" for name in builder.missing) + ")",
            span=span,
        )
    if not builder.frames[0]:
        raise KernelError(f"{function.__name__} has no statements", hint="use `with T.Kernel(...)`", span=span)
    parameters = list(builder.parameters)
    for output in builder.outputs:
        if not any(output is parameter or output.same_as(parameter) for parameter in parameters):
            raise KernelError(
                f"{function.__name__} returns something that is no tensor", hint="return T.empty tensors", span=span
            )
    outputs = tuple(
        index for index, parameter in enumerate(parameters) if any(o.same_as(parameter) for o in builder.outputs)
    )
    body = sequence(builder.frames[0])
    made = tirx.PrimFunc(parameters, body, attrs=None, span=to_tvm_span(span)).with_attr(
        "global_symbol", function.__name__
    )
    if outputs:
        made = made.with_attr("tl.outs", list(outputs))
    return TracedKernel(function.__name__, made, outputs, source, first, file, tuple(dict.fromkeys(builder.notes)))


@dataclass(frozen=True)
class PrimFunc:
    """A kernel in the T.prim_func style, traced where it was defined."""

    traced: TracedKernel

    @property
    def __name__(self) -> str:
        return self.traced.name


def prim_func(function: Any = None, **_options: Any) -> Any:
    """Trace a function whose parameters are annotated tensors."""
    if function is None:
        return functools.partial(prim_func, **_options)
    file = display_file(function)
    twin, hooks = rewrite(function, file)
    builder = Builder()
    node = definition(function)
    with tracing(builder):
        arguments: list[Any] = []
        for argument in node.args.args:
            builder.span = Span(
                file, argument.lineno, argument.col_offset + 1, argument.end_lineno or 0,
                (argument.end_col_offset or 0) + 1,
            )  # fmt: skip
            annotation = function.__annotations__.get(argument.arg)
            if isinstance(annotation, str):
                annotation = eval(annotation, function.__globals__, inspect.getclosurevars(function).nonlocals)
            if not isinstance(annotation, TensorSpec):
                raise KernelError(
                    f"parameter {argument.arg} is no tensor",
                    hint=f"annotate it: {argument.arg}: T.Tensor((M, N), 'bfloat16'); scalar parameters are not lowered",
                    span=builder.span,
                )
            arguments.append(annotation.make(builder, argument.arg))
        _run_traced(twin, hooks, builder, *arguments)
    return PrimFunc(_finish(builder, function, file))


class Macro:
    """A function whose statements are traced where it is called."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        builder = current("a macro")
        twin, _ = rewrite(self.function, display_file(self.function))
        here = builder.span
        if here is not None:
            builder.calls.append(here)
        try:
            return twin(*args, **kwargs)
        finally:
            if here is not None:
                builder.calls.pop()


def macro(function: Any = None, **_options: Any) -> Any:
    return Macro(function) if function is not None else Macro


class JitKernel:
    """A function under ``@tilelang.jit``: an eager kernel, or a factory that returns a T.prim_func."""

    def __init__(self, function: types.FunctionType, **options: Any) -> None:
        self.function, self.options = function, options
        functools.update_wrapper(self, function)
        self.signature = inspect.signature(function)

    @property
    def eager(self) -> bool:
        node = definition(self.function)
        return not any(isinstance(inner, ast.FunctionDef) and inner is not node for inner in ast.walk(node))

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        return self.trace(**self.signature.bind_partial(*args, **kwargs).arguments) if args else self.trace(**kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        return Compiled(self.get_tir(*args, **kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs) if not self.eager else _Ran()

    def trace(self, **arguments: Any) -> TracedKernel:
        """Trace with `arguments` for parameters and T.const names. Raises UsageError for missing and unknown ones."""
        parameters = self.signature.parameters
        known = {name: _argument(value) for name, value in arguments.items() if name in parameters}
        if not self.eager:
            _check_known(arguments, set(parameters), self.__name__)
            _check_missing([n for n, p in parameters.items() if n not in known and p.default is p.empty], self.__name__)
            return trace(self.function(**known))
        annotated = _annotated_names(self.function)
        required = [
            name for name, p in parameters.items() if name not in known and p.default is p.empty and name not in annotated
        ]
        _check_missing(required, self.__name__)
        builder = Builder(constants={n: v for n, v in arguments.items() if n not in parameters})
        file = display_file(self.function)
        twin, hooks = rewrite(self.function, file)
        with tracing(builder):
            values = {
                name: known[name] if name in known else None if p.default is p.empty else p.default
                for name, p in parameters.items()
            }
            for name, spec in _signature_tensors(self.function).items():
                values[name] = spec.make(builder, name)
            _run_traced(twin, hooks, builder, **values)
        _check_known(builder.constants, builder.used_constants | set(parameters), self.__name__)
        return _finish(builder, self.function, file)


class Compiled:
    """What ``kernel.compile(...)`` gives: the traced kernel, which example files also call, profile and print."""

    def __init__(self, traced: TracedKernel) -> None:
        self.traced = traced

    def __getattr__(self, name: str) -> Any:
        return getattr(_Ran(), name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Ran()


class _Ran:
    """What a kernel call gives at module level of an example file that is only being loaded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self


def _signature_tensors(function: types.FunctionType) -> dict[str, TensorSpec]:
    return {name: value for name, value in function.__annotations__.items() if isinstance(value, TensorSpec)}


def _annotated_names(function: types.FunctionType) -> set[str]:
    """Parameters that the kernel's body gives a tensor annotation: ``A: T.Tensor(...)``."""
    body = {
        node.target.id
        for node in ast.walk(definition(function))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return body | set(_signature_tensors(function))


def _argument(value: Any) -> Any:
    if isinstance(value, str) and value.rpartition(".")[2] in DTYPES:
        return dtype_of(value)
    return value


def _check_missing(missing: list[str], kernel: str) -> None:
    if missing:
        example = ", ".join(f"{name}=..." for name in missing)
        raise UsageError(f"{kernel} needs {', '.join(missing)}", hint=f"explore({kernel}, {example})")


def _check_known(given: Any, known: set[str], kernel: str) -> None:
    import difflib

    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(sorted(known)) or 'no arguments'}"
            raise UsageError(f"{kernel} takes no argument {name}", hint=hint)


def jit(function: Any = None, **options: Any) -> Any:
    """``@tilelang.jit``, with or without options; the options are the GPU compiler's."""
    if isinstance(function, types.FunctionType):
        return JitKernel(function, **options)
    if isinstance(function, PrimFunc | TracedKernel | Compiled):
        return function
    return functools.partial(jit, **options)


class Tuned:
    """A kernel under ``@autotune``: tuning is the GPU's; the kernel takes its arguments from the caller."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.__name__ = getattr(kernel, "__name__", "kernel")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)


def const(names: str) -> Any:
    """The values of ``T.const("M, N, K")``: given when the kernel is explored."""
    builder = current("T.const")
    values: list[Any] = []
    for name in names.replace(",", " ").split():
        builder.used_constants.add(name)
        if name not in builder.constants:
            builder.missing.append(name)
        # A stand-in size lets the trace go on, so that every missing name is reported at once.
        values.append(builder.constants.get(name, 4096))
    return values[0] if len(values) == 1 else tuple(values)


def trace(kernel: Any, **arguments: Any) -> TracedKernel:
    """Trace a T.prim_func, an eager kernel or a factory with its arguments.

    Raises UsageError for missing or unknown arguments or for what is no kernel, KernelError for errors in the kernel.
    """
    match kernel:
        case TracedKernel():
            _check_known(arguments, set(), kernel.name)
            return kernel
        case PrimFunc() | Compiled():
            _check_known(arguments, set(), kernel.traced.name)
            return kernel.traced
        case JitKernel():
            return kernel.trace(**arguments)
        case Tuned():
            return trace(kernel.kernel, **arguments)
        case types.FunctionType():
            return JitKernel(kernel).trace(**arguments)
        case _:
            raise UsageError(
                f"{type(kernel).__name__} is no kernel",
                hint="pass a T.prim_func, a @tilelang.jit function with its arguments, or 'file.py::name'",
            )


__all__ = ["JitKernel", "Macro", "PrimFunc", "TracedKernel", "Tuned", "const", "ir", "is_buffer", "jit", "trace"]
