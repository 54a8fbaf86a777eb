"""The table of device operations runs in the emulator as it is: C++ text, init and header of each give its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.backends.programs import FLOAT32, Tensor, tile_program
from ttexplore.backends.base import Program
from ttexplore.backends.emulator import Emulator
from ttexplore.ops import OPS, Op

MATH = sorted(name for name, op in OPS.items() if op.engine in ("fpu", "sfpu"))
# The operations of which the program around the tested one is made.
FRAME_HEADERS = (
    "api/compute/compute_kernel_hw_startup.h",
    "api/compute/pack.h",
    "api/compute/reg_api.h",
    "api/compute/tile_move_copy.h",
    "api/dataflow/dataflow_buffer.h",
)
SCALAR = 0.75
SCALAR_BITS = "0x3f400000u"


def cpp_operands(op: Op) -> dict[str, Any]:
    """Circular buffers 0, 1 in order, tile t of each, DST 0 (1 for a second value that is read), one tile per block."""
    values: dict[str, Any] = {}
    buffers = iter((0, 1))
    slots = iter((0, 1))
    for operand in op.operands:
        match operand.kind:
            case "cb":
                values[operand.name] = next(buffers)
            case "tile":
                values[operand.name] = "t"
            case "dst":
                values[operand.name] = 0 if operand.access == "write" else next(slots)
            case "float":
                values[operand.name] = SCALAR_BITS
            case "int":
                values[operand.name] = 1
            case "flag":
                values[operand.name] = 0
            case _:
                raise AssertionError(f"{op.name} has the operand {operand.name} of kind {operand.kind}")
    return values


def call(op: Op) -> tuple[str, int]:
    """The statements that run `op`, and how many tiles they read."""
    values = cpp_operands(op)
    text = "; ".join(template.format(**values) for template in (op.init, op.cpp, op.uninit) if template) + ";"
    buffers = sum(operand.kind == "cb" for operand in op.operands)
    if buffers:
        return text, buffers
    reads = sum(operand.kind == "dst" and operand.access != "write" for operand in op.operands)
    # A filled tile reads nothing; the program has an input all the same.
    copies = "".join(f"copy_tile({index}, t, {index}); " for index in range(reads))
    return f"copy_init(0); {copies}{text}" if reads else text, max(reads, 1)


def op_program(op: Op) -> Program:
    body, inputs = call(op)
    tensors = [Tensor(f"in{index}", (32, 32), dtype=FLOAT32) for index in range(inputs)]
    startup = "<SrcOrder::Reverse>(0, 1, 16)" if op.source_a == "in1" else ""
    # Only a buffer that is copied to DST alone keeps its float32 values; the FPU reads TF32.
    exact = op.engine == "sfpu" or op.name == "copy_tile"
    made = tile_program(body, tensors, out_dtype=FLOAT32, startup=startup, unpack_to_dest=exact)
    text = made.texts["compute"]
    kernel = text[text.index("void kernel_main()") :]
    headers = "".join(f'#include "{header}"\n' for header in sorted({*FRAME_HEADERS, op.header}))
    return replace(made, texts={**made.texts, "compute": f"#include <cstdint>\n{headers}{kernel}"})


def meaning(op: Op, tiles: list[Any]) -> Any:
    assert op.meaning is not None
    if op.name == "fill_tile":
        return op.meaning(SCALAR)
    if op.name == "matmul_block":
        return op.meaning(tiles[0][None], tiles[1][None], 0)[0]
    scalars = [SCALAR for operand in op.operands if operand.kind == "float"]
    return op.meaning(*tiles, *scalars)


@pytest.mark.parametrize("name", MATH)
def test_an_operation_of_the_table_has_its_meaning(name: str) -> None:
    op = OPS[name]
    made = op_program(op)
    generator = np.random.default_rng(7)
    # Multiples of 1/8 are exact in TF32, so the sources do not cut them.
    count = len(made.plan.layouts) - 1
    tiles = [generator.integers(-24, 25, (32, 32)).astype(np.float32) / 8 for _ in range(count)]
    (out,) = Emulator().run(made, tiles).outputs
    # exp is the chip's polynomial; all others are exact on these values.
    np.testing.assert_allclose(out, meaning(op, tiles), rtol=5e-7 if op.name == "exp_tile" else 0, atol=0)
