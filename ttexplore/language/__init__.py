"""The TileLang-compatible kernel language: ``import ttexplore.language as T``.

Names of TileLang that are not lowered exist too, and fail when they are used, at the kernel's line.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tvm import ir as _ir
from tvm import tirx as _tirx

from ttexplore.errors import KernelError, Unsupported
from ttexplore.ir.adapter import is_buffer as _is_buffer
from ttexplore.ir.adapter import to_expr as _to_expr
from ttexplore.language.builder import Allocation, Grid, Loop, TensorSpec, current
from ttexplore.language.dtypes import DTYPES, dtype, dtype_of
from ttexplore.language.kernel import PrimFunc, const, jit, macro, prim_func
from ttexplore.language.not_lowered import NOT_LOWERED
from ttexplore.language.tile import GemmWarpPolicy, clear, copy, fill, gemm, reduction

_Kind = _tirx.ForKind


def _shape(shape: Any) -> tuple[Any, ...]:
    shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    for extent in shape:
        if not isinstance(extent, int | _ir.Expr) or isinstance(extent, builtins.bool):
            raise KernelError(f"{extent!r} is no extent", hint="shapes are tuples of ints")
        if isinstance(extent, int) and extent < 1:
            raise KernelError(f"a shape {shape} has no elements", hint="extents are at least 1")
    return shape


def Tensor(shape: Any, dtype: Any = "float32", **_options: Any) -> Any:
    """The annotation of a tensor parameter."""
    return TensorSpec(_shape(shape), str(dtype_of(dtype)))


Buffer = Tensor


def empty(shape: Any, dtype: Any = "float32", **_options: Any) -> Any:
    """An output tensor of an eager kernel."""
    current("T.empty")
    return TensorSpec(_shape(shape), str(dtype_of(dtype)), output=True)


def Kernel(*blocks: Any, threads: Any = 128, **hints: Any) -> Grid:
    """The launch grid: block counts along x, y, z. Threads are a GPU's; a Tensix core has none."""
    builder = current("T.Kernel")
    if not 1 <= len(blocks) <= 3:
        raise KernelError(f"T.Kernel has {len(blocks)} axes", hint="give one to three block counts")
    for name in hints:
        builder.notes.append(f"T.Kernel {name}= is a GPU hint without meaning here")
    return Grid(tuple(blocks), threads)


def alloc_shared(shape: Any, dtype: Any = "float32", scope: str = "shared.dyn") -> Allocation:
    return Allocation(_shape(shape), str(dtype_of(dtype)), scope)


def alloc_fragment(shape: Any, dtype: Any = "float32", scope: str = "local.fragment") -> Allocation:
    return Allocation(_shape(shape), str(dtype_of(dtype)), scope)


def alloc_local(shape: Any, dtype: Any = "float32", scope: str = "local") -> Allocation:
    return Allocation(_shape(shape), str(dtype_of(dtype)), scope)


def alloc_var(dtype: Any, init: Any = None, **_options: Any) -> Allocation:
    """A scalar variable: assigning to its name again is a store."""
    return Allocation((1,), str(dtype_of(dtype)), "local.var", init)


def _span_loop(kind: Any, annotations: dict[str, Any] | None = None) -> Callable[..., Loop]:
    def loop(start: Any, stop: Any = None, step: Any = None, **_options: Any) -> Loop:
        if step not in (None, 1):
            raise Unsupported(f"a loop with step {step}", hint="use a unit step and multiply the index")
        first, last = (0, start) if stop is None else (start, stop)
        return Loop((last - first,), kind, first, annotations or {})

    return loop


serial = _span_loop(_Kind.SERIAL)
unroll = _span_loop(_Kind.SERIAL)
vectorized = _span_loop(_Kind.PARALLEL)


def Parallel(*extents: Any, **_options: Any) -> Loop:
    """A nest of independent iterations over a block."""
    return Loop(tuple(extents), _Kind.PARALLEL)


def grid(*extents: Any) -> Loop:
    return Loop(tuple(extents), _Kind.SERIAL)


