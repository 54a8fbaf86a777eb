"""Matrix products on the FPU (api/compute/matmul.h)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ttexplore.ops.op import Op, Tile, circular_buffer, dst, flag, integer, quiet, tile
from ttexplore.ops.wide import product


def _matmul_block(a: Tile, b: Tile, transpose: int) -> Tile:
    """Products of every tile of `a` (rt, 32, 32) with every tile of `b` (ct, 32, 32): (rt * ct, 32, 32)."""
    right = b.transpose(0, 2, 1) if transpose else b
    return product(a[:, None], right[None]).reshape(-1, 32, 32)


def _reach(values: Mapping[str, Any]) -> dict[str, int]:
    rows, columns = values["rt_dim"], values["ct_dim"]
    return {"tile0": (rows - 1) * values["kt_dim"] + 1, "tile1": columns, "out": rows * columns}


MATMUL_BLOCK = Op(
    "matmul_block",
    (
        circular_buffer("in0"),
        circular_buffer("in1"),
        tile("tile0", "in0"),
        tile("tile1", "in1"),
        dst("out", "update"),
        flag("transpose"),
        integer("ct_dim"),
        integer("rt_dim"),
        integer("kt_dim"),
    ),
    "matmul_block({in0}, {in1}, {tile0}, {tile1}, {out}, {transpose}, {ct_dim}, {rt_dim}, {kt_dim})",
    "api/compute/matmul.h",
    "fpu",
    init="matmul_block_init({in0}, {in1}, {transpose}, {ct_dim}, {rt_dim}, {kt_dim})",
    init_operands=("in0", "in1", "transpose", "ct_dim", "rt_dim", "kt_dim"),
    meaning=quiet(_matmul_block),
    # in1 goes to SrcA and in0 to SrcB: start-up requires SrcOrder::Reverse (op-truth.md, trap 5).
    source_a="in1",
    source_b="in0",
    accumulates=True,
    cycles=64,
    reach=_reach,
    note="out tile r * ct_dim + c += in0 tile tile0 + r * kt_dim times in1 tile tile1 + c; the init transposes",
)

MATMUL_OPS = (MATMUL_BLOCK,)
