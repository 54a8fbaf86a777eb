"""The table of device operations runs in the emulator as it is: C++ text, init and header of each give its meaning."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.backends.op_programs import FORMATS, INPUT_TILES, INTEGER, MATH, meaning, operations_program
from tests.backends.programs import FLOAT32, INT32, Compute, Tensor, tile_program
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import BackendError
from ttexplore.ops import OPS
from ttexplore.ops.sfpu import FAST_ERROR

TF32, EXACT, NARROW, INTEGERS = (
    next(form for form in FORMATS if form.name == name)
    for name in ("fp32 as TF32", "fp32, unpacked to DST", "bf16, 16-bit DST", "int32")
)
ONLY_NARROW = dataclasses.replace(NARROW, ops=tuple(op for op in NARROW.ops if op.dst_bits == 16))
# Functions that the chip computes with polynomials; they may be off in the last bits.
APPROXIMATED = frozenset(
    (
        "exp", "exp2", "log", "log2", "log_with_base", "sqrt", "rsqrt", "recip", "sigmoid", "tanh", "gelu", "silu",
        "erf", "sin", "cos", "power", "div_binary", "power_binary",
    )
)  # fmt: skip


@pytest.fixture(scope="module", params=["exact", "fast"])
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    """By operation: its input tiles and the emulator's output tiles."""
    generator = np.random.default_rng(7)
    found: dict[str, Any] = {}
    for form in (TF32, EXACT, ONLY_NARROW):
        # Multiples of 1/8 are exact in TF32 and bfloat16, so the sources do not cut them.
        a, b = (generator.integers(-24, 25, (32 * INPUT_TILES, 32)).astype(np.float32) / 8 for _ in range(2))
        b[b == 0] = 1
        (out,) = Emulator(arithmetic=request.param).run(operations_program(form), [a, b]).outputs
        tiles = out.reshape(len(form.ops), INPUT_TILES, 32, 32)
        found |= {op.name: (a, b, tile) for op, tile in zip(form.ops, tiles, strict=True)}
    return found


@pytest.mark.parametrize("name", [op.name for op in MATH if op not in INTEGER])
def test_an_operation_of_the_table_has_its_meaning(name: str, results: dict[str, Any]) -> None:
    op = OPS[f"tt.{name}"]
    a, b, out = results[name]
    tolerance = FAST_ERROR if name == "exp_fast_tile" else 1e-6 if name.removesuffix("_tile") in APPROXIMATED else 0
    left, right = a.reshape(-1, 32, 32), b.reshape(-1, 32, 32)
    for index in range(INPUT_TILES):
        expected = meaning(op, left[index], right[index])
        if name == "matmul_block":
            other = INPUT_TILES - 1 - index
            expected = expected + meaning(op, left[other], right[other])
        np.testing.assert_allclose(out[index], expected, rtol=tolerance, atol=tolerance)


def test_operations_on_integers_have_their_meaning() -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.integers(-(2**31), 2**31, (32, 32)).astype(np.int32) for _ in range(2))
    b[:16] = generator.integers(-4, 36, (16, 32))
    b[8:12], a[0, :4] = a[8:12], [0, -1, 2**31 - 1, -(2**31)]
    (out,) = Emulator().run(operations_program(INTEGERS), [a, b]).outputs
    for op, tile in zip(INTEGERS.ops, out.reshape(-1, 32, 32), strict=True):
        np.testing.assert_array_equal(tile, meaning(op, a, b), err_msg=op.name)


def cast(kind: str) -> str:
    op = OPS[f"tt.typecast_{kind}_tile"]
    return f"{op.init}; {op.cpp.format(value=0)};"


def integers(body: str, dtype: str, out_dtype: str, values: Any, *, wide: bool = True) -> Any:
    """What a program with `body` between copying and packing gives for one tile of `values`."""
    tile = np.zeros((32, 32), np.float32 if dtype == FLOAT32 else np.int32)
    tile.flat[: len(values)] = values
    program = tile_program(
        f"copy_init(0); copy_tile(0, t, 0); {body}", [Tensor("a", (32, 32), dtype=dtype)], out_dtype=out_dtype,
        unpack_to_dest=dtype == FLOAT32, compute=Compute(wide=wide),
    )  # fmt: skip
    (out,) = Emulator().run(program, [tile]).outputs
    return out.flat[: len(values)]


NUMBERS = [0, -1, 7, 2**24 + 1, 2**24 + 3, -(2**30) - 65, 2**31 - 1, -(2**31)]


def test_integers_are_copied_whole() -> None:
    np.testing.assert_array_equal(integers("", INT32, INT32, NUMBERS), NUMBERS)


def test_integers_become_the_nearest_numbers() -> None:
    np.testing.assert_array_equal(
        integers(cast("int32_to_fp32"), INT32, FLOAT32, NUMBERS), np.array(NUMBERS, np.float32)
    )


def test_numbers_become_integers_towards_zero() -> None:
    numbers = [0.0, -0.75, 1.999, -2.5, 2.0**30 + 128, 3e9, -3e9, np.inf, -np.inf, np.nan]
    wanted = [0, 0, 1, -2, 2**30 + 128, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2**31 - 1]
    np.testing.assert_array_equal(integers(cast("fp32_to_int32"), FLOAT32, INT32, numbers), wanted)


@pytest.mark.parametrize(
    ("body", "dtype", "out_dtype", "wide", "message"),
    [
        (
            "exp_tile_init(); exp_tile(0);",
            INT32,
            FLOAT32,
            True,
            "exp takes DST tile 0 for numbers, but it holds 32-bit in",
        ),
        (
            cast("int32_to_fp32"),
            FLOAT32,
            FLOAT32,
            True,
            "typecast takes DST tile 0 for 32-bit integers, but it holds num",
        ),
        ("", INT32, FLOAT32, True, r"pack_tile of DST tile 0, which holds 32-bit integers, to .* \(Float32\)"),
        ("", FLOAT32, INT32, True, r"pack_tile of DST tile 0, which holds numbers, to .* \(Int32\)"),
        ("add_init(0, 0); add_tiles(0, 0, t, t, 0);", INT32, FLOAT32, True, "holds integers, through the FPU"),
        ("", INT32, INT32, False, "which is unpacked to DST, into a 16-bit DST"),
    ],
)
def test_numbers_and_integers_are_not_mixed(body: str, dtype: str, out_dtype: str, wide: bool, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        integers(body, dtype, out_dtype, [1], wide=wide)
