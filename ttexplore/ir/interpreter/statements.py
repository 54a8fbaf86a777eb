"""The operations of the kernel language, on regions, before there are tiles: copy, fill, gemm, reduce, scan, parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from ttexplore.errors import KernelError
from ttexplore.ir.arithmetic.uncertain import Elements, Operand, lifted, whole_product
from ttexplore.ir.interpreter.arrays import is_whole, stored_as
from ttexplore.ir.interpreter.machine import Core, Index
from ttexplore.ir.operations.reductions import Reduction
from ttexplore.ir.operations.scans import Scan
from ttexplore.ops import language as tl
from ttexplore.ops.wide import product
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS

_product = cast(Callable[[Elements, Elements], Elements], lifted(product))

# The name of a buffer, and start and length along each of its axes.
Region = tuple[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Flags:
    """How operands are taken: turned, or, of a gemm's result, as zeros."""

    transpose: bool
    transpose_a: bool
    transpose_b: bool
    clear_accum: bool
    # The extents of the region of a tensor that holds the whole of a block, where a part of the block is stored.
    whole: tuple[int, ...] = ()


def copy(core: Core, source: Region, target: Region, flags: Flags) -> None:
    """Copy a block. What lies outside of a tensor reads as zero, and is not stored."""
    tensors, dtype = core.run.tensors, core.dtypes[target[0]]
    values = _padded(core, source) if source[0] in tensors else _view(core, source)
    if flags.transpose:
        if values.ndim == 1:
            # A vector as a column, or a column of one element: nothing else of the tiles is ever read.
            into = _view(core, target)
            (into if into.ndim == 1 else into[:, 0])[...] = stored_as(values, dtype)
            return
        values = values.T
    values = stored_as(values, dtype)
    if target[0] not in tensors:
        into = _view(core, target)
        into[...] = values.reshape(into.shape)
        return
    array, inside, covered = _inside(core, target)
    array[inside] = values.reshape(flags.whole or [extent for _, extent in target[1]])[covered]


def copy_tiles(core: Core, source: Region, target: Region, *arguments: int | Flags) -> None:
    """Copy the tiles of a block from some tile on. In place of tiles that it does not have it gives the nearest."""
    values, into = (_view(core, region, rank=len(region[1])) for region in (source, target))
    starts = [argument for argument in arguments if not isinstance(argument, Flags)]
    for axis, (start, sizes) in enumerate(zip(starts, (TILE_ROWS, TILE_COLUMNS)[-len(starts) :], strict=True)):
        length, index = values.shape[axis], np.arange(into.shape[axis])
        tile = np.clip(index // sizes + start, 0, -(-length // sizes) - 1)
        values = values[(slice(None),) * axis + (np.minimum(tile * sizes + index % sizes, length - 1),)]
    into[...] = stored_as(values, core.dtypes[target[0]])


def gather(core: Core, source: Region, target: Region, *arguments: Index | Flags) -> None:
    """Elements of a tensor whose places are computed. What lies outside of it reads as zero."""
    # The variables for row and column of the block come first.
    indices = tuple(argument for argument in arguments if not isinstance(argument, Flags))[2:]
    _view(core, target)[...] = stored_as(core.load(source[0], indices), core.dtypes[target[0]])


def fill(core: Core, target: Region, value: Operand, flags: Flags) -> None:
    _view(core, target)[...] = stored_as(value, core.dtypes[target[0]])


def gemm(core: Core, a: Region, b: Region, c: Region, flags: Flags) -> None:
    left, right, out = (_view(core, region, rank=2) for region in (a, b, c))
    left = left.T if flags.transpose_a else left
    right = right.T if flags.transpose_b else right
    result = whole_product(left, right) if core.dtypes[c[0]] == "int32" else _product(left, right)
    out[...] = stored_as(result if flags.clear_accum else out + result, core.dtypes[c[0]])


def reduce(core: Core, source: Region, target: Region, reduction: Reduction) -> None:
    out = _view(core, target)
    reduced = reduction.of(_view(core, source, rank=reduction.rank)).reshape(out.shape)
    if not reduction.clear:
        reduced = reduction.joining.joined(out, reduced)
    out[...] = stored_as(reduced, core.dtypes[target[0]])


def scan(core: Core, source: Region, target: Region, scan: Scan) -> None:
    values, out = (_view(core, region, rank=scan.rank) for region in (source, target))
    before, running = (slice(None),) * scan.dim, None
    for position in scan.places(values.shape[scan.dim]):
        layer = values[(*before, position)]
        running = layer if running is None else scan.joining.joined(running, layer)
        out[(*before, position)] = stored_as(running, core.dtypes[target[0]])


STATEMENTS: dict[str, Callable[..., None]] = {
    tl.COPY.name: copy, tl.FILL.name: fill, tl.GEMM.name: gemm, tl.REDUCE.name: reduce,
    tl.SCAN.name: scan, tl.COPY_TILES.name: copy_tiles, tl.GATHER.name: gather,
}  # fmt: skip


def _view(core: Core, region: Region, rank: int = 1) -> Elements:
    """The elements of a region, without its first axes of extent 1 as far as `rank` are left."""
    name, spans = region
    array = core.array(name)
    for axis, ((low, extent), length) in enumerate(zip(spans, array.shape, strict=True)):
        if low < 0 or low + extent > length:
            raise KernelError(
                "K001",
                f"{name} has {length} elements along axis {axis}; the region {low}:{low + extent} is outside",
                hint="make the size a multiple of the block, or check the index",
                span=core.span,
            )
    view = array[tuple(slice(low, low + extent) for low, extent in spans)]
    while view.ndim > rank and view.shape[0] == 1:
        view = view[0]
    return view


def _inside(core: Core, region: Region) -> tuple[Elements, tuple[slice, ...], tuple[slice, ...]]:
    """The part of a region inside of its tensor, as slices of the tensor and of the region."""
    name, spans = region
    array = core.run.tensors[name]
    inside: list[slice] = []
    covered: list[slice] = []
    for (low, extent), length in zip(spans, array.shape, strict=True):
        first, end = min(max(low, 0), length), max(min(low + extent, length), 0)
        inside.append(slice(first, max(first, end)))
        covered.append(slice(first - low, max(first, end) - low))
    return array, tuple(inside), tuple(covered)


def _padded(core: Core, region: Region) -> Elements:
    array, inside, covered = _inside(core, region)
    shape = [extent for _, extent in region[1]]
    values = core.stored(np.zeros(shape, array.dtype), whole=is_whole(core.dtypes[region[0]]))
    values[covered] = array[inside]
    while values.ndim > 1 and values.shape[0] == 1:
        values = values[0]
    return values
