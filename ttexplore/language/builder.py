"""Building TIR while the rewritten kernel runs: a stack of statement frames."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import is_buffer, set_span, to_expr, to_tvm_span
from ttexplore.record import Span

BINDABLE = (int, float, bool)


def sequence(statements: list[Any], span: Any = None) -> Any:
    """One statement for many; an empty list is the statement that does nothing."""
    if not statements:
        return tirx.Evaluate(tirx.const(0, "int32"), span)
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements, span)


def is_dynamic(value: Any) -> bool:
    """Whether a value is only known when the kernel runs."""
    return isinstance(value, ir.Expr | tirx.expr.EqualOp | tirx.expr.NotEqualOp)


def condition(value: Any) -> Any:
    """A dynamic condition as an expression."""
    return value.asobject() if isinstance(value, tirx.expr.EqualOp | tirx.expr.NotEqualOp) else to_expr(value)


@dataclass
class Builder:
    """The kernel being traced. `constants` are values for names of T.const; `span` is where the trace is now."""

    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    frames: list[list[Any]] = field(default_factory=lambda: [[]])
    parameters: list[Any] = field(default_factory=list[Any])
    outputs: list[Any] = field(default_factory=list[Any])
    loops: list[str] = field(default_factory=list[str])
    calls: list[Span] = field(default_factory=list[Span])
    notes: list[str] = field(default_factory=list[str])
    used_constants: set[str] = field(default_factory=set[str])
    missing: list[str] = field(default_factory=list[str])
    span: Span | None = None

    def tvm_span(self) -> Any:
        if self.span is None:
            return None
        own = to_tvm_span(self.span)
        return ir.SequentialSpan([own, *map(to_tvm_span, reversed(self.calls))]) if self.calls else own

    def emit(self, statement: Any) -> None:
        self.frames[-1].append(statement)

    @contextlib.contextmanager
    def frame(self, finish: Callable[[list[Any]], Any]) -> Iterator[None]:
        """Collect what is emitted inside and emit `finish` of it instead."""
        self.frames.append([])
        yield
        self.emit(finish(self.frames.pop()))

    @contextlib.contextmanager
    def collect(self, into: list[Any]) -> Iterator[None]:
        """Collect what is emitted inside in `into`."""
        self.frames.append(into)
        yield
        self.frames.pop()

    def store(self, buffer: Any, indices: tuple[Any, ...], value: Any) -> None:
        dtype = buffer.ty.dtype
        if len(indices) != len(buffer.ty.shape):
            raise KernelError(
                f"{buffer.name} has {len(buffer.ty.shape)} dimensions and is stored to with {len(indices)} indices",
                hint="give one index for each dimension",
                span=self.span,
            )
        if any(isinstance(index, slice) for index in indices):
            raise KernelError(
                f"{buffer.name}: a slice cannot be assigned to", hint="use T.copy or T.fill", span=self.span
            )
        if not isinstance(value, ir.Expr):
            if not isinstance(value, BINDABLE):
                raise KernelError(f"{value!r} cannot be stored to {buffer.name}", span=self.span)
            value = tirx.const(value, str(dtype.dtype))
        elif value.ty != dtype:
            value = tirx.Cast(dtype, value)
        self.emit(tirx.BufferStore(buffer, value, [to_expr(index) for index in indices], self.tvm_span()))

    def bind(self, name: str, value: Any) -> Any:
        """What a kernel name stands for after ``name = value``."""
        if isinstance(value, Allocation):
            return value.make(self, name)
        if isinstance(value, TensorSpec):
            return value.make(self, name)
        if isinstance(value, tirx.expr.EqualOp | tirx.expr.NotEqualOp):
            value = value.asobject()
        if (
            isinstance(value, ir.Expr)
            and ir.is_prim_expr(value)
            and not isinstance(value, ir.Var | tirx.IntImm | tirx.FloatImm)
        ):
            variable = tirx.Var(name, value.ty, self.tvm_span())
            self.emit(tirx.Bind(variable, value, self.tvm_span()))
            return variable
        return value


@dataclass(frozen=True)
class Allocation:
    """A request for on-chip memory; becomes a buffer when it gets its name."""

    shape: tuple[Any, ...]
    dtype: str
    scope: str
    initial: Any = None

    def make(self, builder: Builder, name: str) -> Any:
        buffer = tirx.decl_buffer(list(self.shape), self.dtype, name=name, scope=self.scope, span=builder.tvm_span())
        builder.emit(tirx.AllocBuffer(buffer, {}, builder.tvm_span()))
        if self.initial is not None:
            builder.store(buffer, (0,), self.initial)
        return buffer


@dataclass(frozen=True)
class TensorSpec:
    """A tensor parameter: from an annotation, or an output made by T.empty."""

    shape: tuple[Any, ...]
    dtype: str
    output: bool = False

    def make(self, builder: Builder, name: str) -> Any:
        buffer = tirx.decl_buffer(list(self.shape), self.dtype, name=name, scope="global", span=builder.tvm_span())
        builder.parameters.append(buffer)
        if self.output:
            builder.outputs.append(buffer)
        return buffer


@dataclass(frozen=True)
class Loop:
    """A loop of the kernel language over `extents`, from `start`."""

    extents: tuple[Any, ...]
    kind: Any
    start: Any = 0
    annotations: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        span = builder.tvm_span()
        variables = [
            tirx.Var(names[axis] if axis < len(names) else f"i{axis}", "int32", span)
            for axis in range(len(self.extents))
        ]

        def finish(body: list[Any]) -> Any:
            nest = sequence(body)
            for axis in reversed(range(len(variables))):
                annotations = self.annotations if axis == 0 else {}
                nest = tirx.For(
                    variables[axis], to_expr(self.start), to_expr(self.extents[axis]), self.kind, nest, None,
                    annotations, None, span,
                )  # fmt: skip
            return nest

        with builder.frame(finish):
            builder.loops.append("tir")
            try:
                yield variables[0] if len(variables) == 1 else tuple(variables)
            finally:
                builder.loops.pop()


@dataclass(frozen=True)
class Grid:
    """The launch grid of T.Kernel."""

    extents: tuple[Any, ...]
    threads: Any

    @contextlib.contextmanager
    def enter(self, builder: Builder, names: tuple[str, ...]) -> Iterator[Any]:
        span = builder.tvm_span()
        variables = [
            tirx.Var(names[axis] if axis < len(names) and names[axis] != "_" else "b" + "xyz"[axis], "int32", span)
            for axis in range(len(self.extents))
        ]

        def finish(body: list[Any]) -> Any:
            nest = sequence(body)
            for axis in reversed(range(len(variables))):
                tag = "blockIdx." + "xyz"[axis]
                annotations = {"threads": self.threads} if axis == 0 and isinstance(self.threads, int) else {}
                binding = tirx.IterVar(None, tirx.Var(variables[axis].name, "int32"), 1, tag)
                nest = tirx.For(
                    variables[axis], tirx.const(0, "int32"), to_expr(self.extents[axis]), tirx.ForKind.THREAD_BINDING,
                    nest, binding, annotations, None, span,
                )  # fmt: skip
            return nest

        with builder.frame(finish):
            yield variables[0] if len(variables) == 1 else tuple(variables)


_CURRENT: ContextVar[Builder | None] = ContextVar("kernel being traced", default=None)


def current(what: str = "this") -> Builder:
    """The builder of the kernel being traced. Raises KernelError outside of one."""
    builder = _CURRENT.get()
    if builder is None:
        raise KernelError(f"{what} is only possible inside a kernel", hint="trace it with ttexplore.explore(kernel)")
    return builder


@contextlib.contextmanager
def tracing(builder: Builder) -> Iterator[Builder]:
    token = _CURRENT.set(builder)
    try:
        yield builder
    finally:
        _CURRENT.reset(token)


__all__ = [
    "Allocation", "Builder", "Grid", "Loop", "TensorSpec", "condition", "current", "is_buffer", "is_dynamic",
    "sequence", "set_span", "tracing",
]  # fmt: skip