def Pipelined(start: Any, stop: Any = None, num_stages: int = 0, **hints: Any) -> Loop:
    """A loop whose loads run ahead by `num_stages` blocks."""
    for name in hints:
        current("T.Pipelined").notes.append(f"T.Pipelined {name}= is a GPU hint without meaning here")
    first, last = (0, start) if stop is None else (start, stop)
    return Loop((last - first,), _Kind.SERIAL, first, {"num_stages": int(num_stages)})


def ceildiv(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return _tirx.floordiv(_to_expr(a) + _to_expr(b) - 1, _to_expr(b))


cdiv = ceildiv
fill, clear, copy, gemm = fill, clear, copy, gemm
for _kind in ("max", "min", "sum", "abssum", "absmax"):
    globals()[f"reduce_{_kind}"] = reduction(_kind)


def _element(value: Any, what: str) -> Any:
    if _is_buffer(value) or isinstance(value, _ir.TensorRegion):
        raise KernelError(f"{what} works on elements, not on a block", hint="use it inside T.Parallel")
    return _to_expr(value)


def _function(name: str, plain: Callable[..., Any] | None) -> Callable[..., Any]:
    intrinsic = getattr(_tirx, name)

    def function(*args: Any) -> Any:
        if plain is not None and all(isinstance(arg, int | float) for arg in args):
            return plain(*args)
        values = [_element(arg, f"T.{name}") for arg in args]
        if len(values) == 2 and values[0].ty != values[1].ty:
            # A plain number takes the dtype of the other operand.
            first, second = args
            if isinstance(first, int | float):
                values[0] = _tirx.const(first, str(values[1].ty.dtype))
            elif isinstance(second, int | float):
                values[1] = _tirx.const(second, str(values[0].ty.dtype))
        return intrinsic(*values)

    function.__name__ = name
    return function


max = _function("max", builtins.max)
min = _function("min", builtins.min)
exp = _function("exp", math.exp)
exp2 = _function("exp2", math.exp2)
log = _function("log", math.log)
log2 = _function("log2", math.log2)
sqrt = _function("sqrt", math.sqrt)
rsqrt = _function("rsqrt", None)
tanh = _function("tanh", math.tanh)
sigmoid = _function("sigmoid", None)
erf = _function("erf", math.erf)
sin = _function("sin", math.sin)
cos = _function("cos", math.cos)
abs = _function("abs", builtins.abs)
pow = _function("pow", math.pow)
floor = _function("floor", None)
ceil = _function("ceil", None)
floordiv = _function("floordiv", lambda a, b: a // b)
floormod = _function("floormod", lambda a, b: a % b)


def if_then_else(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(condition, int):
        return then if condition else otherwise
    return _tirx.if_then_else(condition, _element(then, "T.if_then_else"), _element(otherwise, "T.if_then_else"))


def cast(value: Any, dtype: Any) -> Any:
    return dtype_of(dtype)(_element(value, "T.cast"))


def infinity(dtype: Any) -> Any:
    return _tirx.const(math.inf, str(dtype_of(dtype)))


def _hint(name: str) -> Callable[..., None]:
    def hint(*_args: Any, **_options: Any) -> None:
        current(f"T.{name}").notes.append(f"T.{name} is a GPU hint without meaning here")

    return hint


use_swizzle = _hint("use_swizzle")
annotate_layout = _hint("annotate_layout")
annotate_safe_value = _hint("annotate_safe_value")


def _refuse(name: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_options: Any) -> Any:
        raise Unsupported(f"T.{name} is not lowered", hint="see the list of lowered constructs in the README")

    refuse.__name__ = name
    return refuse


for _name in NOT_LOWERED:
    globals()[_name] = _refuse(_name)
globals().update(DTYPES)


def __getattr__(name: str) -> Any:
    import difflib

    close = difflib.get_close_matches(name, [key for key in globals() if not key.startswith("_")], 1)
    raise AttributeError(f"T.{name} does not exist" + (f"; did you mean T.{close[0]}?" if close else ""))


__all__ = [
    "GemmWarpPolicy", "Kernel", "Parallel", "Pipelined", "PrimFunc", "Tensor", "const", "copy", "dtype", "gemm", "jit",
    "macro", "prim_func",
]  # fmt: skip
