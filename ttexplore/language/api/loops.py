"""Loops of the kernel language and its launch grid."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.operations.by_thread import VECTORIZED
from ttexplore.language.api.tile import note_hints
from ttexplore.language.tracer.builder import (
    Grid,
    Integer,
    LoopNest,
    current,
    index_of,
    is_integer,
    plain,
    refuse_unknown,
    whole,
)
from ttexplore.language.tracer.containers import items_of
from ttexplore.language.tracer.hooks import span_loop

_Kind = tirx.ForKind


def _loop(
    callee: str, kind: tirx.ForKind, start: object, stop: object, step: object, annotations: dict[str, object],
    hints: dict[str, object],
) -> LoopNest:  # fmt: skip
    note_hints(callee, hints)
    first, last = (0, start) if stop is None else (start, stop)
    return span_loop(kind, first, last, 1 if step is None else step, annotations)


def serial(start: object, stop: object = None, step: object = None, **hints: object) -> LoopNest:
    """A sequential loop."""
    return _loop("T.serial", _Kind.SERIAL, start, stop, step, {}, hints)


def unroll(start: object, stop: object = None, step: object = None, **hints: object) -> LoopNest:
    """A sequential loop; the device compiler decides whether to unroll it."""
    return _loop("T.unroll", _Kind.SERIAL, start, stop, step, {}, hints)


def vectorized(start: object, stop: object = None, **hints: object) -> LoopNest:
    """A loop whose iterations are independent."""
    return _loop("T.vectorized", _Kind.PARALLEL, start, stop, None, {VECTORIZED: 1}, hints)


def Pipelined(start: object, stop: object = None, num_stages: int = 0, **hints: object) -> LoopNest:
    """A loop whose loads run ahead by `num_stages` blocks. Raises KernelError if that is negative."""
    if num_stages < 0:
        raise KernelError("K004", f"T.Pipelined: num_stages is {shown(num_stages)}", hint="use 0 or more stages")
    return _loop("T.Pipelined", _Kind.SERIAL, start, stop, None, {"num_stages": num_stages}, hints)


def _nest(callee: str, kind: tirx.ForKind, extents: tuple[object, ...], hints: dict[str, object]) -> LoopNest:
    note_hints(callee, hints)
    if not extents:
        raise KernelError("K004", f"{callee} needs at least one extent", hint=f"write {callee}(block_M, block_N)")
    return LoopNest(tuple(positive_extent(callee, extent) for extent in extents), kind)


def positive_extent(callee: str, extent: object) -> Integer:
    """The extent of a loop. Raises KernelError for anything but an integer of 1 or more."""
    extent = plain(extent)
    refuse_unknown(extent, f"an extent of {callee}")
    if not is_integer(extent):
        raise KernelError(
            "K004",
            f"{callee}: {shown(extent)} is not a valid extent",
            hint="use an integer extent: // divides integers",
        )
    if isinstance(extent, int) and extent < 1:
        raise KernelError(
            "K004", f"{callee}: the extent {extent} leaves nothing to do", hint="use extents of 1 or more"
        )
    return extent


def Parallel(*extents: object, **hints: object) -> LoopNest:
    """A nest of independent iterations over a block: ``for i, j in T.Parallel(M, N)``."""
    return _nest("T.Parallel", _Kind.PARALLEL, extents, hints)


def Persistent(domain: Sequence[object], wave_size: object, index: object, group_size: int = 8) -> LoopNest:
    """The places of a domain that one block takes: ``for bx, by in T.Persistent([Nt, Mt], blocks, block)``.

    `wave_size` is the number of blocks, `index` the block's own: it takes each `wave_size`-th place. `group_size` is
    the order of the places on a GPU. Where the loop is all that a kernel does, its places become the launch grid, and
    the options policy and order say which core takes which. Raises KernelError for anything but integers.
    """
    callee = "T.Persistent"
    note_hints(callee, {"group_size": group_size if group_size != 8 else None})
    extents = tuple(positive_extent(callee, extent) for extent in items_of(domain))
    if not extents:
        raise KernelError(
            "K004", f"{callee} needs at least one extent", hint=f"write {callee}([Nt, Mt], blocks, block)"
        )
    return LoopNest(extents, _Kind.SERIAL, waves=(positive_extent(callee, wave_size), whole(index_of(callee, index))))


def grid(*extents: object, **hints: object) -> LoopNest:
    """A nest of sequential loops."""
    return _nest("T.grid", _Kind.SERIAL, extents, hints)


def Kernel(
    *blocks: object,
    grid_x: object = None,
    grid_y: object = None,
    grid_z: object = None,
    threads: object = None,
    **hints: object,
) -> Grid:
    """The launch grid: block counts along x, y and z. `threads` is for GPUs; a Tensix core has no threads."""
    note_hints("T.Kernel", hints)
    named = [grid_x, grid_y, grid_z]
    if any(extent is not None for extent in named):
        while named[-1] is None:
            named.pop()
        if blocks or None in named:
            raise KernelError(
                "K004", "T.Kernel: an axis is given twice or left out", hint="write T.Kernel(grid_x=Nt, grid_y=Mt)"
            )
        blocks = tuple(named)
    if not 1 <= len(blocks) <= 3:
        raise KernelError("K004", f"T.Kernel has {len(blocks)} axes", hint="pass one to three block counts")
    return Grid(tuple(positive_extent("T.Kernel", block) for block in blocks), 128 if threads is None else threads)


def get_block_binding(dim: int = 0) -> ir.Var:
    """The block index along an axis of T.Kernel."""
    return get_block_bindings()[dim]


def get_block_bindings() -> tuple[ir.Var, ...]:
    """The block indices of T.Kernel."""
    builder = current("T.get_block_bindings")
    if not builder.blocks:
        raise KernelError(
            "K005", "there are no block indices outside T.Kernel", hint="use it inside `with T.Kernel(...)`"
        )
    return builder.blocks
