"""The emulator computes what the chip's formats say: against NumPy formulas, exactly where these are exact."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.backends.programs import (
    BFLOAT16,
    FLOAT32,
    Compute,
    Tensor,
    matmul_program,
    tile_program,
)
from ttexplore.backends.base import Program
from ttexplore.backends.emulator import Emulator

BF16 = ml_dtypes.bfloat16
Array = NDArray[Any]


COPY = "copy_init(0); copy_tile(0, t, 0); "


def random_bf16(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


def random_f32(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def round_ties_away(values: Array) -> Array:
    """float32 to bfloat16 as the packer and the FPU round."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) + np.uint32(0x8000)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def truncated(values: Array, mantissa_bits: int) -> Array:
    mask = np.uint32((0xFFFFFFFF << (23 - mantissa_bits)) & 0xFFFFFFFF)
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & mask).view(np.float32)


def run(program: Any, *inputs: Array) -> Array:
    # The expected numbers below are those of plain float32 sums; test_matrix_unit.py has the exact ones.
    return Emulator(arithmetic="fast").run(program, inputs).outputs[0].astype(np.float32)


def wide(array: Array) -> Array:
    return array.astype(np.float32)


def test_matmul_block_with_32_bit_dst_is_the_float32_product() -> None:
    a, b = random_bf16((64, 96)), random_bf16((96, 64), 1)
    out = run(matmul_program(2, 2, 3), a, b)
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(out - want).max() < 1e-5
    assert out.dtype == np.float32


def test_matmul_of_integers_is_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(BF16) for shape in ((32, 128), (128, 128)))
    np.testing.assert_array_equal(run(matmul_program(1, 4, 4), a, b), wide(a) @ wide(b))


def test_matmul_init_with_transpose_takes_each_tile_of_in1_transposed() -> None:
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    out = run(matmul_program(1, 1, 1, transpose=True), a, b)
    assert np.abs(out - wide(a) @ wide(b).T).max() < 1e-5


@pytest.mark.parametrize(("fidelity", "a_bits", "b_bits"), [("LoFi", 6, 4), ("HiFi2", 6, 7)])
def test_low_fidelity_truncates_the_operands(fidelity: Any, a_bits: int, b_bits: int) -> None:
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    out = run(matmul_program(1, 1, 1, compute=Compute(fidelity=fidelity)), a, b)
    want = truncated(wide(a), a_bits) @ truncated(wide(b), b_bits)
    assert np.abs(out - want).max() < 1e-5
    assert np.abs(out - wide(a) @ wide(b)).max() > 1e-3


def test_hifi3_drops_only_the_product_of_the_low_parts() -> None:
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    out = run(matmul_program(1, 1, 1, compute=Compute(fidelity="HiFi3")), a, b)
    low = (wide(a) - truncated(wide(a), 6)) @ (wide(b) - truncated(wide(b), 4))
    assert np.abs(out - (wide(a) @ wide(b) - low)).max() < 1e-5


def test_16_bit_dst_rounds_after_every_half_tile_of_every_phase() -> None:
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    out = run(matmul_program(1, 1, 1, out_dtype=BFLOAT16, compute=Compute(wide=False)), a, b)
    a_high, b_high = truncated(wide(a), 6), truncated(wide(b), 4)
    a_low, b_low = wide(a) - a_high, wide(b) - b_high
    want = np.zeros((32, 32), np.float32)
    for left, right in ((a_high, b_high), (a_high, b_low), (a_low, b_high), (a_low, b_low)):
        for k in (0, 16):
            want = round_ties_away(want + left[:, k : k + 16] @ right[k : k + 16])
    # The order of 16 float32 additions may move a value over a rounding boundary.
    assert np.mean(out != want) < 0.02
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert 2e-3 < np.linalg.norm(out - exact) / np.linalg.norm(exact) < 6e-3


