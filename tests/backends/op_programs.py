"""Programs that run operations of the table one after another, one output tile for each operation and input tile."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.backends.programs import BFLOAT16, FLOAT32, INT32, Buffer, Compute, Kernel, Tensor, program, reader, writer
from ttexplore.backends.base import Program
from ttexplore.ops import OPS, Op
from ttexplore.plan import CoreWork

INPUT_TILES = 1
MOST_OPERATIONS = 22
OUT = 16
# A tile of ones, which the compute kernel makes: what reductions of the FPU multiply by.
ONES = 2
SCALAR, HIGH = 0.75, 1.5
SCALAR_BITS = {"low": "0xbf000000u", "high": "0x3fc00000u"}
SCALARS = {"low": -0.5, "high": HIGH}

# The operations of which the program around the tested ones is made.
FRAME_HEADERS = (
    "api/compute/compute_kernel_hw_startup.h",
    "api/compute/pack.h",
    "api/compute/reg_api.h",
    "api/compute/tile_move_copy.h",
    "api/dataflow/dataflow_buffer.h",
)

MATH = tuple(op for op in OPS.values() if op.engine in ("fpu", "sfpu"))
INTEGER = tuple(op for op in MATH if op.takes == op.gives == "int32")
FPU = tuple(op for op in MATH if op.engine == "fpu")
SFPU = tuple(op for op in MATH if op.engine == "sfpu" and op not in INTEGER)
COPY, ABS, PACK = OPS["tt.copy_tile"], OPS["tt.abs_tile"], OPS["tt.pack_tile"]
ROW, COLUMN, ELEMENT = (OPS[f"tt.unary_bcast_{kind}"] for kind in ("row", "col", "scalar"))
TRANSPOSE, WHERE = OPS["tt.transpose_tile"], OPS["tt.where_tile"]
TO_INT32 = OPS["tt.typecast_fp32_to_int32_tile"]
FROM_INT32 = OPS["tt.typecast_int32_to_fp32_tile"]
FILL, TO_BFLOAT16 = OPS["tt.fill_tile"], OPS["tt.typecast_fp32_to_bf16_tile"]
PRODUCTS = tuple(op for op in FPU if op.name.startswith(("mul_", "reduce_sum_")) or op.name == "matmul_block")

# Operations that are only defined for numbers above 0: they get the magnitude of their first operand.
POSITIVE = ("log_tile", "log2_tile", "log_with_base_tile", "sqrt_tile", "rsqrt_tile", "power_tile", "power_binary_tile")


def right_in(dst_bits: int, ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Those of the operations that are right with a DST of this width."""
    return tuple(op for op in ops if op.dst_bits in (None, dst_bits))


def without(ops: tuple[Op, ...], *left_out: Op) -> tuple[Op, ...]:
    return tuple(op for op in ops if op not in left_out)


@dataclass(frozen=True)
class Format:
    """A number format: what the tiles hold, how wide DST is, and which operations it is for."""

    name: str
    ops: tuple[Op, ...]
    dtype: str
    compute: Compute
    unpack_to_dest: bool = False


# unary_bcast_row is wrong on the chip from bfloat16 into a 32-bit DST; other operations of the
# FPU cannot read what is unpacked to DST. To the SFPU a 32-bit DST is the same whatever it was unpacked from.
FORMATS = (
    Format("bf16, 16-bit DST", right_in(16, (*FPU, *SFPU)), BFLOAT16, Compute(wide=False)),
    Format("bf16, 32-bit DST", (*without(FPU, ROW), FILL, TO_BFLOAT16), BFLOAT16, Compute()),
    Format("fp32 as TF32", without(FPU, ROW, COLUMN, ELEMENT), FLOAT32, Compute()),
    Format(
        "fp32, unpacked to DST",
        (COPY, TRANSPOSE, ROW, COLUMN, ELEMENT, *right_in(32, SFPU)),
        FLOAT32,
        Compute(),
        unpack_to_dest=True,
    ),
    Format("int32", (COPY, TRANSPOSE, ROW, COLUMN, ELEMENT, WHERE, *INTEGER), INT32, Compute()),
    Format("bf16, 32-bit DST, HiFi3", PRODUCTS, BFLOAT16, Compute(fidelity="HiFi3")),
    Format("bf16, 32-bit DST, HiFi2", PRODUCTS, BFLOAT16, Compute(fidelity="HiFi2")),
    Format("bf16, 32-bit DST, LoFi", PRODUCTS, BFLOAT16, Compute(fidelity="LoFi")),
)


