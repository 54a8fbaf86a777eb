"""Work items and shards: which shard an item touches, and whether a core moves its own shard in order.

The positions of the kernel's copies are evaluated for each work item.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

from tvm import ir, tirx

from ttexplore.ir.arithmetic.index import Expression, Variable, compiled, convert, placed, variables
from ttexplore.ir.build import constant, expressions_of, regions, runs, shape_of, statements
from ttexplore.ir.dataflow import is_on_chip, loads_of
from ttexplore.ops import language as tl
from ttexplore.plan import TILE_COLUMNS, TILE_ROWS, Sharding, TensorLayout

Block = tuple[int, ...]
# Of a launch grid.
_MOST_AXES = 3


@dataclass(frozen=True)
class TensorCopy:
    """A copy between a tensor and an on-chip buffer.

    `extents` are those of its block along the tensor's axes, `loops` those of the loops around it. `low` computes the
    first element of the block from a work item and the values of the loops. `axes` are the axes of the launch grid
    that it depends on.
    """

    statement: tirx.Stmt
    tensor: str
    loads: bool
    extents: tuple[int, ...]
    loops: tuple[int, ...]
    low: Callable[[Block, Block], Block]
    axes: tuple[int, ...]

    def starts(self, block: Block) -> Iterator[Block]:
        """The first element of each block that the copy moves for a work item, in order."""
        return map(self.low, itertools.repeat(block), itertools.product(*map(range, self.loops)))


def tensor_copies(loops: list[tirx.For]) -> list[TensorCopy]:
    """The copies of a kernel under its grid `loops`, in order, without those at positions known only at run time."""
    numbers: dict[ir.Var, Variable] = {}
    bound: dict[Variable, Expression] = {}
    copies: list[TensorCopy] = []

    def number(ir_variable: ir.Var) -> Variable:
        return numbers.setdefault(ir_variable, Variable(len(numbers), str(ir_variable.name)))

    def visit(body: list[tirx.Stmt], names: dict[Variable, str], around: tuple[int, ...]) -> None:
        for statement in body:
            if isinstance(statement, tirx.Bind):
                bound[number(statement.var)] = convert(statement.value, number)
            elif isinstance(statement, tirx.For):
                extent = constant(statement.extent)
                if extent is not None and constant(statement.min) == 0:
                    inner = names | {number(statement.loop_var): f"v[{len(around)}]"}
                    visit(statements(statement.body), inner, (*around, extent))
            elif runs(statement, tl.COPY):
                copy = _copy(statement, names, around, lambda e: placed(convert(e, number), bound))
                copies.extend([] if copy is None else [copy])

    visit(
        statements(loops[-1].body),
        {number(grid_loop.loop_var): f"b[{axis}]" for axis, grid_loop in enumerate(loops)},
        (),
    )
    return copies


def _copy(
    statement: tirx.Stmt, names: dict[Variable, str], around: tuple[int, ...],
    written_out: Callable[[ir.Expr], Expression],
) -> TensorCopy | None:  # fmt: skip
    source, target = regions(statement)
    if is_on_chip(source.source) == is_on_chip(target.source):
        return None
    region = target if is_on_chip(source.source) else source
    extents = [constant(interval.extent) for interval in region.region]
    if None in extents:
        return None
    starts = [written_out(interval.min) for interval in region.region]
    low = compiled(starts, "b, v", names)
    if low is None:
        return None
    sizes = tuple(int(extent or 0) for extent in extents)
    used = {names[variable] for start in starts for variable in variables(start)}
    axes = tuple(axis for axis in range(_MOST_AXES) if f"b[{axis}]" in used)
    return TensorCopy(statement, str(region.source.name), region is source, sizes, around, low, axes)


def tensors_moved(statement: tirx.Stmt) -> set[str]:
    """The tensors that a statement moves elements of."""
    moved = [region.source for region in regions(statement)] if isinstance(statement, tirx.Evaluate) else []
    moved += [load.source for expression in expressions_of(statement) for load in loads_of(expression)]
    return {str(source.name) for source in moved if not is_on_chip(source)}


def tile_of(layout: TensorLayout, element: Block) -> tuple[int, int]:
    """The (row, column) of the tile that holds an element; leading dimensions are folded into the rows."""
    sizes = layout.padded_shape
    at = (0,) * (len(sizes) - len(element)) + element
    row = 0
    for size, index in zip(sizes[:-1], at[:-1], strict=True):
        row = row * size + index
    return row // TILE_ROWS, at[-1] // TILE_COLUMNS


def shard_of(sharding: Sharding, tile: tuple[int, int]) -> int:
    """The number of the shard that holds a tile; the last shard for a tile outside the tensor."""
    rows, columns = sharding.shard_shape[0] // TILE_ROWS, sharding.shard_shape[1] // TILE_COLUMNS
    row, column = min(tile[0] // rows, sharding.grid[0] - 1), min(tile[1] // columns, sharding.grid[1] - 1)
    return row * sharding.grid[1] + column


def moves_own_shard(
    copy: TensorCopy, layout: TensorLayout, core: tuple[int, int], blocks: Iterable[Block], column_major: bool
) -> str | None:
    """Why the tiles that a core moves are not exactly those of its own shard, in order; None if they are."""
    sharding = layout.sharding
    assert sharding is not None
    if core not in sharding.cores:
        return f"core {core} holds none of it"
    own_shard = sharding.cores.index(core)
    tile_rows, tile_columns = sharding.shard_shape[0] // TILE_ROWS, sharding.shard_shape[1] // TILE_COLUMNS
    sizes = copy.extents
    if any(extent != 1 for extent in sizes[:-2]) or any(
        extent % tile for extent, tile in zip(sizes[-2:], (TILE_ROWS, TILE_COLUMNS)[-len(sizes) :], strict=False)
    ):
        return f"blocks of {sizes} are not whole tiles"
    *above, across = sizes
    height, width = (above[-1] // TILE_ROWS if above else 1), across // TILE_COLUMNS
    inside = [(r, c) for r in range(height) for c in range(width)]
    inside.sort(key=lambda at: at[::-1] if column_major else at)
    expected = 0
    for block in blocks:
        for start in copy.starts(block):
            if any(low % tile for low, tile in zip(start[-2:], (TILE_ROWS, TILE_COLUMNS)[-len(start) :], strict=False)):
                return f"a block starts at {start}, inside a tile"
            if any(
                low < 0 or low + size > length for low, size, length in zip(start, sizes, layout.shape, strict=True)
            ):
                return f"a block at {start} reaches past the end of the tensor"
            row, column = tile_of(layout, start)
            for r, c in inside:
                tile = (row + r, column + c)
                slot = tile[0] % tile_rows * tile_columns + tile[1] % tile_columns
                if shard_of(sharding, tile) != own_shard:
                    return f"core {core} moves tile {tile}, which core {sharding.cores[shard_of(sharding, tile)]} holds"
                if slot != expected:
                    return f"core {core} moves tile {slot} of its shard as number {expected}"
                expected += 1
    return None


def shard_tiles(layout: TensorLayout) -> int:
    """The number of tiles in a shard."""
    assert layout.sharding is not None
    return prod(layout.sharding.shard_shape) // (TILE_ROWS * TILE_COLUMNS)


def whole_buffer(copy: TensorCopy) -> bool:
    """Whether the copy fills or drains the whole on-chip buffer."""
    source, target = regions(copy.statement)
    region = target if copy.loads else source
    return tuple(constant(interval.extent) for interval in region.region) == shape_of(region.source)