def test_float32_operands_of_matmul_are_cut_to_tf32() -> None:
    a, b = random_f32((32, 32)), random_f32((32, 32), 1)
    out = run(matmul_program(1, 1, 1, dtype=FLOAT32), a, b)
    want = truncated(a, 10).astype(np.float64) @ truncated(b, 9).astype(np.float64)
    assert np.abs(out - want).max() < 1e-5
    assert np.abs(out - a.astype(np.float64) @ b.astype(np.float64)).max() > 1e-4


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("name", BINARY)
def test_fpu_element_wise_rounds_once_with_32_bit_dst(name: str) -> None:
    tensors = [Tensor("a", (64, 96)), Tensor("b", (64, 96))]
    a, b = random_bf16((64, 96)), random_bf16((64, 96), 1)
    out = run(tile_program(f"{name}_init(0, 1); {name}_tiles(0, 1, t, t, 0);", tensors), a, b)
    np.testing.assert_array_equal(out, round_ties_away(BINARY[name](wide(a), wide(b))))


def test_mul_tiles_adds_to_what_dst_holds() -> None:
    tensors = [Tensor("a", (32, 32)), Tensor("b", (32, 32))]
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    body = "add_init(0, 1); add_tiles(0, 1, t, t, 0); mul_init(0, 1); mul_tiles(0, 1, t, t, 0);"
    out = run(tile_program(body, tensors, out_dtype=FLOAT32), a, b)
    np.testing.assert_allclose(out, wide(a) + wide(b) + wide(a) * wide(b), rtol=1e-6, atol=1e-6)


def test_add_tiles_overwrites_unless_its_init_accumulates() -> None:
    tensors = [Tensor("a", (32, 32)), Tensor("b", (32, 32))]
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    twice = "add_tiles(0, 1, t, t, 0); add_tiles(0, 1, t, t, 0);"
    out = run(tile_program(f"add_init(0, 1); {twice}", tensors, out_dtype=FLOAT32), a, b)
    np.testing.assert_array_equal(out, wide(a) + wide(b))
    out = run(tile_program(f"add_init(0, 1, true); {twice}", tensors, out_dtype=FLOAT32), a, b)
    np.testing.assert_array_equal(out, 2 * (wide(a) + wide(b)))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dimension", ["rows", "cols", "scalar"])
def test_broadcast_operand(name: str, dimension: str) -> None:
    tensors = [Tensor("a", (32, 32)), Tensor("b", (32, 32))]
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    body = f"{name}_bcast_{dimension}_init(0, 1); {name}_tiles_bcast_{dimension}(0, 1, t, t, 0);"
    spread = {"rows": b[:1], "cols": b[:, :1], "scalar": b[:1, :1]}[dimension]
    out = run(tile_program(body, tensors), a, b)
    np.testing.assert_array_equal(out, round_ties_away(BINARY[name](wide(a), wide(spread))))


@pytest.mark.parametrize(("dimension", "part"), [("ROW", np.s_[:1]), ("COL", np.s_[:, :1]), ("SCALAR", np.s_[:1, :1])])
def test_unary_broadcast(dimension: str, part: Any) -> None:
    a = random_bf16((32, 32))
    dim = f"BroadcastType::{dimension}"
    body = f"unary_bcast_init<{dim}>(0); unary_bcast<{dim}>(0, t, 0); unary_bcast_uninit<{dim}>(0);"
    out = run(tile_program(body, [Tensor("a", (32, 32))], compute=Compute(wide=False)), a)
    np.testing.assert_array_equal(out, np.broadcast_to(wide(a)[part], (32, 32)))


def test_transpose_tile() -> None:
    a = random_bf16((32, 32))
    out = run(tile_program("transpose_init(0); transpose_tile(0, t, 0);", [Tensor("a", (32, 32))]), a)
    np.testing.assert_array_equal(out, wide(a).T)


