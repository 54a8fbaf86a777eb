"""Reductions of a tile along its rows or columns: of the SFPU in DST, and of the FPU from circular buffers.

Rows are reduced to column 0, columns to row 0. The sum of a tile's rows from circular buffers that are exact in TF32 is
also a product with a tile of ones, which defines all elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ttexplore.ops.costs import POOL_CYCLES, TURN_CYCLES
from ttexplore.ops.op import UNWRITTEN, Op, Tile, TileKind, circular_buffer, dst, integer, integers, quiet, tile
from ttexplore.ops.sfpu_cycles import sfpu_cycles

Axis = Literal["row", "col"]
_LEAVES: dict[Axis, Literal["column 0", "row 0"]] = {"row": "column 0", "col": "row 0"}
_POOLS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min}


def _reduced(pool: Callable[..., Any], axis: Axis, kind: TileKind) -> Callable[[Tile], Tile]:
    def meaning(values: Tile) -> Tile:
        result = np.full((32, 32), UNWRITTEN[kind], kind)
        if axis == "row":
            result[:, 0] = pool(values, axis=1)
        else:
            result[0] = pool(values, axis=0)
        return result

    return meaning


# The most tiles whose maxima are pooled in one call: the SDK asserts it.
MOST_POOLED = 127
# The SDK's format in DST by the suffix of the operation's name: "" for 32-bit floats.
_FORMATS = {"": "Float32", "_bf16": "Float16_b", "_int32": "Int32"}


def _sfpu(pool: str, axis: Axis, suffix: str) -> Op:
    of_integers, extreme = suffix == "_int32", pool != "sum"
    meaning = _reduced(_POOLS[pool], axis, "int32" if of_integers else "float32")
    template = f"PoolType::{pool.upper()}, DataFormat::{_FORMATS[suffix]}"
    # The row form of an extreme overwrites what its init has recorded for the column form, which must be initialised
    # again: their inits are not the same text.
    init = f"{template}, DST_ACCUM_MODE" if extreme and axis == "col" else template
    name, dst_bits = f"sfpu_reduce_{pool}_{axis}{suffix}", 16 if suffix == "_bf16" else 32
    return Op(
        name,
        (dst("value", "update"),),
        f"sfpu_reduce<{template}, ReduceDim::REDUCE_{axis.upper()}>({{value}})",
        "api/compute/compute_kernel_api.h",
        "sfpu",
        init=f"sfpu_reduce_init<{init}>()",
        meaning=integers(meaning) if of_integers else quiet(meaning),
        takes="int32" if of_integers else "float32",
        gives="int32" if of_integers else "float32",
        cycles=sfpu_cycles(name, dst_bits=dst_bits),
        dst_bits=dst_bits,
        leaves=_LEAVES[axis],
        note="sums wrap around" if of_integers and not extreme else "",
        # Else the init of an extreme of floats sets address modes that belong to the FPU's matmul.
        defines=("DISABLE_SFPLOADMACRO 1",) if extreme and not of_integers else (),
    )


SFPU_REDUCTIONS = tuple(_sfpu(pool, axis, suffix) for suffix in _FORMATS for pool in _POOLS for axis in _LEAVES)


def _scaled_sum(axis: Axis) -> Callable[[Tile, Tile], Tile]:
    summed = _reduced(np.sum, axis, "float32")
    return lambda values, scaler: summed(values * scaler[:1, :1])


def _largest(axis: Axis) -> Callable[[Tile, Tile], Tile]:
    largest = _reduced(np.max, axis, "float32")
    return lambda values, _scaler: largest(values)


def _largest_of_block(values: Tile, _scaler: Tile) -> Tile:
    """The largest elements of each row of all tiles: `values` has any number of tiles."""
    return _reduced(np.max, "row", "float32")(np.concatenate([*values.reshape(-1, 32, 32)], axis=1))


_SCALER_OF_SUM = "adds to what the slot holds; the scaler tile holds one factor everywhere, in the format of the values"
_SCALER_OF_MAXIMUM = "the scaler tile holds ones, in the format of the values; float32 is cut to TF32"


def _fpu(pool: str, axis: Axis, meaning: Callable[[Tile, Tile], Tile], cycles: int) -> Op:
    template = f"<PoolType::{pool.upper()}, ReduceDim::REDUCE_{axis.upper()}>"
    sums = pool == "sum"
    # The sum of rows is a product whose second operand is the scaler: it goes to SrcA (op-truth.md, trap 6).
    swapped = sums and axis == "row"
    return Op(
        f"reduce_{pool}_{axis}",
        (
            circular_buffer("in0"), circular_buffer("scaler"), tile("tile0", "in0"), tile("tile1", "scaler"),
            # A maximum of rows with what the slot holds is not that of the chip.
            dst("out", "update" if sums else "write"),
        ),
        f"reduce_tile{template}({{in0}}, {{scaler}}, {{tile0}}, {{tile1}}, {{out}})",
        "api/compute/reduce.h",
        "fpu",
        # The third operand is the packer's, which is set up to zero the other elements: as another operation may be
        # packed first, that is undone at once.
        init=f"reduce_init{template}({{in0}}, {{scaler}}, {{in0}})",
        init_operands=("in0", "scaler"),
        uninit="reduce_uninit({in0})",
        uninit_operands=("in0",),
        meaning=quiet(meaning),
        source_a="scaler" if swapped else "in0",
        source_b="in0" if swapped else "scaler",
        accumulates=True,
        cycles=cycles,
        leaves=_LEAVES[axis],
        note=_SCALER_OF_SUM if sums else _SCALER_OF_MAXIMUM,
    )  # fmt: skip


FPU_REDUCTIONS = (
    _fpu("sum", "row", _scaled_sum("row"), 32),
    _fpu("sum", "col", _scaled_sum("col"), 32),
    _fpu("max", "row", _largest("row"), TURN_CYCLES + POOL_CYCLES),
    _fpu("max", "col", _largest("col"), 32),
)

# The maxima of one row of tiles (SDK: reduce_custom.h). They are pooled in DST, and turned to a column once. The SDK
# has it for bfloat16; simulated chips are right for float32, too, but on Wormhole what comes after it is not.
REDUCE_BLOCK_MAX_ROW = Op(
    "reduce_block_max_row",
    (
        circular_buffer("in0"),
        circular_buffer("scaler"),
        tile("tile0", "in0"),
        tile("tile1", "scaler"),
        dst("out"),
        integer("tiles"),
    ),
    "reduce_block_max_row<{tiles}>({in0}, {scaler}, {tile0}, {out})",
    "api/compute/reduce_custom.h",
    "fpu",
    # As above, the operand is the packer's, and what it is set up for is undone at once.
    init="reduce_block_max_row_init<{tiles}>({in0})",
    init_operands=("in0", "scaler", "tiles"),
    uninit="reduce_block_max_row_uninit({in0})",
    uninit_operands=("in0",),
    meaning=quiet(_largest_of_block),
    source_a="in0",
    source_b="scaler",
    accumulates=True,
    cycles=TURN_CYCLES + POOL_CYCLES,
    leaves="column 0",
    reach=lambda values: {"tile0": values["tiles"]},
    # Both set the address mode 6.
    disturbs_sfpu=True,
    note=f"of `tiles` tiles from tile0 on, at most {MOST_POOLED}; {_SCALER_OF_MAXIMUM}, its first one",
)

REDUCE_OPS = (*SFPU_REDUCTIONS, *FPU_REDUCTIONS, REDUCE_BLOCK_MAX_ROW)
