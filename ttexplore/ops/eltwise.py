"""Element-wise operations: the FPU's on two circular buffers, the SFPU's on DST."""

from __future__ import annotations

import numpy as np

from ttexplore.ops.op import Op, Tile, circular_buffer, dst, scalar, tile


def _add(a: Tile, b: Tile) -> Tile:
    return a + b


def _subtract(a: Tile, b: Tile) -> Tile:
    return a - b


def _multiply(a: Tile, b: Tile) -> Tile:
    return a * b


def _reverse_subtract(a: Tile, b: Tile) -> Tile:
    return b - a


def _maximum(a: Tile, b: Tile) -> Tile:
    return np.maximum(a, b)


def _minimum(a: Tile, b: Tile) -> Tile:
    return np.minimum(a, b)


def _exp(a: Tile) -> Tile:
    return np.exp(a)


def _relu(a: Tile) -> Tile:
    return np.maximum(a, np.float32(0))


def _negative(a: Tile) -> Tile:
    return -a


def _abs(a: Tile) -> Tile:
    return np.abs(a)


def _fpu(name: str, function: object, *, accumulates: bool = False, cycles: int = 8) -> Op:
    return Op(
        f"{name}_tiles",
        (circular_buffer("in0"), circular_buffer("in1"), tile("tile0", "in0"), tile("tile1", "in1"), dst("out")),
        f"{name}_tiles({{in0}}, {{in1}}, {{tile0}}, {{tile1}}, {{out}})",
        "api/compute/eltwise_binary.h",
        "fpu",
        init=f"{name}_init({{in0}}, {{in1}})",
        init_operands=("in0", "in1"),
        meaning=function,  # pyright: ignore[reportArgumentType]
        source_a="in0",
        source_b="in1",
        accumulates=accumulates,
        cycles=cycles,
    )


def _fpu_row(name: str, function: object, *, accumulates: bool = False, cycles: int = 8) -> Op:
    def meaning(a: Tile, b: Tile) -> Tile:
        return function(a, np.broadcast_to(b[0], (32, 32)))  # pyright: ignore

    return Op(
        f"{name}_tiles_bcast_rows",
        (circular_buffer("in0"), circular_buffer("in1"), tile("tile0", "in0"), tile("tile1", "in1"), dst("out")),
        f"{name}_tiles_bcast_rows({{in0}}, {{in1}}, {{tile0}}, {{tile1}}, {{out}})",
        "api/compute/bcast.h",
        "fpu",
        init=f"{name}_bcast_rows_init({{in0}}, {{in1}})",
        init_operands=("in0", "in1"),
        meaning=meaning,
        source_a="in0",
        source_b="in1",
        accumulates=accumulates,
        cycles=cycles,
        note="row 0 of the in1 tile is used for all rows",
    )


ADD_TILES = _fpu("add", _add)
SUB_TILES = _fpu("sub", _subtract)
# ELWMUL always adds to DST (op-truth.md, trap 9) and runs once per fidelity phase.
MUL_TILES = _fpu("mul", _multiply, accumulates=True, cycles=32)
ADD_TILES_BCAST_ROWS = _fpu_row("add", _add)
SUB_TILES_BCAST_ROWS = _fpu_row("sub", _subtract)
MUL_TILES_BCAST_ROWS = _fpu_row("mul", _multiply, accumulates=True, cycles=32)


def _sfpu(name: str, function: object, header: str, *, cycles: int, template: str = "", init: str = "") -> Op:
    return Op(
        f"{name}_tile",
        (dst("value", "update"),),
        f"{name}_tile{template}({{value}})",
        header,
        "sfpu",
        init=init or f"{name}_tile_init{template}()",
        meaning=function,  # pyright: ignore[reportArgumentType]
        cycles=cycles,
        exact_fp32=True,
    )


def _sfpu_scalar(name: str, function: object, header: str, init: str, *, cycles: int = 64) -> Op:
    return Op(
        f"{name}_tile",
        (dst("value", "update"), scalar("scalar")),
        f"{name}_tile({{value}}, {{scalar}})",
        header,
        "sfpu",
        init=init,
        meaning=function,  # pyright: ignore[reportArgumentType]
        cycles=cycles,
        exact_fp32=True,
    )


def _sfpu_binary(name: str, function: object, header: str, *, cycles: int = 96) -> Op:
    return Op(
        f"{name}_tile",
        (dst("a", "read"), dst("b", "read"), dst("out")),
        f"{name}_tile({{a}}, {{b}}, {{out}})",
        header,
        "sfpu",
        init=f"{name}_tile_init()",
        meaning=function,  # pyright: ignore[reportArgumentType]
        cycles=cycles,
        exact_fp32=True,
    )


EXP_TILE = _sfpu("exp", _exp, "api/compute/eltwise_unary/exp.h", cycles=640)
RELU_TILE = _sfpu("relu", _relu, "api/compute/eltwise_unary/relu.h", cycles=64)
NEGATIVE_TILE = _sfpu("negative", _negative, "api/compute/eltwise_unary/negative.h", cycles=64)
ABS_TILE = _sfpu("abs", _abs, "api/compute/compute_kernel_api.h", cycles=64)

_SCALAR_HEADER = "api/compute/eltwise_unary/binop_with_scalar.h"
ADD_UNARY_TILE = _sfpu_scalar("add_unary", _add, _SCALAR_HEADER, "binop_with_scalar_tile_init()")
SUB_UNARY_TILE = _sfpu_scalar("sub_unary", _subtract, _SCALAR_HEADER, "binop_with_scalar_tile_init()")
MUL_UNARY_TILE = _sfpu_scalar("mul_unary", _multiply, _SCALAR_HEADER, "binop_with_scalar_tile_init()")
RSUB_UNARY_TILE = _sfpu_scalar("rsub_unary", _reverse_subtract, _SCALAR_HEADER, "binop_with_scalar_tile_init()")
UNARY_MAX_TILE = _sfpu_scalar("unary_max", _maximum, "api/compute/compute_kernel_api.h", "unary_max_tile_init()")
UNARY_MIN_TILE = _sfpu_scalar("unary_min", _minimum, "api/compute/compute_kernel_api.h", "unary_min_tile_init()")

_BINARY_HEADER = "api/compute/eltwise_binary_sfpu.h"
ADD_BINARY_TILE = _sfpu_binary("add_binary", _add, _BINARY_HEADER)
SUB_BINARY_TILE = _sfpu_binary("sub_binary", _subtract, _BINARY_HEADER)
MUL_BINARY_TILE = _sfpu_binary("mul_binary", _multiply, _BINARY_HEADER)
BINARY_MAX_TILE = _sfpu_binary("binary_max", _maximum, "api/compute/binary_max_min.h")
BINARY_MIN_TILE = _sfpu_binary("binary_min", _minimum, "api/compute/binary_max_min.h")

ELTWISE_OPS = (
    ADD_TILES,
    SUB_TILES,
    MUL_TILES,
    ADD_TILES_BCAST_ROWS,
    SUB_TILES_BCAST_ROWS,
    MUL_TILES_BCAST_ROWS,
    EXP_TILE,
    RELU_TILE,
    NEGATIVE_TILE,
    ABS_TILE,
    ADD_UNARY_TILE,
    SUB_UNARY_TILE,
    MUL_UNARY_TILE,
    RSUB_UNARY_TILE,
    UNARY_MAX_TILE,
    UNARY_MIN_TILE,
    ADD_BINARY_TILE,
    SUB_BINARY_TILE,
    MUL_BINARY_TILE,
    BINARY_MAX_TILE,
    BINARY_MIN_TILE,
)