@pytest.mark.parametrize(("reuse", "sign"), [("DEST_TO_SRCA", 1), ("DEST_TO_SRCB", -1)])
def test_reuse_dest_takes_dst_as_the_named_operand(reuse: str, sign: int) -> None:
    tensors = [Tensor("a", (32, 32)), Tensor("b", (32, 32))]
    a, b = random_bf16((32, 32)), random_bf16((32, 32), 1)
    kind = f"EltwiseBinaryReuseDestType::{reuse}"
    body = f"copy_init(0); copy_tile(0, t, 0); sub_reuse_dest_init<{kind}>(1); sub_reuse_dest_tiles<{kind}>(1, t, 0);"
    out = run(tile_program(body, tensors), a, b)
    np.testing.assert_array_equal(out, round_ties_away(sign * (wide(a) - wide(b))))


def test_copy_of_a_float32_buffer_cuts_to_tf32_and_unpack_to_dest_does_not() -> None:
    a = random_f32((32, 64))
    tensors = [Tensor("a", (32, 64), dtype=FLOAT32)]
    body = "copy_init(0); copy_tile(0, t, 0);"
    np.testing.assert_array_equal(run(tile_program(body, tensors, out_dtype=FLOAT32), a), truncated(a, 10))
    exact = tile_program(body, tensors, out_dtype=FLOAT32, unpack_to_dest=True)
    np.testing.assert_array_equal(run(exact, a), a)
    narrow = tile_program(body, tensors, compute=Compute(wide=False))
    np.testing.assert_array_equal(run(narrow, a), truncated(a, 7))


def test_pack_rounds_ties_away_and_flushes_denormals() -> None:
    a = np.zeros((32, 32), np.float32)
    a[0, :6] = [1 + 2**-8, -(1 + 2**-8), 1 + 3 * 2**-8, 1e-39, -0.0, np.inf]
    body = "copy_init(0); copy_tile(0, t, 0);"
    out = run(tile_program(body, [Tensor("a", (32, 32), dtype=FLOAT32)], unpack_to_dest=True), a)
    np.testing.assert_array_equal(out[0, :6], [1 + 2**-7, -(1 + 2**-7), 1 + 2**-6, 0, 0, np.inf])
    assert not np.signbit(out[0, 4])


@pytest.mark.parametrize(
    ("wide_dst", "want"),
    # A 32-bit DST is rounded on the way out, and NaN becomes infinity; a 16-bit DST is stored as it is.
    [(True, [np.inf, -np.inf, 0.0, np.inf]), (False, [np.nan, np.nan, -(2.0**-130), np.inf])],
)
def test_pack_of_nan_and_denormals(wide_dst: bool, want: list[float]) -> None:
    a = np.zeros((32, 32), BF16)
    a[0, :4] = [np.nan, -np.nan, -(2.0**-130), np.inf]
    program = tile_program("copy_init(0); copy_tile(0, t, 0);", [Tensor("a", (32, 32))], compute=Compute(wide=wide_dst))
    np.testing.assert_array_equal(run(program, a)[0, :4], want)


def test_the_sfpu_orders_nan_above_all_and_minus_nan_below_all() -> None:
    a = np.full((32, 32), 2, np.float32)
    a[0, :4] = [np.nan, -np.nan, -0.0, 1e-40]
    tensors = [Tensor("a", (32, 32), dtype=FLOAT32)]

    def unary(calls: str) -> Array:
        body = f"copy_init(0); copy_tile(0, t, 0); {calls}"
        return run(tile_program(body, tensors, out_dtype=FLOAT32, unpack_to_dest=True), a)[0, :5]

    denormal = np.float32(1e-40)
    np.testing.assert_array_equal(unary("relu_tile_init(); relu_tile(0);"), [np.nan, 0, 0, denormal, 2])
    maximum, minimum = (
        unary(f"unary_{name}_tile_init(); unary_{name}_tile(0, 0x3f800000u);") for name in ("max", "min")
    )
    np.testing.assert_array_equal(maximum, [np.nan, 1, 1, 1, 2])
    np.testing.assert_array_equal(minimum, [1, np.nan, 0, denormal, 1])


