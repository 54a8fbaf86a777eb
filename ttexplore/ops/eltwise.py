"""Element-wise operations of the FPU: on two circular buffers, plain or with a broadcast, and on DST and one buffer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ttexplore.ops.op import Op, Tile, circular_buffer, dst, quiet, tile


def _add(a: Tile, b: Tile) -> Tile:
    return a + b


def _subtract(a: Tile, b: Tile) -> Tile:
    return a - b


def _multiply(a: Tile, b: Tile) -> Tile:
    return a * b


Binary = Callable[[Tile, Tile], Tile]
# ELWMUL always adds to DST (op-truth.md, trap 9) and runs once per fidelity phase.
_OPERATIONS: dict[str, tuple[Binary, bool, int]] = {
    "add": (_add, False, 8),
    "sub": (_subtract, False, 8),
    "mul": (_multiply, True, 32),
}


def _row(b: Tile) -> Tile:
    return np.broadcast_to(b[:1], (32, 32))


def _column(b: Tile) -> Tile:
    return np.broadcast_to(b[:, :1], (32, 32))


def _element(b: Tile) -> Tile:
    return np.broadcast_to(b[:1, :1], (32, 32))


_BROADCASTS: dict[str, tuple[Callable[[Tile], Tile], str]] = {
    "rows": (_row, "row 0 of the in1 tile is used for all rows"),
    "cols": (_column, "column 0 of the in1 tile is used for all columns"),
    "scalar": (_element, "element [0, 0] of the in1 tile is used for all elements"),
}


def _fpu(name: str) -> Op:
    meaning, accumulates, cycles = _OPERATIONS[name]
    return Op(
        f"{name}_tiles",
        (circular_buffer("in0"), circular_buffer("in1"), tile("tile0", "in0"), tile("tile1", "in1"), dst("out")),
        f"{name}_tiles({{in0}}, {{in1}}, {{tile0}}, {{tile1}}, {{out}})",
        "api/compute/eltwise_binary.h",
        "fpu",
        init=f"{name}_init({{in0}}, {{in1}})",
        init_operands=("in0", "in1"),
        meaning=quiet(meaning),
        source_a="in0",
        source_b="in1",
        accumulates=accumulates,
        cycles=cycles,
    )


def _fpu_broadcast(name: str, over: str) -> Op:
    operation, accumulates, cycles = _OPERATIONS[name]
    spread, note = _BROADCASTS[over]

    def meaning(a: Tile, b: Tile) -> Tile:
        return operation(a, spread(b))

    return Op(
        f"{name}_tiles_bcast_{over}",
        (circular_buffer("in0"), circular_buffer("in1"), tile("tile0", "in0"), tile("tile1", "in1"), dst("out")),
        f"{name}_tiles_bcast_{over}({{in0}}, {{in1}}, {{tile0}}, {{tile1}}, {{out}})",
        "api/compute/bcast.h",
        "fpu",
        init=f"{name}_bcast_{over}_init({{in0}}, {{in1}})",
        init_operands=("in0", "in1"),
        meaning=quiet(meaning),
        source_a="in0",
        source_b="in1",
        accumulates=accumulates,
        cycles=cycles,
        note=note,
    )


ADD_TILES, SUB_TILES, MUL_TILES = (_fpu(name) for name in _OPERATIONS)
BROADCAST_OPS = tuple(_fpu_broadcast(name, over) for over in _BROADCASTS for name in _OPERATIONS)

ELTWISE_OPS = (ADD_TILES, SUB_TILES, MUL_TILES, *BROADCAST_OPS)