def parts(form: Format) -> list[Format]:
    """The format with so few operations at a time that a kernel of them all fits a core's memory for programs."""
    return [
        dataclasses.replace(form, ops=form.ops[start : start + MOST_OPERATIONS])
        for start in range(0, len(form.ops), MOST_OPERATIONS)
    ]


def cpp_operands(op: Op) -> dict[str, Any]:
    """Circular buffers 0, 1 in order, tile t of each, DST 0 (1, 2 for more values read), one tile per block."""
    values: dict[str, Any] = {}
    buffers = iter((1,) if joins(op) else (0, 1))
    slots = iter((0, 1, 2))
    for operand in op.operands:
        match operand.kind:
            case "cb":
                values[operand.name] = ONES if operand.name == "scaler" else next(buffers)
            case "tile":
                values[operand.name] = 0 if operand.of == "scaler" else "t"
            case "dst":
                values[operand.name] = 0 if operand.access == "write" else next(slots)
            case "float":
                values[operand.name] = SCALAR_BITS.get(operand.name, "0x3f400000u")
            case "int":
                values[operand.name] = 1
            case "flag":
                values[operand.name] = 0
            case _:
                raise AssertionError(f"{op.name} has the operand {operand.name} of kind {operand.kind}")
    return values


def reads(op: Op) -> int:
    """How many tiles the operation reads from DST."""
    return sum(operand.kind == "dst" and operand.access in ("read", "update") for operand in op.operands)


def joins(op: Op) -> bool:
    """Whether the operation takes one tile from DST and one from a circular buffer."""
    return reads(op) == 1 and any(operand.kind == "tile" for operand in op.operands) and not op.accumulates


def scaled(op: Op) -> bool:
    """Whether the operation takes a tile of ones."""
    return any(operand.name == "scaler" for operand in op.operands)


def defined(op: Op, tiles: Any) -> Any:
    """The elements of result tiles (..., 32, 32) that the operation defines."""
    match op.leaves:
        case "":
            return tiles
        case "column 0":
            return tiles[..., :, 0]
        case "row 0":
            return tiles[..., 0, :]


def meaning(op: Op, a: Any, b: Any) -> Any:
    """The tile that `section` packs for tiles a and b."""
    assert op.meaning is not None
    if op.name == "matmul_block":
        return op.meaning(a[None], b[None], 0)[0]
    if joins(op):
        return op.meaning(b, a)
    if scaled(op):
        return op.meaning(a, np.ones_like(a))
    scalars = [SCALARS.get(operand.name, SCALAR) for operand in op.operands if operand.kind == "float"]
    scalars += [1 for operand in op.operands if operand.kind == "int"]
    buffers = sum(operand.kind == "cb" for operand in op.operands)
    first = abs(a) if op.name in POSITIVE else a
    if (op.takes, op.gives) == ("int32", "float32"):
        assert TO_INT32.meaning is not None
        first = TO_INT32.meaning(first)
    return op.meaning(*(first, b, a)[: buffers or reads(op)], *scalars)