# name: (calls on DST 0, NumPy meaning, range of inputs)
UNARY: dict[str, tuple[str, Any, tuple[float, float]]] = {
    "exp": ("exp_tile_init(); exp_tile(0);", np.exp, (-8, 8)),
    "exp2": ("exp2_tile_init(); exp2_tile(0);", np.exp2, (-8, 8)),
    "expm1": ("expm1_tile_init(); expm1_tile(0);", np.expm1, (-8, 8)),
    "log": ("log_tile_init(); log_tile(0);", np.log, (0.01, 20)),
    "sqrt": ("sqrt_tile_init(); sqrt_tile(0);", np.sqrt, (0, 50)),
    "rsqrt": ("rsqrt_tile_init(); rsqrt_tile(0);", lambda x: 1 / np.sqrt(x), (0.01, 50)),
    "recip": ("recip_tile_init(); recip_tile(0);", lambda x: 1 / x, (0.1, 4)),
    "relu": ("relu_tile_init(); relu_tile(0);", lambda x: np.maximum(x, 0), (-4, 4)),
    "relu_max": ("relu_max_tile_init(); relu_max_tile(0, 0x3fc00000u);", lambda x: np.clip(x, 0, 1.5), (-4, 4)),
    "relu_min": ("relu_min_tile_init(); relu_min_tile(0, 0x3fc00000u);", lambda x: np.maximum(x, 1.5), (-4, 4)),
    "leaky_relu": (
        "leaky_relu_tile_init(); leaky_relu_tile(0, 0x3f000000u);",
        lambda x: np.where(x > 0, x, 0.5 * x),
        (-4, 4),
    ),
    "abs": ("abs_tile_init(); abs_tile(0);", np.abs, (-4, 4)),
    "negative": ("negative_tile_init(); negative_tile(0);", np.negative, (-4, 4)),
    "sign": ("sign_tile_init(); sign_tile(0);", np.sign, (-4, 4)),
    "square": ("square_tile_init(); square_tile(0);", np.square, (-4, 4)),
    "sigmoid": ("sigmoid_tile_init(); sigmoid_tile(0);", lambda x: 1 / (1 + np.exp(-x)), (-8, 8)),
    "tanh": ("tanh_tile_init(); tanh_tile(0);", np.tanh, (-4, 4)),
    "silu": ("silu_tile_init(); silu_tile(0);", lambda x: x / (1 + np.exp(-x)), (-8, 8)),
    "gelu": (
        "gelu_tile_init<false>(); gelu_tile<false>(0);",
        lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))),
        (-5, 5),
    ),
    "clamp": ("clamp_tile_init(); clamp_tile(0, 0xbf000000u, 0x3f400000u);", lambda x: np.clip(x, -0.5, 0.75), (-4, 4)),
    "fill": ("fill_tile_init(); fill_tile(0, 1.25f);", lambda x: np.full_like(x, 1.25), (-4, 4)),
    "fill_bitcast": ("fill_tile_init(); fill_tile_bitcast(0, 0x3fa00000u);", lambda x: np.full_like(x, 1.25), (-4, 4)),
    "add_unary": ("binop_with_scalar_tile_init(); add_unary_tile(0, 0x3fc00000u);", lambda x: x + 1.5, (-4, 4)),
    "sub_unary": ("binop_with_scalar_tile_init(); sub_unary_tile(0, 0x3fc00000u);", lambda x: x - 1.5, (-4, 4)),
    "mul_unary": ("binop_with_scalar_tile_init(); mul_unary_tile(0, 0x3fc00000u);", lambda x: x * 1.5, (-4, 4)),
    "div_unary multiplies": (
        "binop_with_scalar_tile_init(); div_unary_tile(0, 0x3fc00000u);",
        lambda x: x * 1.5,
        (-4, 4),
    ),
    "rsub_unary": ("binop_with_scalar_tile_init(); rsub_unary_tile(0, 0x3fc00000u);", lambda x: 1.5 - x, (-4, 4)),
    "unary_max": ("unary_max_tile_init(); unary_max_tile(0, 0x3f000000u);", lambda x: np.maximum(x, 0.5), (-4, 4)),
    "unary_min": ("unary_min_tile_init(); unary_min_tile(0, 0x3f000000u);", lambda x: np.minimum(x, 0.5), (-4, 4)),
    "typecast": (
        "typecast_tile_init<(uint32_t)DataFormat::Float16_b, (uint32_t)DataFormat::Float32>(); "
        "typecast_tile<(uint32_t)DataFormat::Float16_b, (uint32_t)DataFormat::Float32>(0);",
        lambda x: x,
        (-4, 4),
    ),
}


