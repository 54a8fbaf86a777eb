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
        multiplies=accumulates,
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
        multiplies=accumulates,
        cycles=cycles,
        note=note,
    )


def _fpu_reuse_dest(name: str, cpp: str, source: str, meaning: Binary) -> Op:
    reuse = f"<EltwiseBinaryReuseDestType::DEST_TO_SRC{source}>"
    return Op(
        f"{name}_reuse_dest_tiles",
        (circular_buffer("in1"), tile("tile1", "in1"), dst("out", "update")),
        f"{cpp}_reuse_dest_tiles{reuse}({{in1}}, {{tile1}}, {{out}})",
        "api/compute/eltwise_binary.h",
        "fpu",
        init=f"{cpp}_reuse_dest_init{reuse}({{in1}})",
        init_operands=("in1",),
        meaning=quiet(meaning),
        # DST moves to one source register, the circular buffer to the other.
        source_a="in1" if source == "B" else "",
        source_b="in1" if source == "A" else "",
        multiplies=_OPERATIONS[cpp][1],
        cycles=_OPERATIONS[cpp][2] + 16,
        note="the operand in DST is truncated to TF32",
    )


def _subtract_reversed(b: Tile, a: Tile) -> Tile:
    return a - b


# The tile of the circular buffer is the second operand, except in rsub, where it is the first.
REUSE_DEST_OPS = (
    _fpu_reuse_dest("add", "add", "A", _add),
    _fpu_reuse_dest("sub", "sub", "A", _subtract_reversed),
    _fpu_reuse_dest("rsub", "sub", "B", _subtract),
    _fpu_reuse_dest("mul", "mul", "A", _multiply),
)

ADD_TILES, SUB_TILES, MUL_TILES = (_fpu(name) for name in _OPERATIONS)
BROADCAST_OPS = tuple(_fpu_broadcast(name, over) for over in _BROADCASTS for name in _OPERATIONS)

ELTWISE_OPS = (ADD_TILES, SUB_TILES, MUL_TILES, *BROADCAST_OPS, *REUSE_DEST_OPS)
