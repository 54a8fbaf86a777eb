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

from tests.backends.accuracy import PAGE
from tests.backends.op_programs import FORMATS, MATH, Format, defined, operations_program, parts
from tests.backends.programs import BFLOAT16, INT32
from tests.conftest import compare_golden
from ttexplore.backends.emulator import Emulator
from ttexplore.backends.ttnn import Ttnn
from ttexplore.backends.ttnn.backend import REFUSED_CALLS, Architecture
from ttexplore.ops import OPS

pytestmark = [pytest.mark.device, pytest.mark.slow]

Array = NDArray[Any]
TARGETS = {"wormhole_n150": "Wormhole", "blackhole_p150": "Blackhole"}
TABLE = Path(__file__).parents[2] / "docs" / "numerics.md"


def inputs(form: Format) -> list[Array]:
    """A tile of each operand: half of it ordinary values, of which some cancel, some tie when rounded, some are zero,
    the rest of wide exponents."""
    random = np.random.default_rng(5)
    if form.dtype == INT32:
        return integers(random)
    pair: list[Array] = [random.standard_normal((32, 32)).astype(np.float32) for _ in range(2)]
    a, b = pair
    b[4:8] = -a[4:8] * (1 + np.exp2(random.integers(-12, -4, (4, 32)))).astype(np.float32)
    a[8:12], b[8:12] = (random.integers(-20, 21, (4, 32)) / 4 for _ in range(2))
    for array in pair:
        array[12:16] *= 8
        array[12:16][random.random((4, 32)) < 0.3] = 0
        array[16:24] *= np.exp2(random.integers(-12, 13, (8, 32))).astype(np.float32)
        array[24:32] *= np.exp2(random.integers(-40, 41, (8, 32))).astype(np.float32)
    return [array.astype(ml_dtypes.bfloat16 if form.dtype == BFLOAT16 else np.float32) for array in pair]


def integers(random: np.random.Generator) -> list[Array]:
    """A tile of each operand: whatever 32 bits hold, small numbers, equal ones, the ends of the range."""
    a, b = (random.integers(-(2**31), 2**31, (32, 32)).astype(np.int32) for _ in range(2))
    a[:8], b[:16] = random.integers(-20, 21, (8, 32)), random.integers(-4, 36, (16, 32))
    b[16:20] = a[16:20] + random.integers(-1, 2, (4, 32))
    ends = np.array([0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1, 2**24 + 1, -(2**24) - 1], np.int32)
    a[20:22], b[20:22] = np.repeat(ends, 8).reshape(2, 32), np.tile(ends, 8).reshape(2, 32)
    return [a, b]


def modelled(form: Format, *chips: Architecture) -> Format:
    """The format with the operations that wolfpine models, of all chips or of `chips`."""
    names = ("wolfpine", *(f"wolfpine-{chip}" for chip in chips))
    refused = [call for name in names for call in REFUSED_CALLS.get(name, {})]
    return dataclasses.replace(form, ops=tuple(op for op in form.ops if not any(call in op.cpp for call in refused)))


def places(values: Array) -> NDArray[np.int64]:
    """Numbers so that neighbouring values of the dtype differ by 1 and both zeros are equal."""
    if values.dtype == np.int32:
        return values.astype(np.int64)
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
    architecture: Architecture = "wormhole" if target.startswith("wormhole") else "blackhole"
    for form in (part for whole in FORMATS for part in parts(modelled(whole, architecture))):
        made, arrays = operations_program(form, target), inputs(form)
        (chip,) = Ttnn("wolfpine", environment).run(made, arrays).outputs
        (emulated,) = Emulator().run(made, arrays).outputs
        # Infinite powers and quotients are among the results, but few.
        assert np.isfinite(chip.astype(np.float32)).mean() > 0.9, (
            f"{form.name}: the inputs leave the range of the format"
        )
        # One NaN is as good as another.
        neither = np.isnan(chip.astype(np.float32)) & np.isnan(emulated.astype(np.float32))
        difference = np.where(neither, 0, np.abs(places(chip) - places(emulated))).reshape(len(form.ops), 32, 32)
        for op, ulps in zip(form.ops, (defined(*one) for one in zip(form.ops, difference, strict=True)), strict=True):
            found[form.name, op.name] = Agreement(float(np.mean(ulps == 0)), int(ulps.max()))
    return found


HEAD = """# Numbers of the emulator and of the simulated chips

Generated by `tests/device/test_numerics.py` (`make test-device`); after a change, run it with `--update-golden`. For
each operation of the table in `ttexplore/ops`, with its own C++ text, it lists the share of elements that are equal on
the emulator (`arithmetic="exact"`) and on the simulated chip (wolfpine), and the largest difference in units in the
last place ([ULP](glossary.md#ulp)) of the output format. The bound is the operation's `emulator_ulp`. Inputs are
ordinary values, cancelling sums, ties, zeros, and exponents from 2^-40 to 2^40; logarithms, roots and powers get the
magnitudes of these; integer operations get the whole range.

An operation has no row for a format in which the chip computes it wrongly, or which wolfpine does not model; "not
modelled" means that wolfpine does not model it for this chip. Of a reduction, only the row or column that it
defines is compared.

[TF32](glossary.md#tf32): float32 tiles in the FPU's source registers, which hold 10 bits of mantissa.

| Operation | Format | Wormhole: equal | max ULP | Blackhole: equal | max ULP | Bound |
|---|---|---|---|---|---|---|
"""


def table(by_target: Sequence[Agreements]) -> str:
    """The page docs/numerics.md: one line for each operation and format."""
    rows: list[str] = []
    for op in MATH:
        for form in FORMATS:
            if op in modelled(form).ops:
                cells = " | ".join(str(found.get((form.name, op.name), "not modelled | ")) for found in by_target)
                rows.append(f"| `{op.name}` | {form.name} | {cells} | {op.emulator_ulp} |\n")
    return HEAD + "".join(rows) + PAGE


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