@pytest.mark.parametrize("name", UNARY)
def test_sfpu_unary_is_the_function_in_float32(name: str) -> None:
    calls, function, (low, high) = UNARY[name]
    a = np.random.default_rng(0).uniform(low, high, (32, 32)).astype(np.float32)
    program = tile_program(
        f"copy_init(0); copy_tile(0, t, 0); {calls}",
        [Tensor("a", (32, 32), dtype=FLOAT32)],
        out_dtype=FLOAT32,
        unpack_to_dest=True,
    )
    # The chip's gelu is a quotient of polynomials that cancel for negative numbers.
    atol = 1e-6 if name == "gelu" else 3e-7
    np.testing.assert_allclose(run(program, a), function(a.astype(np.float64)), rtol=5e-7, atol=atol)


def test_exp_covers_the_whole_range() -> None:
    a = np.zeros((32, 32), np.float32)
    a[0, :8] = [88.5, 89, 1000, -87, -88, -1000, np.inf, -np.inf]
    program = tile_program(
        "copy_init(0); copy_tile(0, t, 0); exp_tile_init(); exp_tile(0);",
        [Tensor("a", (32, 32), dtype=FLOAT32)],
        out_dtype=FLOAT32,
        unpack_to_dest=True,
    )
    out = run(program, a)
    with np.errstate(over="ignore"):
        want = np.exp(a)
    want[want < np.finfo(np.float32).tiny] = 0
    np.testing.assert_allclose(out, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("calls", "function", "ties_even"),
    [
        ("binop_with_scalar_tile_init(); add_unary_tile(0, 0x3fa66666u);", lambda x: x + np.float32(1.3), False),
        ("square_tile_init(); square_tile(0);", np.square, True),
        ("sqrt_tile_init(); sqrt_tile(0);", np.sqrt, True),
    ],
)
def test_16_bit_dst_truncates_some_sfpu_results_and_rounds_others(calls: str, function: Any, ties_even: bool) -> None:
    a = np.random.default_rng(0).uniform(0, 4, (32, 32)).astype(BF16)
    program = tile_program(
        f"copy_init(0); copy_tile(0, t, 0); {calls}", [Tensor("a", (32, 32))], compute=Compute(wide=False)
    )
    value = function(wide(a)).astype(np.float32)
    want = wide(value.astype(BF16)) if ties_even else truncated(value, 7)
    np.testing.assert_array_equal(run(program, a), want)


SFPU_BINARY: dict[str, Any] = {
    "add_binary": np.add,
    "sub_binary": np.subtract,
    "rsub_binary": lambda a, b: b - a,
    "mul_binary": np.multiply,
    "div_binary": np.divide,
    "binary_max": np.maximum,
    "binary_min": np.minimum,
}


@pytest.mark.parametrize("name", SFPU_BINARY)
def test_sfpu_binary_on_float32(name: str) -> None:
    a, b = random_f32((32, 32)), random_f32((32, 32), 1)
    program = tile_program(
        f"copy_init(0); copy_tile(0, t, 0); copy_tile(1, t, 1); {name}_tile_init(); {name}_tile(0, 1, 0);",
        [Tensor("a", (32, 32), dtype=FLOAT32), Tensor("b", (32, 32), dtype=FLOAT32)],
        out_dtype=FLOAT32,
        unpack_to_dest=True,
    )
    # All are exact but the quotient, whose last bit may be off.
    rtol = 1.2e-7 if name == "div_binary" else 0
    np.testing.assert_allclose(run(program, a, b), SFPU_BINARY[name](a, b), rtol=rtol)


