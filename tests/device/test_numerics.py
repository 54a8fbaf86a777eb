"""The emulator's numbers against the simulated chips', operation by operation; makes docs/numerics.md.

Each program runs all operations of a number format one after another, one output tile for each operation and input
tile, with the texts of the operation table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.backends.programs import BFLOAT16, FLOAT32, Buffer, Compute, Kernel, Tensor, program, reader, writer
from tests.backends.test_emulator_ops import FRAME_HEADERS, cpp_operands
from tests.conftest import compare_golden
from ttexplore.backends.base import Program
from ttexplore.backends.emulator import Emulator
from ttexplore.backends.ttnn import Ttnn
from ttexplore.ops import OPS, Op
from ttexplore.plan import CoreWork

pytestmark = [pytest.mark.device, pytest.mark.slow]

Array = NDArray[Any]
TARGETS = {"wormhole_n150": "Wormhole", "blackhole_p150": "Blackhole"}
TABLE = Path(__file__).parents[2] / "docs" / "numerics.md"
INPUT_TILES = 2
OUT = 16

MATH = tuple(op for op in OPS.values() if op.engine in ("fpu", "sfpu"))
FPU = tuple(op for op in MATH if op.engine == "fpu")
SFPU = tuple(op for op in MATH if op.engine == "sfpu")
COPY, ROW, PACK = OPS["tt.copy_tile"], OPS["tt.unary_bcast_row"], OPS["tt.pack_tile"]
PRODUCTS = tuple(OPS[f"tt.{name}"] for name in ("mul_tiles", "mul_tiles_bcast_rows", "matmul_block"))


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


# unary_bcast_row is wrong on the chip from bfloat16 into a 32-bit DST (op-truth.md, trap 11); the FPU cannot read what
# is unpacked to DST.
FORMATS = (
    Format("bf16, 16-bit DST", MATH, BFLOAT16, Compute(wide=False)),
    Format("bf16, 32-bit DST", without(MATH, ROW), BFLOAT16, Compute()),
    Format("fp32 as TF32", without(FPU, ROW), FLOAT32, Compute()),
    Format("fp32, unpacked to DST", (COPY, ROW, *SFPU), FLOAT32, Compute(), unpack_to_dest=True),
    Format("bf16, 32-bit DST, HiFi3", PRODUCTS, BFLOAT16, Compute(fidelity="HiFi3")),
    Format("bf16, 32-bit DST, HiFi2", PRODUCTS, BFLOAT16, Compute(fidelity="HiFi2")),
    Format("bf16, 32-bit DST, LoFi", PRODUCTS, BFLOAT16, Compute(fidelity="LoFi")),
)


def section(op: Op) -> str:
    """One DST section: `op` on tile t of the inputs, packed to the output buffer."""
    values = cpp_operands(op)
    reads = sum(operand.kind == "dst" and operand.access in ("read", "update") for operand in op.operands)
    buffers = sum(operand.kind == "cb" for operand in op.operands)
    lines = []
    if not buffers and reads:
        lines.append(COPY.init.format(source=0))
        lines += [COPY.cpp.format(source=index, index="t", out=index) for index in range(reads)]
    lines += [op.init.format(**values), op.cpp.format(**values)]
    if op.name == "matmul_block":
        # A second product in the same slot: sums go on.
        values |= {"tile0": f"{INPUT_TILES - 1} - t", "tile1": f"{INPUT_TILES - 1} - t"}
        lines.append(op.cpp.format(**values))
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


def numerics_program(form: Format, target: str) -> Program:
    """All operations of the format on `INPUT_TILES` tiles; output tiles by operation, then input tile."""
    headers = "".join(f'#include "{header}"\n' for header in sorted({*FRAME_HEADERS, *(op.header for op in form.ops)}))
    waits = "".join(f"    DataflowBuffer({buffer}).wait_front({INPUT_TILES});\n" for buffer in (0, 1))
    pops = "".join(f"    DataflowBuffer({buffer}).pop_front({INPUT_TILES});\n" for buffer in (0, 1))
    text = (
        f"#include <cstdint>\n{headers}void kernel_main() {{\n    DataflowBuffer out_buffer({OUT});\n"
        f"    compute_kernel_hw_startup(0, 1, {OUT});\n{waits}{''.join(map(section, form.ops))}{pops}}}\n"
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
        ],
        [CoreWork(0, 0, 1, {"first": 0})],
        form.compute,
    )
    return Program(made.texts, dataclasses.replace(made.plan, target=target))


def inputs(form: Format) -> list[Array]:
    """Two tiles of each operand: one of ordinary values, of which some cancel, some tie when rounded and some are zero;
    one of wide exponents."""
    random = np.random.default_rng(5)
    pair: list[Array] = [random.standard_normal((32 * INPUT_TILES, 32)).astype(np.float32) for _ in range(2)]
    a, b = pair
    b[12:20] = -a[12:20] * (1 + np.exp2(random.integers(-12, -4, (8, 32)))).astype(np.float32)
    a[20:26], b[20:26] = (random.integers(-20, 21, (6, 32)) / 4 for _ in range(2))
    for array in pair:
        array[26:32][random.random((6, 32)) < 0.3] = 0
        array[32:48] *= np.exp2(random.integers(-12, 13, (16, 32))).astype(np.float32)
        array[48:64] *= np.exp2(random.integers(-40, 41, (16, 32))).astype(np.float32)
    return [array.astype(ml_dtypes.bfloat16 if form.dtype == BFLOAT16 else np.float32) for array in pair]


def places(values: Array) -> NDArray[np.int64]:
    """Numbers so that neighbouring values of the dtype differ by 1 and both zeros are equal."""
    bits = np.ascontiguousarray(values).view(np.uint16 if values.dtype.itemsize == 2 else np.uint32).astype(np.int64)
    sign = 1 << (8 * values.dtype.itemsize - 1)
    return np.where(bits & sign, -(bits & (sign - 1)), bits)


@dataclass(frozen=True)
class Agreement:
    """Of one operation in one format on one chip: the share of equal elements, and the largest difference in units in
    the last place."""

    equal: float
    ulp: int

    def __str__(self) -> str:
        return f"{self.equal:.2%} | {self.ulp}"


# By format name and operation name.
Agreements = dict[tuple[str, str], Agreement]


def agreements_on(target: str, environment: Path) -> Agreements:
    """The emulator's results against the simulated chip's."""
    found: Agreements = {}
    for form in FORMATS:
        made, arrays = numerics_program(form, target), inputs(form)
        (chip,) = Ttnn("wolfpine", environment).run(made, arrays).outputs
        (emulated,) = Emulator().run(made, arrays).outputs
        assert np.isfinite(chip.astype(np.float32)).mean() > 0.9, (
            f"{form.name}: the inputs leave the range of the format"
        )
        difference = np.abs(places(chip) - places(emulated)).reshape(len(form.ops), -1)
        for op, ulps in zip(form.ops, difference, strict=True):
            found[form.name, op.name] = Agreement(float(np.mean(ulps == 0)), int(ulps.max()))
    return found


HEAD = """# The emulator's numbers and the simulated chips'