def section(op: Op) -> str:
    """One DST section: `op` on tile t of the inputs, packed to the output buffer. A third value is that of in0 again;
    integers are made of the first, and made numbers again."""
    values = cpp_operands(op)
    buffers = sum(operand.kind == "cb" for operand in op.operands)
    lines = []
    if joins(op) or (not buffers and reads(op)):
        lines.append(COPY.init.format(source=0))
        lines += [COPY.cpp.format(source=index % 2, index="t", out=index) for index in range(reads(op))]
    if op.name in POSITIVE:
        lines += [ABS.init, ABS.cpp.format(value=0)]
    if (op.takes, op.gives) == ("int32", "float32"):
        lines += [TO_INT32.init, TO_INT32.cpp.format(value=0)]
    lines += [op.init.format(**values), op.cpp.format(**values)]
    if op.name == "matmul_block":
        # A second product in the same slot: sums go on.
        values |= {"tile0": f"{INPUT_TILES - 1} - t", "tile1": f"{INPUT_TILES - 1} - t"}
        lines.append(op.cpp.format(**values))
    if op.name.endswith("to_int32_tile"):
        lines += [FROM_INT32.init, FROM_INT32.cpp.format(value=0)]
    lines.append(op.uninit.format(**values))
    body = " ".join(f"{line};" for line in lines if line)
    return (
        f"    for (uint32_t t = 0; t < {INPUT_TILES}; ++t) {{\n"
        "        out_buffer.reserve_back(1);\n        tile_regs_acquire();\n"
        f"        {body}\n"
        "        tile_regs_commit();\n        tile_regs_wait();\n"
        f"        {PACK.cpp.format(source=0, out=OUT, index=0)};\n"
        "        tile_regs_release();\n        out_buffer.push_back(1);\n    }\n"
    )


def filling_ones() -> str:
    """What makes the tile of ones."""
    return (
        f"    DataflowBuffer ones({ONES});\n    ones.reserve_back(1);\n    tile_regs_acquire();\n"
        f"    {FILL.init}; {FILL.cpp.format(out=0, value='0x3f800000u')};\n"
        "    tile_regs_commit();\n    tile_regs_wait();\n"
        f"    {PACK.cpp.format(source=0, out=ONES, index=0)};\n"
        "    tile_regs_release();\n    ones.push_back(1);\n    ones.wait_front(1);\n"
    )


def operations_program(form: Format, target: str = "wormhole_n150") -> Program:
    """All operations of the format on `INPUT_TILES` tiles; output tiles by operation, then input tile."""
    needs_ones = any(map(scaled, form.ops))
    frame = (ABS, TO_INT32, *((FILL,) if needs_ones else ()))
    headers = {*FRAME_HEADERS, *(op.header for op in (*frame, *form.ops))}
    includes = "".join(f"#define {macro}\n" for macro in sorted({macro for op in form.ops for macro in op.defines}))
    includes += "".join(f'#include "{header}"\n' for header in sorted(headers))
    waits = "".join(f"    DataflowBuffer({buffer}).wait_front({INPUT_TILES});\n" for buffer in (0, 1))
    pops = "".join(f"    DataflowBuffer({buffer}).pop_front({INPUT_TILES});\n" for buffer in (0, 1))
    ones = filling_ones() if needs_ones else ""
    if needs_ones:
        pops += f"    DataflowBuffer({ONES}).pop_front(1);\n"
    text = (
        f"#include <cstdint>\n{includes}void kernel_main() {{\n    DataflowBuffer out_buffer({OUT});\n"
        f"    compute_kernel_hw_startup(0, 1, {OUT});\n{ones}{waits}{''.join(map(section, form.ops))}{pops}}}\n"
    )
    pages = len(form.ops) * INPUT_TILES
    shape = (32 * INPUT_TILES, 32)
    tensors = [Tensor("a", shape, dtype=form.dtype), Tensor("b", shape, dtype=form.dtype)]
    out = Tensor("out", (32 * pages, 32), "output", form.dtype)
    made = program(
        {
            "reader": reader({"a": INPUT_TILES, "b": INPUT_TILES}),
            "compute": Kernel(text),
            "writer": writer("out", pages, OUT),
        },
        [*tensors, out],
        [
            *(Buffer(index, INPUT_TILES, form.dtype, form.unpack_to_dest) for index in (0, 1)),
            Buffer(OUT, 2, form.dtype),
            *((Buffer(ONES, 1, form.dtype),) if needs_ones else ()),
        ],
        [CoreWork(0, 0, 1, {"first": 0})],
        form.compute,
    )
    return Program(made.texts, dataclasses.replace(made.plan, target=target))
