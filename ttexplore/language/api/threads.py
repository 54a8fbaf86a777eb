"""Code for single threads: their indices, and what the threads of a block, or of a warp, join their values to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.build import constant
from ttexplore.ir.operations.by_thread import WARP
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.ir.operations.thread_indices import is_thread_index, joined_over_threads, thread_axis, thread_index
from ttexplore.language.api.tile import note_hints
from ttexplore.language.tracer.builder import Builder, current, described, element, plain, unsupported
from ttexplore.language.tracer.containers import items_of

_AXES = {f"threadIdx.{name}": axis for axis, name in enumerate("xyz")}
_REDUCE_SCOPE = "reduce_scope"


def get_thread_binding(dim: int = 0) -> ir.Expr:
    """The index of a thread in its block, along an axis of ``threads=``. Raises KernelError for another axis."""
    builder = current("T.get_thread_binding")
    if not 0 <= dim < max(len(builder.threads), 1):
        count = len(builder.threads)
        raise KernelError(
            "K008",
            f"T.get_thread_binding({shown(dim)}): the threads of the block have {count} "
            f"{'axis' if count == 1 else 'axes'}",
            hint="say how many threads there are along each axis: T.Kernel(..., threads=(32, 8))",
        )
    return thread_index(dim)


def get_thread_bindings() -> tuple[ir.Expr, ...]:
    """The indices of a thread along all axes of ``threads=``."""
    return tuple(map(get_thread_binding, range(len(current("T.get_thread_bindings").threads))))


def thread_binding(start: object, stop: object = None, thread: object = None, **hints: object) -> ir.Expr:
    """The index of a thread along an axis: ``tx = T.thread_binding(0, 128, thread="threadIdx.x")``. Raises KernelError
    for an axis that T.Kernel does not have, or not with so many threads."""
    callee = "T.thread_binding"
    note_hints(callee, hints)
    builder = current(callee)
    low, extent = (0, plain(start)) if stop is None else (plain(start), plain(stop))
    axis = _AXES.get(thread) if isinstance(thread, str) else None
    if axis is None:
        raise KernelError("K008", f"{callee}: {shown(thread)} is no axis of threads", hint='write thread="threadIdx.x"')
    count = builder.threads[axis] if axis < len(builder.threads) else 1
    if low != 0 or extent != count:
        raise KernelError(
            "K008",
            f"{callee} from {shown(low)} to {shown(extent)} along {thread}, where the block has {count} threads",
            hint=f"write T.thread_binding(0, {count}, thread={thread!r}), or T.Kernel(..., threads=...) with so many",
        )
    return thread_index(axis) if axis < len(builder.threads) else tirx.const(0, "int32")


# What threads join


@dataclass(frozen=True)
class CommReducer:
    """What joins the values of threads: ``sum``, ``max`` or ``min``."""

    kind: str


def comm_reducer(combiner: Callable[..., object], identity: object) -> CommReducer:
    """How threads join their values, ``T.comm_reducer(lambda x, y: x + y, [0])``. Raises Unsupported for anything but
    sums, maxima and minima that begin with what changes none of them."""
    callee = "T.comm_reducer"
    current(callee)
    values = items_of(identity)
    if len(values) != 1:
        raise unsupported(f"{callee} of several values", "join one value of all threads")
    neutral = element(values[0], callee)
    while isinstance(neutral, tirx.Cast):
        neutral = neutral.value
    dtype = str(neutral.ty.dtype)
    first, second = tirx.Var("x", dtype), tirx.Var("y", dtype)
    joined = plain(combiner(first, second))
    for kind in ("sum", "max", "min"):
        operation = JOININGS[kind].expression
        if not isinstance(joined, operation) or not _same_operands(joined, first, second):
            continue
        value = neutral.value if isinstance(neutral, tirx.IntImm | tirx.FloatImm) else None
        lowest = JOININGS[kind].neutral_of(dtype)
        bound = float("inf") if kind == "min" else float("-inf")
        if value is not None and (float(value) == lowest or (kind != "sum" and float(value) == bound)):
            return CommReducer(kind)
        construct = f"{callee} of {kind} that begins with {neutral}"
        raise unsupported(construct, f"begin with {lowest:g}, which changes nothing")
    raise unsupported(f"{callee} of anything but a sum, a maximum or a minimum", "write lambda x, y: x + y")


@contextlib.contextmanager
def attr(node: object, key: object, value: object) -> Generator[None]:
    """``with T.attr(T.comm_reducer(...), "reduce_scope", ...)``: what T.tvm_thread_allreduce inside does. Raises
    Unsupported for other attributes."""
    builder = current("T.attr")
    if not isinstance(node, CommReducer) or key != _REDUCE_SCOPE:
        raise unsupported(f"T.attr({shown(key)})", "leave it out: it informs a GPU compiler")
    builder.reducing.append(node.kind)
    try:
        yield
    finally:
        builder.reducing.pop()


def evaluate(value: object) -> object:
    """The statement that makes a call."""
    current("T.evaluate")
    return value


def import_source(source: object = None) -> None:
    """Import code of a GPU: none here. Raises Unsupported for any."""
    current("T.import_source")
    if source:
        raise unsupported("T.import_source", "write what it does in the language itself")


def tvm_thread_allreduce(size: object, value: object, condition: object, *operands: object, **_hints: object) -> None:
    """Give all threads along some axes what they join their values to:
    ``T.tvm_thread_allreduce(1, value, True, target[0], tx)`` in ``with T.attr(T.comm_reducer(...), ...)``.

    Raises KernelError outside of that, Unsupported for several values and for some threads only.
    """
    callee = "T.tvm_thread_allreduce"
    builder = current(callee)
    if not builder.reducing:
        raise KernelError(
            "K008",
            f"{callee} is outside of a reducer",
            hint='write it in `with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", ...)`',
        )
    count, condition = plain(size), plain(condition)
    number = constant(count) if isinstance(count, ir.Expr) else count
    holds = constant(condition) if isinstance(condition, ir.Expr) else condition
    if number != 1 or not holds or len(operands) < 2:
        raise unsupported(f"{callee} of several values, or of some threads only", "join one value of all threads")
    target, *indices = map(plain, operands)
    if not isinstance(target, ir.TensorLoad):
        raise KernelError("K008", f"{callee} stores to an element, not to {described(target)}", hint="write target[0]")
    result = element(value, callee)
    for index in indices:
        result = joined_over_threads(builder.reducing[-1], result, _axis(builder, callee, index))
    if result.ty != target.ty:
        result = tirx.Cast(target.ty, result)
    builder.store(target.source, tuple(target.indices), result)


def _axis(builder: Builder, callee: str, index: object) -> int:
    """The axis of which a value is the index."""
    for frame in builder.frames:
        for statement in frame:
            if isinstance(statement, tirx.Bind) and isinstance(index, ir.Var) and statement.var.same_as(index):
                index = statement.value
    if isinstance(index, ir.Expr) and is_thread_index(index):
        return thread_axis(index)
    raise KernelError(
        "K008",
        f"{callee} joins the threads of an axis, and {described(index)} is the index of none",
        hint="pass what T.get_thread_binding gives",
    )


def warp_reduce(kind: str) -> Callable[[object], ir.Expr]:
    """``T.warp_reduce_<kind>(value)``."""
    callee = f"T.warp_reduce_{kind}"

    def joined(value: object) -> ir.Expr:
        builder = current(callee)
        if not builder.threads or builder.threads[0] != WARP:
            raise unsupported(
                f"{callee} in a block whose first axis has not {WARP} threads",
                f"give each warp an index of its own: T.Kernel(..., threads=({WARP}, warps))",
            )
        return joined_over_threads(kind, element(value, callee), 0)

    joined.__name__ = joined.__qualname__ = f"warp_reduce_{kind}"
    joined.__doc__ = f"""The {_SENTENCES[kind]} of the values that the threads of a warp have: of threads that are
    neighbours along the first axis. Raises Unsupported where that has more or fewer threads than a warp."""
    return joined


_SENTENCES = {"sum": "sum", "max": "largest", "min": "smallest"}


def _same_operands(joined: tirx.BinaryOpExpr, first: ir.Var, second: ir.Var) -> bool:
    operands = (joined.a, joined.b)
    return any(a.same_as(first) and b.same_as(second) for a, b in (operands, operands[::-1]))
