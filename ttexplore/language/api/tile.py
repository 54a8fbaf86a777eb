"""The tile operations of the kernel language: copy, fill, clear, gemm, reduce."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Mapping, Sequence

from tvm import ir, sym, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.adapter import call, is_buffer
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.operations.reductions import JOININGS
from ttexplore.language.tracer.builder import (
    Integer,
    condition,
    constant,
    current,
    described,
    element,
    index_of,
    is_constant,
    is_dynamic,
    plain,
    sequence,
    statement_call,
    unsupported,
    whole,
)
from ttexplore.language.tracer.containers import is_slice
from ttexplore.language.tracer.spans import caller_span
from ttexplore.ops import language as tl


class GemmWarpPolicy(enum.IntEnum):
    """How a GPU distributes a gemm over warps: accepted, without effect on a Tensix core."""

    Square = 0
    FullRow = 1
    FullCol = 2


def region(buffer: tirx.Buffer, indices: tuple[object, ...]) -> ir.TensorRegion:
    """``buffer[parts]`` as a region; dimensions without an index are taken whole.

    Raises KernelError for a region that is out of bounds or empty, Unsupported for one with a step.
    """
    shape = extents_of(buffer)
    if len(indices) > len(shape):
        raise KernelError(
            "K003",
            f"{buffer.name} {tuple(shape)} is indexed with {len(indices)} indices",
            hint="give one index or slice for each dimension",
        )
    ranges: list[ir.Range] = []
    for axis, extent in enumerate(shape):
        index = indices[axis] if axis < len(indices) else slice(None)
        if not is_slice(index):
            ranges.append(ir.Range.from_min_extent(whole(index_of(buffer.name, index)), _int32(1)))
            continue
        if index.step not in (None, 1):
            raise unsupported(f"the region of {buffer.name} with step {index.step}", "use a unit step")
        low = 0 if index.start is None else plain(index.start)
        high = extent if index.stop is None else plain(index.stop)
        length = _difference(high, low, buffer.name)
        start = whole(index_of(buffer.name, low))
        if isinstance(start, tirx.IntImm) and isinstance(length, int):
            first = int(start.value)
            if first < 0 or (isinstance(extent, int) and first + length > extent) or length < 1:
                raise KernelError(
                    "K001",
                    f"{buffer.name}[{first}:{first + length}] along dimension {axis} is outside of its extent {extent}"
                    if length > 0
                    else f"{buffer.name}[{first}:{first + length}] along dimension {axis} is empty",
                    hint=f"{buffer.name} has the shape {tuple(shape)}",
                )
        ranges.append(ir.Range.from_min_extent(start, _int32(length) if isinstance(length, int) else length))
    return tirx.BufferRegion(buffer, ranges)


def block_region(start: object, access: str | int = "rw", *sizes: int) -> ir.TensorRegion:
    """``T.region(A[i, k], "r", 32, 32)``: the block of these sizes that starts at an element.

    `access` is ``r``, ``w`` or ``rw``; it has no effect, because the statement that uses the block determines the
    access. Raises KernelError if `start` is not an element, for an unknown access, and for more sizes than the tensor
    has dimensions.
    """
    if access not in ("r", "w", "rw", 1, 2, 3):
        raise KernelError("K008", f"T.region: {shown(access)} is not an access mode", hint='write "r", "w" or "rw"')
    if not isinstance(start, ir.TensorLoad):
        raise KernelError("K008", "T.region takes an element", hint='write T.region(A[i, k], "r", 32, 32)')
    name, indices = start.source.name, list(start.indices)
    if not sizes or len(sizes) > len(indices) or min(sizes) < 1:
        raise KernelError(
            "K008",
            f"T.region: the sizes {shown(sizes)} do not fit {name}, which has {len(indices)} dimensions",
            hint="give a positive size for each of the last dimensions",
        )
    lengths = [1] * (len(indices) - len(sizes)) + list(sizes)
    ranges = [ir.Range.from_min_extent(whole(low), _int32(size)) for low, size in zip(indices, lengths, strict=True)]
    return tirx.BufferRegion(start.source, ranges)


def _int32(value: int) -> tirx.IntImm:
    return tirx.const(value, "int32")


def _difference(high: object, low: object, name: str) -> Integer:
    """``high - low``, as an int if it is constant."""
    if isinstance(high, int) and isinstance(low, int):
        return high - low
    first, last = index_of(name, low), index_of(name, high)
    # The end of a last block may not fit into a narrow dtype, which its start fits into.
    for analyzer in (sym.Analyzer(), current(f"a region of {name}").named_values()):
        simple = analyzer.simplify(last - first)
        if isinstance(simple, tirx.IntImm):
            return int(simple.value)
    return sym.Analyzer().simplify(whole(last) - whole(first))


def extents(value: ir.TensorRegion) -> list[int]:
    """The extents of a region. Raises Unsupported if one is not constant."""
    lengths: list[int] = []
    for axis_range in value.region:
        if not isinstance(axis_range.extent, tirx.IntImm):
            raise unsupported(
                f"{value.source.name} with the extent {axis_range.extent}, which depends on run-time values,",
                "give blocks a constant size",
            )
        lengths.append(int(axis_range.extent.value))
    return lengths


def same_block(first_shape: list[int], second_shape: list[int]) -> bool:
    """Whether two blocks have the same shape; between different ranks, unit dimensions are ignored."""
    if len(first_shape) == len(second_shape):
        return first_shape == second_shape
    return [extent for extent in first_shape if extent != 1] == [extent for extent in second_shape if extent != 1]


def shown_block(value: ir.TensorRegion) -> str:
    """A region in a message: its buffer and its extents."""
    return f"{value.source.name} {tuple(extents(value))}"


def as_region(value: object, callee: str, like: list[int] | None = None) -> ir.TensorRegion:
    """`value` as a region. An element index takes the extents of the other side, `like`."""
    if is_buffer(value):
        return region(value, ())
    if isinstance(value, ir.TensorRegion):
        return value
    if isinstance(value, ir.TensorLoad):
        block = list(like or [1])
        while len(block) > len(value.indices) and block[0] == 1:
            block.pop(0)
        if len(block) > len(value.indices):
            raise KernelError(
                "K002",
                f"{callee}: {value.source.name} has {len(value.indices)} dimensions, the other side is {tuple(block)}",
                hint="index as many dimensions as the block has",
            )
        block = [1] * (len(value.indices) - len(block)) + block
        ranges = [
            ir.Range.from_min_extent(whole(index), _int32(extent))
            for index, extent in zip(value.indices, block, strict=True)
        ]
        return tirx.BufferRegion(value.source, ranges)
    raise KernelError(
        "K008",
        f"{callee} takes a tensor, a buffer or a region of one, not {described(value)}",
        hint="pass a buffer, buffer[i, j] or buffer[a:b, c:d]",
    )


# Arguments with which TileLang steers how fast a GPU is, by any function: none changes a result.
_GPU_HINTS = frozenset({
    "annotations", "coalesced_width", "disable_tma", "eviction_policy", "loop_layout", "prefer_async", "k_pack",
    "prefer_instruction", "wg_wait", "order", "stage", "sync", "group", "group_size", "explicit", "unroll_factor",
    "cluster_dims", "prelude", "is_cpu", "batch", "memory_order", "use_tma",
})  # fmt: skip


def note_hints(callee: str, hints: dict[str, object]) -> None:
    """Record options that have a meaning only on a GPU. Raises KernelError for others: they would be dropped."""
    builder = current(callee)
    for name, value in hints.items():
        if value is not None and name not in _GPU_HINTS:
            close = difflib.get_close_matches(name, _GPU_HINTS, 1)
            raise KernelError(
                "K008",
                f"{callee} has no argument {name}",
                hint=f"did you mean {close[0]}?" if close else "leave it out",
            )
        if value is not None and value is not False:
            builder.leave_out(f"{callee} {name}=")


def copy(src: object, dst: object, **hints: object) -> ir.Call | None:
    """Copy a block. An element index denotes the block with the other side's shape that starts there.

    Raises KernelError if the shapes differ. Between different ranks, unit dimensions are ignored:
    ``A[b, h, i:i + 32, :]`` is a block of two dimensions.
    """
    note_hints("T.copy", hints)
    if isinstance(src, ir.TensorLoad) and isinstance(dst, ir.TensorLoad):
        builder = current("T.copy")
        builder.span = caller_span(builder.files)
        builder.store(dst.source, tuple(dst.indices), src)
        return None
    if isinstance(src, ir.TensorLoad):
        target = as_region(dst, "T.copy")
        source = as_region(src, "T.copy", extents(target))
    else:
        source = as_region(src, "T.copy")
        target = as_region(dst, "T.copy", extents(source))
    if not same_block(extents(source), extents(target)):
        raise KernelError(
            "K002",
            f"T.copy: the shapes differ: {shown_block(source)} to {shown_block(target)}",
            hint="copy blocks of the same shape",
        )
    return statement_call(tl.COPY.name, [source, target])


def fill(buffer: object, value: object, **hints: object) -> ir.Call:
    """Set every element of a block to a scalar."""
    note_hints("T.fill", hints)
    target = as_region(buffer, "T.fill")
    dtype = target.source.ty.dtype
    value = plain(value)
    if isinstance(value, int | float):
        return statement_call(tl.FILL.name, [target, constant(value, str(dtype.dtype))])
    filled = element(value, "T.fill")
    if filled.ty != dtype:
        # A constant is converted at once, so that fills by one are easy to recognise.
        is_number = is_constant(filled)
        filled = constant(filled.value, str(dtype.dtype)) if is_number else tirx.Cast(dtype, filled)
    return statement_call(tl.FILL.name, [target, filled])


def clear(buffer: object) -> ir.Call:
    """Set every element of a block to zero."""
    return fill(buffer, 0)


def _matrix(value: object, callee: str) -> tuple[ir.TensorRegion, int, int]:
    block = as_region(value, callee)
    shape = extents(block)
    if len(shape) < 2 or any(extent != 1 for extent in shape[:-2]):
        raise KernelError(
            "K002", f"{callee}: {shown_block(block)} is not a matrix", hint="index the leading dimensions"
        )
    return block, shape[-2], shape[-1]


def gemm(
    A: object,
    B: object,
    C: object,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: object = None,
    clear_accum: object = False,
    **hints: object,
) -> ir.Call:
    """Accumulate a matrix product of blocks: ``C += A @ B`` with A (M, K), B (K, N) and C (M, N). A transposed operand
    is stored with its dimensions swapped. If `clear_accum` is true, C is cleared first.

    Raises KernelError if the shapes do not fit together.
    """
    note_hints("T.gemm", {name: value for name, value in hints.items() if (name, value) != ("k_pack", 1)})
    return product("T.gemm", (A, B, C), (transpose_A, transpose_B), policy, clear_accum, {})


def product(
    callee: str, operands: tuple[object, object, object], transposed: tuple[bool, bool], policy: object,
    clear_accum: object, attrs: Mapping[str, object], barrier: Sequence[ir.Expr] = (),
) -> ir.Call:  # fmt: skip
    """A product with more attributes, which the clearing of its accumulator has as well, and perhaps a barrier. Raises
    the errors of :func:`gemm`."""
    (a, m, k), (b, k_of_b, n), (c, rows, columns) = (_matrix(value, callee) for value in operands)
    transpose_A, transpose_B = transposed
    if transpose_A:
        m, k = k, m
    if transpose_B:
        k_of_b, n = n, k_of_b
    if k != k_of_b or (rows, columns) != (m, n):
        how = "".join(f", {name}" for name, on in (("transpose_A", transpose_A), ("transpose_B", transpose_B)) if on)
        raise KernelError(
            "K002",
            f"{callee}: {shown_block(a)} times {shown_block(b)}{how} does not fit {shown_block(c)}",
            hint="check the block shapes, transpose_A and transpose_B",
        )
    if policy is not None:
        current(callee).leave_out(callee, "warp policy")
    if is_dynamic(clear_accum):
        builder = current(callee)
        zeros = call(tl.FILL.name, [c, constant(0, str(c.source.ty.dtype.dtype))], attrs)
        cleared = builder.views.based(tirx.Evaluate(zeros, builder.tvm_span()), builder.unused)
        builder.emit(tirx.IfThenElse(condition(clear_accum), sequence(cleared), None, builder.tvm_span()))
        clear_accum = False
    flags = {"transpose_A": transpose_A, "transpose_B": transpose_B, "clear_accum": clear_accum}
    return statement_call(tl.GEMM.name, [a, b, c, *barrier], {**{name: 1 for name, on in flags.items() if on}, **attrs})


def im2col(
    img: object, col: object, nhw_step: object, c_step: object, kernel: int, stride: int, dilation: int, pad: int,
    **hints: object,
) -> None:  # fmt: skip
    """Gather the block ``col`` (M, K) number (`nhw_step`, `c_step`) of the matrix that makes a convolution of the
    tensor `img` (N, H, W, C) a product: its rows are the places of the result, its columns the elements under a square
    kernel. What lies in the padding is zero.

    Raises KernelError for operands of other ranks.
    """
    builder = current("T.im2col")
    note_hints("T.im2col", hints)
    if not is_buffer(img) or len(img.ty.shape) != 4 or not is_buffer(col) or len(col.ty.shape) != 2:
        raise KernelError(
            "K008", "T.im2col takes a tensor of four dimensions and a block of two",
            hint="write T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad)",
        )  # fmt: skip
    _, height, width, channels = extents_of(img)
    rows, columns = extents(region(col, ()))
    out_height, out_width = ((size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width))
    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    pixel = whole(index_of("T.im2col", nhw_step)) * rows + i
    under = whole(index_of("T.im2col", c_step)) * columns + j
    row = under // (kernel * channels)
    column = under // channels % kernel
    indices: list[ir.Expr] = [
        pixel // (out_height * out_width),
        pixel % (out_height * out_width) // out_width * stride + row * dilation - pad,
        pixel % out_width * stride + column * dilation - pad,
        under % channels,
    ]
    value: ir.Expr = tirx.BufferLoad(img, indices)
    if img.ty.dtype != col.ty.dtype:
        value = tirx.Cast(col.ty.dtype, value)
    span = builder.tvm_span()
    nest: tirx.Stmt = tirx.BufferStore(col, value, [i, j], span)
    for variable, extent in ((j, columns), (i, rows)):
        nest = tirx.For(variable, _int32(0), _int32(extent), tirx.ForKind.PARALLEL, nest, None, {}, None, span)
    builder.emit(nest)


def reduce(src: object, dst: object, reduce_type: str, dim: int = -1, clear: bool = True, **hints: object) -> ir.Call:
    """Reduce a block along one dimension: ``dst = reduce(src, dim)``, combined with the old value of dst unless
    `clear`.

    Raises KernelError if `dim` is not a dimension of `src` or the shapes do not fit together.
    """
    callee = f"T.reduce_{reduce_type}"
    if reduce_type not in REDUCTIONS:
        raise unsupported(callee, f"reductions are {', '.join(REDUCTIONS)}")
    note_hints(callee, {name: value for name, value in hints.items() if (name, value) != ("batch", 1)})
    source, target = as_region(src, callee), as_region(dst, callee)
    shape, target_shape = extents(source), extents(target)
    if not -len(shape) <= dim < len(shape):
        raise KernelError("K002", f"{callee}: dim={shown(dim)}, but {shown_block(source)} has {len(shape)} dimensions")
    dim %= len(shape)
    if JOININGS[reduce_type].of_bits:
        for block in (source.source, target.source):
            dtype = str(block.ty.dtype.dtype)
            if dtype != "bool" and "int" not in dtype:
                raise KernelError(
                    "K009", f"{callee} joins bits, and {block.name} is {dtype}", hint="take blocks of integers or bool"
                )
    # A vector is reduced to a buffer of one element: there is none without dimensions.
    fitting = ([*shape[:dim], *shape[dim + 1 :]] or [1], [*shape[:dim], 1, *shape[dim + 1 :]])
    if target_shape not in fitting:
        raise KernelError(
            "K002",
            f"{callee}: {shown_block(source)} along dim={dim} does not fit {shown_block(target)}",
            hint="the result has the source's shape without that dimension",
        )
    return statement_call(tl.REDUCE.name, [source, target], {"kind": reduce_type, "dim": dim, "clear": int(clear)})


REDUCTIONS = tuple(JOININGS)


def reduction(kind: str) -> Callable[..., ir.Call]:
    """``T.reduce_<kind>(src, dst, dim=-1, clear=True)``."""

    def reduce_kind(src: object, dst: object, dim: int = -1, clear: bool = True, **hints: object) -> ir.Call:
        return reduce(src, dst, kind, dim, clear, **hints)

    reduce_kind.__name__ = reduce_kind.__qualname__ = f"reduce_{kind}"
    return reduce_kind