Made by `tests/device/test_numerics.py` (`make test-device`); after a change run it with `--update-golden`. For each
operation of the table in `ttexplore/ops`, with its own text: the share of the elements that are equal on the emulator
(`arithmetic="exact"`) and on the simulated chip (wolfpine), and the largest difference in units in the last place of
the output format. The bound is the operation's `emulator_ulp`. Inputs are ordinary values, cancelling sums, ties,
zeros, and exponents from 2^-40 to 2^40.

TF32: float32 tiles as the FPU's source registers hold them, with 10 mantissa bits.

| Operation | Format | Wormhole: equal | max ULP | Blackhole: equal | max ULP | Bound |
|---|---|---|---|---|---|---|
"""


def table(by_target: Sequence[Agreements]) -> str:
    """The page docs/numerics.md: one line for each operation and format."""
    rows: list[str] = []
    for op in MATH:
        for form in FORMATS:
            if op in form.ops:
                cells = " | ".join(str(found[form.name, op.name]) for found in by_target)
                rows.append(f"| `{op.name}` | {form.name} | {cells} | {op.emulator_ulp} |\n")
    return HEAD + "".join(rows)


@pytest.mark.xdist_group("wormhole_n150")
def test_the_emulator_has_the_chips_numbers(environment: Path, request: pytest.FixtureRequest) -> None:
    with ThreadPoolExecutor(len(TARGETS)) as pool:
        by_target = list(pool.map(agreements_on, TARGETS, [environment] * len(TARGETS)))
    broken = [
        f"{op} in {form} on {chip}: {agreement.ulp} ULP, stated are {OPS['tt.' + op].emulator_ulp}"
        for chip, found in zip(TARGETS.values(), by_target, strict=True)
        for (form, op), agreement in found.items()
        if agreement.ulp > OPS["tt." + op].emulator_ulp
    ]
    assert not broken, "\n".join(broken)
    compare_golden(TABLE, table(by_target), update=bool(request.config.getoption("--update-golden")))
