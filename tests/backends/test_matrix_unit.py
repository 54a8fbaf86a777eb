"""The emulator's exact arithmetic against a model in whole numbers, written the slow and plain way.

That model is held against the simulated chip by tests/device/test_numerics.py, through the emulator.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ttexplore as ttx
from tests.backends.programs import Compute, Tensor, matmul_program, tile_program
from ttexplore.backends.emulator import Emulator

Array = NDArray[Any]


def fields(value: float) -> tuple[int, int, int]:
    """Sign, biased exponent and 23 mantissa bits of a float32."""
    bits = int(np.float32(value).view(np.uint32))
    return bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def added_to_dst(terms: list[tuple[int, int]], dst: float, *, wide: bool) -> float:
    """`dst` plus terms (exponent, signed mantissa with 23 fraction bits), as the matrix unit writes it to DST."""
    sign, exponent, mantissa = fields(dst)
    held = (mantissa | 1 << 23) if exponent else 0
    common = max([exponent, *(e for e, _ in terms)])

    def aligned(amount: int, places: int, away: bool) -> int:
        # Positive terms round half up, negative ones half down in magnitude.
        steps = [places] if wide else [places, 13]
        for bits in steps:
            if bits >= 31:
                return 0
            exact = Fraction(amount, 1 << bits)
            amount = half_up(exact) if not away or bits == 0 else math.ceil(exact - Fraction(1, 2))
        return amount if wide else amount << 13

    total = aligned(held, common - exponent, False) * (-1 if sign else 1)
    for term_exponent, amount in terms:
        size = aligned(abs(amount), common - term_exponent, amount < 0)
        total += -size if amount < 0 else size
    if total == 0 or common <= 0:
        return 0.0
    kept_bits = 24 if wide else 8
    places = abs(total).bit_length() - kept_bits
    rounded = half_up(Fraction(abs(total)) / Fraction(2) ** places)
    value = math.ldexp(math.copysign(rounded, total), places + common - 127 - 23)
    return value if abs(value) >= 2.0**-126 else 0.0


def parts(value: float, phase: int, is_a: bool) -> tuple[int, int, int]:
    """Sign, exponent and the mantissa bits that a fidelity phase takes of an operand."""
    sign, exponent, mantissa = fields(value)
    full = mantissa >> 13 | 1 << 10
    if is_a:
        return sign, exponent, full >> 1 & 31 if phase & 1 else full >> 6
    return sign, exponent, (full & 15) << 3 if phase & 2 else full >> 4


def group_of_products(a: Array, b: Array, phase: int) -> tuple[int, int]:
    """Eight products as one term: each is rounded to the exponent of the largest."""
    weight = -127 - (5 if phase & 1 else 0) - (7 if phase & 2 else 0)
    products: list[tuple[int, int]] = []
    for one, other in zip(a, b, strict=True):
        a_sign, a_exponent, a_part = parts(float(one), phase, True)
        b_sign, b_exponent, b_part = parts(float(other), phase, False)
        if a_exponent and b_exponent:
            products.append((a_exponent + b_exponent + weight, a_part * b_part * (-1 if a_sign ^ b_sign else 1)))
    largest = max((exponent for exponent, _ in products), default=0)
    if largest <= 0:
        return 0, 0
    total = 0
    for exponent, product in products:
        size = half_up(Fraction(abs(product), 1 << min(largest - exponent, 40)))
        total += size if product > 0 else -size
    return largest, total << 13


def product_element(left: Array, right: Array, phases: int, *, wide: bool) -> float:
    """One element of a matrix product: a row of in0 (SrcB) and a column of in1 (SrcA), tile by tile."""
    dst = 0.0
    for tile in range(0, len(left), 32):
        for phase in range(phases):
            for half in range(tile, tile + 32, 16):
                groups = [
                    group_of_products(right[start : start + 8], left[start : start + 8], phase)
                    for start in (half, half + 8)
                ]
                dst = added_to_dst(groups, dst, wide=wide)
    return dst


def values(shape: tuple[int, ...], seed: int) -> Array:
    """Normal numbers over many powers of two, with zeros and exact opposites among them."""
    random = np.random.default_rng(seed)
    made = random.standard_normal(shape) * 2.0 ** random.integers(-12, 6, shape)
    made[random.random(shape) < 0.05] = 0.0
    return made.astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("fidelity", "phases"), [("LoFi", 1), ("HiFi2", 2), ("HiFi3", 3), ("HiFi4", 4)])
def test_matrix_products(fidelity: Any, phases: int, wide: bool) -> None:
    a, b = values((32, 64), 1), values((64, 32), 2)
    compute = Compute(wide, fidelity)
    program = matmul_program(1, 1, 2, out_dtype="float32" if wide else "bfloat16", compute=compute)
    (out,) = Emulator().run(program, [a, b]).outputs
    random = np.random.default_rng(3)
    for row, column in random.integers(0, 32, (40, 2)):
        expected = product_element(a[row], b[:, column], phases, wide=wide)
        assert float(out[row, column]) == np.float32(expected), (row, column)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_element_wise(operation: str, wide: bool) -> None:
    a, b = values((32, 32), 4), values((32, 32), 5)
    body = f"{operation}_init(0, 1); {operation}_tiles(0, 1, t, t, 0);"
    operands = [Tensor("a", (32, 32)), Tensor("b", (32, 32))]
    program = tile_program(body, operands, out_dtype="float32" if wide else "bfloat16", compute=Compute(wide))
    (out,) = Emulator().run(program, [a, b]).outputs
    for row, column in np.random.default_rng(6).integers(0, 32, (100, 2)):
        one, other = float(a[row, column]), float(b[row, column])
        dst = 0.0
        if operation == "mul":
            for phase in range(4):
                dst = added_to_dst([group_of_products(np.array([one]), np.array([other]), phase)], dst, wide=wide)
        else:
            other = -other if operation == "sub" else other
            large, small = (one, other) if abs(one) >= abs(other) else (other, one)
            exponents = fields(large)[1], fields(small)[1]
            mantissas = [(m >> 13 | 1 << 10) if e else 0 for _, e, m in (fields(large), fields(small))]
            aligned = half_up(Fraction(mantissas[1], 1 << min(exponents[0] - exponents[1], 40)))
            total = mantissas[0] + (aligned if (large > 0) == (small > 0) else -aligned)
            dst = added_to_dst([(exponents[0], (total << 13) * (-1 if large < 0 else 1))], 0.0, wide=wide)
        assert float(out[row, column]) == np.float32(dst), (one, operation, other)


def test_wormhole_takes_a_sum_of_minus_one_for_much_more() -> None:
    """After -2^-23 + 1, DST holds 1 without its last place; less 1, that is -1 in the last place of 1. The simulated
    chips give -16 as well."""
    found: dict[str, tuple[float, bool | None, str]] = {}
    for target in ("wormhole_n150", "blackhole_p150"):
        for accumulated in ("auto", "bfloat16"):
            ex = ttx.explore(
                "notebooks/kernels/gemm.py::matmul", M=32, N=32, K=64, block_M=32, block_N=32, block_K=32,
                target=target, options={"accumulate_dtype": accumulated},
            )  # fmt: skip
            a, b = (np.zeros_like(one) for one in ex.inputs())
            a[0, [0, 16, 32]] = -(2.0**-23), 1, -1
            b[:, 0] = 1
            run = ex.run([a, b])
            found[f"{target} {accumulated}"] = float(run.outputs[0][0, 0]), run.passed, run.message
    value, passed, message = found.pop("wormhole_n150 auto")
    assert (value, passed) == (-(2.0**27) * 2.0**-23, False)
    assert "the matrix unit of Wormhole took 1 sum of -1 in the last place for -2^27, as the chip does" in message
    assert all(abs(value) <= 2.0**-23 and "matrix unit" not in message for value, _, message in found.values())