def test_where_and_mac() -> None:
    a, b, c = (random_f32((32, 32), seed) for seed in range(3))
    a[::2] = 0
    tensors = [Tensor(name, (32, 32), dtype=FLOAT32) for name in "abc"]
    copies = "copy_init(0); copy_tile(0, t, 0); copy_tile(1, t, 1); copy_tile(2, t, 2);"
    kind = "DataFormat::Float32"

    def three(calls: str) -> Array:
        program = tile_program(copies + calls, tensors, out_dtype=FLOAT32, startup="(0, 1, 16)", unpack_to_dest=True)
        return run(program, a, b, c)

    where = three(f"where_tile_init(); where_tile<{kind}>(0, 1, 2, 0);")
    np.testing.assert_array_equal(where, np.where(a != 0, b, c))
    mac = three(f"mac_tile_init<{kind}>(); mac_tile<{kind}>(0, 1, 2, 0);")
    np.testing.assert_allclose(mac, a.astype(np.float64) * b + c, rtol=1e-6, atol=1e-6)


def reduce_case(pool: str, dimension: str, scaler: float) -> tuple[Array, Array]:
    """The result and the input of a reduction of one bfloat16 tile with a tile full of `scaler`."""
    a = random_bf16((32, 32))
    kind = f"PoolType::{pool}, ReduceDim::{dimension}"
    body = f"reduce_init<{kind}>(0, 1, 16); reduce_tile<{kind}>(0, 1, t, t, 0);"
    program = tile_program(body, [Tensor("a", (32, 32)), Tensor("s", (32, 32))], out_dtype=FLOAT32)
    return run(program, a, np.full((32, 32), scaler, BF16)), wide(a)


@pytest.mark.parametrize(("pool", "function"), [("SUM", np.sum), ("MAX", np.max)])
def test_reduce_puts_its_result_in_column_0_row_0_or_the_corner(pool: str, function: Any) -> None:
    out, a = reduce_case(pool, "REDUCE_ROW", 1)
    np.testing.assert_allclose(out[:, 0], function(a, axis=1), rtol=1e-5, atol=1e-5)
    assert not out[:, 1:].any()
    out, a = reduce_case(pool, "REDUCE_COL", 1)
    np.testing.assert_allclose(out[0], function(a, axis=0), rtol=1e-5, atol=1e-5)
    assert not out[1:].any()
    out, a = reduce_case(pool, "REDUCE_SCALAR", 1)
    np.testing.assert_allclose(out[0, 0], function(a), rtol=1e-5, atol=1e-4)
    assert np.count_nonzero(out) == 1


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_the_sfpu_sums_in_the_order_of_the_chip(target: str) -> None:
    """The result of a sum of float32 numbers depends on it; nothing cancels here, so that each sum rounds as usual."""
    a = np.random.default_rng(0).uniform(1, 2, (32, 32)).astype(np.float32)

    def reduced(dimension: str) -> Array:
        kind = "PoolType::SUM, DataFormat::Float32"
        calls = f"sfpu_reduce_init<{kind}>(); sfpu_reduce<{kind}, ReduceDim::{dimension}>(0);"
        tensors = [Tensor("a", (32, 32), dtype=FLOAT32)]
        made = tile_program(COPY + calls, tensors, out_dtype=FLOAT32, unpack_to_dest=True)
        (out,) = Emulator().run(Program(made.texts, dataclasses.replace(made.plan, target=target)), [a]).outputs
        return out

    lanes = a[:, :16:2] + (a[:, 1:16:2] + (a[:, 16::2] + a[:, 17::2]))
    for distance in (4, 2, 1):
        lanes = lanes + np.roll(lanes, distance, axis=1)
    np.testing.assert_array_equal(reduced("REDUCE_ROW")[:, 0], lanes[:, 0])
    upper, lower = (half[:4] + (half[4:8] + (half[8:12] + half[12:])) for half in (a[:16], a[16:]))
    parts = upper + lower
    pairs = (parts[0] + parts[1]) + (parts[2] + parts[3])
    chain = parts[0] + (parts[1] + (parts[2] + parts[3]))
    assert not np.array_equal(pairs, chain)
    np.testing.assert_array_equal(reduced("REDUCE_COL")[0], pairs if target.startswith("wormhole") else chain)


