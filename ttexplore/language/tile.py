"""The tile operations of the kernel language: copy, fill, clear, gemm, reduce."""

from __future__ import annotations

import enum
from typing import Any

import tvm
from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import call, is_buffer, to_expr
from ttexplore.language.builder import current


class GemmWarpPolicy(enum.IntEnum):
    """How a GPU divides a gemm among warps: accepted, without meaning on a Tensix core."""

    Square = 0
    FullRow = 1
    FullCol = 2


def _name(value: Any) -> str:
    return value.name if is_buffer(value) else str(value)


def region(buffer: Any, parts: tuple[Any, ...]) -> Any:
    """``buffer[parts]`` as a region; dimensions without an index are taken whole."""
    builder = current()
    if len(parts) > len(buffer.ty.shape):
        raise KernelError(
            f"{buffer.name} has {len(buffer.ty.shape)} dimensions and is indexed with {len(parts)}", span=builder.span
        )
    ranges: list[Any] = []
    analyzer = tvm.sym.Analyzer()
    for axis, extent in enumerate(buffer.ty.shape):
        part = parts[axis] if axis < len(parts) else slice(None)
        if not isinstance(part, slice):
            ranges.append(ir.Range.from_min_extent(to_expr(part), tirx.const(1, "int32")))
            continue
        if part.step not in (None, 1):
            raise KernelError(
                f"{buffer.name}: a region with step {part.step} is not supported",
                hint="use a unit step",
                span=builder.span,
            )
        low = to_expr(0 if part.start is None else part.start)
        high = to_expr(extent if part.stop is None else part.stop)
        ranges.append(ir.Range.from_min_extent(low, analyzer.simplify(high - low)))
    return tirx.BufferRegion(buffer, ranges)


def _extents(value: Any) -> list[int]:
    """The extents of a region without its unit dimensions."""
    extents: list[int] = []
    for part in value.region:
        if not isinstance(part.extent, tirx.IntImm):
            raise KernelError(
                f"{value.source.name}: the extent {part.extent} is not constant",
                hint="give the kernel constant block sizes",
                span=current().span,
            )
        extents.append(int(part.extent.value))
    while len(extents) > 1 and extents[0] == 1:
        extents.pop(0)
    return extents


def _as_region(value: Any, what: str, like: list[int] | None = None) -> Any:
    """`value` as a region. An element index takes the extents of the other side, `like`."""
    if is_buffer(value):
        return region(value, ())
    if isinstance(value, ir.TensorRegion):
        return value
    if isinstance(value, ir.TensorLoad):
        extents = like or [1]
        if len(extents) > len(value.indices):
            raise KernelError(
                f"{what}: {value.source.name} has {len(value.indices)} dimensions, the other side {len(extents)}",
                hint="index as many dimensions as the block has",
                span=current().span,
            )
        extents = [1] * (len(value.indices) - len(extents)) + extents
        ranges = [
            ir.Range.from_min_extent(index, tirx.const(extent, "int32"))
            for index, extent in zip(value.indices, extents, strict=True)
        ]
        return tirx.BufferRegion(value.source, ranges)
    raise KernelError(
        f"{what} wants a tensor, a buffer or a region of one, not {value!r}",
        hint="pass a buffer, buffer[i, j] or buffer[a:b, c:d]",
        span=current().span,
    )


def copy(src: Any, dst: Any, **hints: Any) -> Any:
    """Copy a block. An element index stands for the block of the other side's shape that starts there."""
    if isinstance(src, ir.TensorLoad):
        target = _as_region(dst, "T.copy")
        source = _as_region(src, "T.copy", _extents(target))
    else:
        source = _as_region(src, "T.copy")
        target = _as_region(dst, "T.copy", _extents(source))
    if _extents(source) != _extents(target):
        raise KernelError(
            f"T.copy: {source.source.name} gives {tuple(_extents(source))} elements, "
            f"{target.source.name} takes {tuple(_extents(target))}",
            hint="make the two blocks the same shape",
            span=current().span,
        )
    _note_hints("T.copy", hints)
    return call("tl.copy", [source, target])


def fill(buffer: Any, value: Any) -> Any:
    """Set every element of a block to a scalar."""
    target = _as_region(buffer, "T.fill")
    dtype = str(target.source.ty.dtype.dtype)
    if not isinstance(value, ir.Expr):
        if not isinstance(value, int | float):
            raise KernelError(f"T.fill wants a number, not {value!r}", span=current().span)
        value = tirx.const(float(value) if "float" in dtype else value, dtype)
    return call("tl.fill", [target, value])


def clear(buffer: Any) -> Any:
    """Set every element of a block to zero."""
    return fill(buffer, 0)


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: Any = None,
    clear_accum: bool = False,
    **hints: Any,
) -> Any:
    """``C += A @ B`` on blocks: A is (M, K), B is (K, N), C is (M, N); transposed operands are stored the other way."""
    a, b, c = (_as_region(value, "T.gemm") for value in (A, B, C))
    for value in (a, b, c):
        if len(_extents(value)) != 2:
            raise KernelError(
                f"T.gemm: {value.source.name} is {tuple(_extents(value))}, a matrix is wanted", span=current().span
            )
    m, k = reversed(_extents(a)) if transpose_A else _extents(a)
    k_of_b, n = reversed(_extents(b)) if transpose_B else _extents(b)
    if k != k_of_b or _extents(c) != [m, n]:
        raise KernelError(
            f"T.gemm: {a.source.name} {(m, k)} times {b.source.name} {(k_of_b, n)} does not give "
            f"{c.source.name} {tuple(_extents(c))}",
            hint="check the block shapes and transpose_A, transpose_B",
            span=current().span,
        )
    if policy is not None:
        current().notes.append("T.gemm policy= divides work among GPU warps; a Tensix core has none")
    _note_hints("T.gemm", hints)
    flags = {"transpose_A": bool(transpose_A), "transpose_B": bool(transpose_B), "clear_accum": bool(clear_accum)}
    return call("tl.gemm", [a, b, c], {name: 1 for name, value in flags.items() if value})


def reduction(kind: str) -> Any:
    def reduce(src: Any, dst: Any, dim: int = -1, clear: bool = True, **hints: Any) -> Any:
        _note_hints(f"T.reduce_{kind}", hints)
        source, target = _as_region(src, f"T.reduce_{kind}"), _as_region(dst, f"T.reduce_{kind}")
        return call("tl.reduce", [source, target], {"kind": kind, "dim": int(dim), "clear": int(clear)})

    return reduce


def _note_hints(what: str, hints: dict[str, Any]) -> None:
    for name in hints:
        current().notes.append(f"{what} {name}= is a GPU hint without meaning here")
