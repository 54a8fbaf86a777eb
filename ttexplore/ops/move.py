"""Moving tiles between circular buffers and DST: copy, pack, transpose, broadcast, fill; rows to tiles and back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ttexplore.ops.costs import COPY_CYCLES, PACK_CYCLES
from ttexplore.ops.op import Op, Tile, circular_buffer, dst, flag, integer, scalar, tile
from ttexplore.ops.sfpu_cycles import sfpu_cycles


def _same(source: Tile) -> Tile:
    return source


def _transposed(source: Tile) -> Tile:
    return source.T


def _first_row(source: Tile) -> Tile:
    return np.broadcast_to(source[:1], (32, 32))


def _first_column(source: Tile) -> Tile:
    return np.broadcast_to(source[:, :1], (32, 32))


def _first_element(source: Tile) -> Tile:
    return np.broadcast_to(source[:1, :1], (32, 32))


def _filled(value: float) -> Tile:
    return np.full((32, 32), value, np.float32)


COPY_TILE = Op(
    "copy_tile",
    (circular_buffer("source"), tile("index", "source"), dst("out")),
    "copy_tile({source}, {index}, {out})",
    "api/compute/tile_move_copy.h",
    "fpu",
    init="copy_init({source})",
    init_operands=("source",),
    meaning=_same,
    takes="any",
    gives="same",
    source_a="source",
    cycles=COPY_CYCLES,
    note="exact for a Float32 buffer that is unpacked to DST, otherwise truncated to TF32",
)

TRANSPOSE_TILE = Op(
    "transpose_tile",
    (circular_buffer("source"), tile("index", "source"), dst("out")),
    "transpose_tile({source}, {index}, {out})",
    "api/compute/transpose.h",
    "fpu",
    init="transpose_init({source})",
    init_operands=("source",),
    meaning=_transposed,
    takes="any",
    gives="same",
    source_a="source",
    cycles=32,
    note="exact for a Float32 buffer that is unpacked to DST, otherwise truncated to TF32",
)


def _unary_broadcast(
    name: str, meaning: Callable[[Tile], Tile], note: str, wrong_in: tuple[tuple[str, int], ...] = ()
) -> Op:
    kind = f"<BroadcastType::{name.upper()}>"
    return Op(
        f"unary_bcast_{name}",
        (circular_buffer("source"), tile("index", "source"), dst("out")),
        f"unary_bcast{kind}({{source}}, {{index}}, {{out}})",
        "api/compute/bcast.h",
        "fpu",
        init=f"unary_bcast_init{kind}({{source}})",
        init_operands=("source",),
        uninit=f"unary_bcast_uninit{kind}({{source}})",
        uninit_operands=("source",),
        meaning=meaning,
        takes="any",
        gives="same",
        # A Float32 buffer that is unpacked to DST goes through SrcA, any other one through SrcB.
        source_a="source",
        source_b="source",
        cycles=32,
        wrong_in=wrong_in,
        note=note,
    )


UNARY_BCAST_ROW = _unary_broadcast(
    "row",
    _first_row,
    "wrong on the chip for a bf16 buffer with 32-bit DST: use it for Float32 buffers only",
    (("Float16_b", 32),),
)
UNARY_BCAST_COL = _unary_broadcast("col", _first_column, "column 0 for all columns")
UNARY_BCAST_SCALAR = _unary_broadcast("scalar", _first_element, "element [0, 0] for all elements")

PACK_TILE = Op(
    "pack_tile",
    (dst("source", "read"), circular_buffer("out", "write"), tile("index", "out")),
    "pack_tile<true>({source}, {out}, {index})",
    "api/compute/pack.h",
    "pack",
    meaning=_same,
    takes="any",
    gives="same",
    packs="out",
    cycles=PACK_CYCLES,
)

FILL_TILE = Op(
    "fill_tile",
    (dst("out"), scalar("value")),
    "fill_tile_bitcast({out}, {value})",
    "api/compute/eltwise_unary/fill.h",
    "sfpu",
    init="fill_tile_init()",
    meaning=_filled,
    cycles=sfpu_cycles("fill_tile"),
)

PACK_L1_ACCUMULATE = Op(
    "pack_l1_accumulate",
    (flag("enable"),),
    "pack_reconfig_l1_acc({enable})",
    "api/compute/pack.h",
    "config",
    note="while enabled, pack_tile adds to the tile in L1; wolfpine 2.2 ignores it silently",
)


def _tilized(rows: Tile) -> Tile:
    """Convert 32 rows of memory, (tiles, 32, 32) elements in order, to tiles side by side."""
    count = len(rows)
    return rows.reshape(32, count, 32).transpose(1, 0, 2)


def _untilized(tiles: Tile) -> Tile:
    """Convert tiles side by side, (tiles, 32, 32), to 32 rows of memory."""
    return tiles.transpose(1, 0, 2).reshape(tiles.shape)


TILIZE_BLOCK = Op(
    "tilize_block",
    (circular_buffer("source"), circular_buffer("out", "write"), integer("tiles")),
    "tilize_block({source}, {tiles}, {out})",
    "api/compute/tilize.h",
    "block",
    init="tilize_init({source}, {tiles}, {out})",
    init_operands=("source", "out", "tiles"),
    uninit="tilize_uninit({source}, {out})",
    uninit_operands=("source", "out"),
    meaning=_tilized,
    takes="any",
    gives="same",
    source_a="source",
    packs="out",
    cycles=68,
    note="32 rows of `tiles` x 32 elements become tiles: 16-bit formats exactly, float32 truncated to TF32",
)

PACK_UNTILIZE_BLOCK = Op(
    "pack_untilize_block",
    (circular_buffer("source"), circular_buffer("out", "write"), integer("tiles")),
    "pack_untilize_block<{tiles}>({source}, 1, {out})",
    "api/compute/pack_untilize.h",
    "block",
    init="pack_untilize_init<{tiles}>({source}, {out})",
    init_operands=("source", "out", "tiles"),
    uninit="pack_untilize_uninit({out})",
    uninit_operands=("out",),
    meaning=_untilized,
    takes="any",
    gives="same",
    source_a="source",
    packs="out",
    cycles=68,
    note="tiles side by side become 32 rows: at most as many tiles as half of DST holds",
)

MOVE_OPS = (
    COPY_TILE,
    TRANSPOSE_TILE,
    UNARY_BCAST_ROW,
    UNARY_BCAST_COL,
    UNARY_BCAST_SCALAR,
    PACK_TILE,
    FILL_TILE,
    PACK_L1_ACCUMULATE,
    TILIZE_BLOCK,
    PACK_UNTILIZE_BLOCK,
)