def test_reductions_add_to_what_dst_holds() -> None:
    a = random_bf16((32, 32))
    kind = "PoolType::SUM, ReduceDim::REDUCE_ROW"
    calls = f"reduce_init<{kind}>(0, 1, 16); reduce_tile<{kind}>(0, 1, t, t, 0); reduce_uninit(0);"
    made = tile_program(COPY + calls, [Tensor("a", (32, 32)), Tensor("s", (32, 32))], out_dtype=FLOAT32)
    out = run(made, a, np.ones((32, 32), BF16))
    np.testing.assert_allclose(out[:, 0], wide(a)[:, 0] + wide(a).sum(axis=1), atol=0.1)
    assert np.isnan(out[:, 1:]).all()


def test_average_applies_the_scaler_once_per_dimension() -> None:
    out, a = reduce_case("AVG", "REDUCE_ROW", 1 / 32)
    np.testing.assert_allclose(out[:, 0], a.mean(axis=1), rtol=1e-5, atol=1e-6)
    out, a = reduce_case("AVG", "REDUCE_SCALAR", 1 / 32)
    np.testing.assert_allclose(out[0, 0], a.mean(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("config", "function"),
    [
        ("zero()", lambda x: np.maximum(x, 0)),
        ("min_threshold(0x3f00)", lambda x: np.where(x > 0.5, x, 0)),
        ("max_threshold(0x3f00)", lambda x: np.clip(x, 0, 0.5)),
    ],
)
def test_packer_relu(config: str, function: Any) -> None:
    a = random_bf16((32, 32))
    program = tile_program(
        "copy_init(0); copy_tile(0, t, 0);", [Tensor("a", (32, 32))], before=f"pack_relu_config(ReluConfig::{config});"
    )
    np.testing.assert_array_equal(run(program, a), function(wide(a)))


def test_an_untouched_dst_tile_counts_as_zero() -> None:
    a = random_bf16((32, 32))
    body = "copy_init(0); copy_tile(0, t, 1); relu_tile_init(); relu_tile(0);"
    np.testing.assert_array_equal(run(tile_program(body, [Tensor("a", (32, 32))]), a), np.zeros((32, 32)))


@pytest.mark.parametrize("shape", [(70,), (33, 37), (3, 50, 70), (2, 3, 10, 32)])
def test_tensors_of_any_rank_are_padded_per_matrix(shape: tuple[int, ...]) -> None:
    a = random_bf16(shape)
    out = Emulator().run(tile_program("copy_init(0); copy_tile(0, t, 0);", [Tensor("a", shape)]), [a]).outputs[0]
    assert out.shape == shape
    assert out.dtype == BF16
    np.testing.assert_array_equal(wide(out), wide(a))


def test_each_core_does_its_share_and_runs_are_equal() -> None:
    tensors = [Tensor("a", (256, 256)), Tensor("b", (256, 256))]
    a, b = random_bf16((256, 256)), random_bf16((256, 256), 1)
    program = tile_program("add_init(0, 1); add_tiles(0, 1, t, t, 0);", tensors, cores=64)
    first, second = (Emulator(arithmetic="fast").run(program, [a, b]) for _ in range(2))
    np.testing.assert_array_equal(wide(first.outputs[0]), round_ties_away(wide(a) + wide(b)))
    assert first.events is not None
    assert second.events is not None
    np.testing.assert_array_equal(first.events.records, second.events.records)
    assert set(first.events.records["core"]) == set(range(64))
