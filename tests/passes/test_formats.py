# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""Dtypes of 8 bits and fewer: what casts give, what products of integers give, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.formats import casts, copies, product_of, rows_scaled
from tests.said import said
from ttexplore.errors import KernelError, TTExploreError, Unsupported, UsageError
from ttexplore.language.tilelang import determine_fp8_type
from ttexplore.ops.small import FLOATS, largest_magnitude, numpy_dtype, on_host, rounded_to
from ttexplore.plan import SMALL_FLOATS

E4M3, E5M2, FP32, BF16, INT32 = "float8_e4m3fn", "float8_e5m2", "float32", "bfloat16", "int32"


def cast_to(dtype: str, source: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((256, 256), source), Out: T.Tensor((256, 256), dtype)):
        with T.Kernel(2, 4) as (bx, by):
            a, o = T.alloc_shared((64, 128), source), T.alloc_fragment((64, 128), dtype)
            T.copy(A[by * 64, bx * 128], a)
            for i, j in T.Parallel(64, 128):
                o[i, j] = T.cast(a[i, j], dtype)
            T.copy(o, Out[by * 64, bx * 128])

    return kernel


def of_elements(operation: Any, dtypes: tuple[str, str, str]) -> Any:
    """``Out = operation(A, B)``, with tensors of these dtypes."""
    first, second, out = dtypes

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), first), B: T.Tensor((32, 32), second), Out: T.Tensor((32, 32), out)):
        with T.Kernel(1):
            a, b = T.alloc_shared((32, 32), first), T.alloc_shared((32, 32), second)
            o = T.alloc_fragment((32, 32), out)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 32):
                o[i, j] = operation(a[i, j], b[i, j])
            T.copy(o, Out)

    return kernel


def nearest(values: Any, dtype: str) -> Any:
    """The nearest number of a dtype, found among all of them; of two as near, the one with an even last bit."""
    codes = np.arange(256, dtype=np.uint8)
    numbers = codes.view(numpy_dtype(dtype)).astype(np.float64)
    finite = np.isfinite(numbers) & ((numbers != 0) | (codes == 0))
    order = np.argsort(numbers[finite])
    numbers, codes = numbers[finite][order], codes[finite][order]
    wanted = np.clip(np.asarray(values, np.float64), numbers[0], numbers[-1])
    above = np.clip(np.searchsorted(numbers, wanted), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    down, up = wanted - low, high - wanted
    even = codes[above - 1] % 2 == 0
    return np.where((down < up) | ((down == up) & even), low, high)


def hard_numbers(dtype: str) -> Any:
    """65,536 numbers: all of the dtype, those in the middle between two, their neighbours, and others of any size."""
    random = np.random.default_rng(1)
    numbers = np.sort(np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype)).astype(np.float32))
    numbers = numbers[np.isfinite(numbers)]
    middles = ((numbers[1:].astype(np.float64) + numbers[:-1]) / 2).astype(np.float32)
    around = [np.nextafter(middles, np.float32(end)) for end in (np.inf, -np.inf)]
    sizes = random.standard_normal(20000) * 10.0 ** random.uniform(-7, 7, 20000)
    bits = random.integers(0, 2**32, 20000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    beyond = np.array([np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0], np.float32)
    all_of_them = np.concatenate([numbers, middles, *around, beyond, sizes, np.where(np.isnan(bits), 1, bits)])
    return np.resize(all_of_them.astype(np.float32), (256, 256))


_EVERY_BFLOAT16 = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32).reshape(256, 256)
# NumPy warns of other NaN than this.
EVERY_BFLOAT16 = np.where(np.isnan(_EVERY_BFLOAT16), np.float32(np.nan), _EVERY_BFLOAT16)


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_what_is_known_of_each_dtype_is_what_ml_dtypes_says(dtype: str) -> None:
    known, own = ml_dtypes.finfo(dtype), FLOATS[dtype]
    assert (own.fraction_bits, own.least_exponent, own.largest) == (known.nmant, known.minexp, float(known.max))
    values = hard_numbers(dtype)
    rounded = values.astype(numpy_dtype(dtype)).astype(np.float32)
    inside = np.isfinite(rounded) & (np.abs(values) <= own.largest)
    np.testing.assert_array_equal(rounded_to(values, dtype)[inside], rounded[inside])
    np.testing.assert_array_equal(rounded_to(values, dtype), nearest(values, dtype))
    assert np.isnan(rounded_to([np.nan], dtype)).all()
    np.testing.assert_array_equal(rounded_to([np.inf, -np.inf], dtype), [own.largest, -own.largest])


@pytest.mark.parametrize("source", [BF16, FP32])
@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_casts_round_to_the_nearest_number_and_saturate(dtype: str, source: str) -> None:
    values = EVERY_BFLOAT16 if source == BF16 else hard_numbers(dtype)
    exploration = ttx.explore(cast_to(dtype, source))
    is_number = ~np.isnan(values)
    wanted = nearest(np.where(is_number, values, 0), dtype)
    backends = ("interpreter", "emulator") if dtype in (E4M3, E5M2) else ("emulator",)
    for backend in backends:
        (found,) = exploration.run([values], backend).outputs
        assert found.dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(found.astype(np.float64)[is_number], wanted[is_number])


def test_the_host_does_not_hide_that_a_kernel_did_not_round() -> None:
    for dtype in SMALL_FLOATS:
        between = on_host(np.array([1.0, 1.03125, 1e6], np.float32), dtype).astype(np.float32)
        fault = np.nan if dtype.startswith("float8") else -FLOATS[dtype].largest
        np.testing.assert_array_equal(between, [1, fault, fault])
    np.testing.assert_array_equal(
        on_host(np.array([-128, 127, 128, 0.5, np.nan], np.float32), "int8"), [-128, 127, -34, -34, -34]
    )
    np.testing.assert_array_equal(on_host(np.array([0, 255, 256, -1], np.float32), "uint8"), [0, 255, 0xDE, 0xDE])
    exploration = ttx.explore(cast_to(E4M3, FP32))
    text = str(exploration.code["compute"])
    (line,) = (line for line in text.splitlines() if "sub_binary_tile(" in line)
    broken = exploration.run([hard_numbers(E4M3)], code={"compute": text.replace(line, "")})
    assert not broken.passed


def test_casts_among_all_kinds() -> None:
    exploration = ttx.explore(casts())
    random = np.random.default_rng(3)
    a = (random.standard_normal((40, 70)) * 200).astype(ml_dtypes.bfloat16).astype(np.float32)
    b = (random.standard_normal((40, 70)) * 100).astype(ml_dtypes.float8_e5m2).astype(np.float32)
    n, m = random.integers(-128, 128, (40, 70)).astype(np.int8), random.integers(0, 2, (40, 70)).astype(bool)
    assert exploration.check([a, b, n, m])
    p, q, r, s = exploration.run([a, b, n, m]).outputs
    first = nearest(np.where(m, a * np.float32(3), n), E4M3).astype(np.float32)
    np.testing.assert_array_equal(p.astype(np.float32), first)
    np.testing.assert_array_equal(q.astype(np.float32), nearest(b + first * np.float32(0.3), E5M2))
    wrapped = (n.astype(np.int64) + np.trunc(a * np.float32(100)).astype(np.int64) + 128) % 256 - 128
    np.testing.assert_array_equal(r, wrapped)
    np.testing.assert_array_equal(s, a > b)
    assert (q.dtype, r.dtype, s.dtype) == (np.dtype(ml_dtypes.float8_e5m2), np.dtype(np.int8), np.dtype(bool))


def test_copies_convert() -> None:
    a = np.random.default_rng(4).standard_normal((64, 64)).astype(np.float32) * 25
    low, whole = ttx.explore(copies()).run([a]).outputs
    np.testing.assert_array_equal(low.astype(np.float64), nearest(a, E4M3))
    np.testing.assert_array_equal(whole, np.trunc(nearest(a, E4M3)))


def test_rows_with_a_scale_each() -> None:
    a = np.random.default_rng(5).standard_normal((32, 128)).astype(np.float32)
    exploration = ttx.explore(rows_scaled())
    assert exploration.check([a])
    low, back = (out.astype(np.float64) for out in exploration.run([a]).outputs)
    scale = np.maximum(np.abs(a).max(axis=1, keepdims=True), 1e-4) / 448
    # The quotient may come out on the other side of the middle between two numbers.
    assert (np.abs(low - nearest(a / scale, E4M3)) <= np.abs(low) / 8 + 2**-9).all()
    assert np.mean(low == nearest(a / scale, E4M3)) > 0.99
    np.testing.assert_allclose(back, low * scale, rtol=2**-8)


@pytest.mark.parametrize(
    ("first", "second", "split"),
    [
        ("int8", "int8", True), ("uint8", "uint8", True), ("int8", "uint8", True), ("uint8", "int4", False),
        ("int4", "int8", False), ("uint4", "uint4", False), ("bool", "int8", False), ("int8", "bool", False),
    ],
)  # fmt: skip
def test_products_of_integers_are_exact(first: str, second: str, split: bool) -> None:
    """Ones beside the largest products, which the matrix unit would lose beside those."""
    exploration = ttx.explore(product_of(first, second, INT32, INT32))
    assert ("b_high" in {one.name for one in exploration.plan.buffers}) == split or "a_high" in {
        one.name for one in exploration.plan.buffers
    }
    random = np.random.default_rng(6)
    arrays: list[Any] = []
    for dtype, rows in ((first, 32), (second, 64)):
        most = largest_magnitude(dtype)
        low = -most if dtype.startswith("int") else 0
        values = random.integers(low, most + (low == 0), (rows, 128))
        values[:, ::8] = low or most
        values[:, 1::8] = 1
        arrays.append(values.astype(numpy_dtype(dtype)))
    run = exploration.run(arrays)
    np.testing.assert_array_equal(run.outputs[0], arrays[0].astype(np.int64) @ arrays[1].astype(np.int64).T)
    assert exploration.check(arrays)


def test_a_product_of_bytes_without_the_split_is_wrong() -> None:
    """Why products of integers are taken apart: the matrix unit loses small products beside large ones."""
    a, b = np.ones((32, 128), np.float32), np.ones((64, 128), np.float32)
    a[:, ::8] = b[:, ::8] = -128
    wanted = a @ b.T
    (found,) = ttx.explore(product_of(BF16, BF16, FP32, FP32)).run([a, b]).outputs
    assert np.abs(found - wanted).max() > 50
    (exact,) = ttx.explore(product_of("int8", "int8", INT32, INT32)).run([a, b]).outputs
    np.testing.assert_array_equal(exact, wanted)


def test_products_of_float8_are_those_of_their_numbers() -> None:
    random = np.random.default_rng(7)
    a = nearest(random.standard_normal((32, 128)), E4M3).astype(np.float32)
    b = nearest(random.standard_normal((64, 128)), E4M3).astype(np.float32)
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    (found,) = ttx.explore(product_of(E4M3, E4M3, FP32, FP32)).run([a, b]).outputs
    np.testing.assert_allclose(found, exact, atol=1e-3 * np.abs(exact).max())
    (low,) = ttx.explore(product_of(E4M3, E4M3, FP32, E4M3)).run([a, b]).outputs
    np.testing.assert_array_equal(low.astype(np.float64), nearest(found, E4M3))


@pytest.mark.parametrize(
    ("kernel", "note"),
    [
        (
            product_of("int8", "int8", INT32, INT32),
            r"a times b in line \d+: two products, of the high and the low 4 bits",
        ),
        (product_of("int4", "int8", INT32, INT32), r"a times b in line \d+: one product, because the matrix unit adds"),
        (copies(), r"the copy of A to low in line \d+ casts to float8_e4m3fn on the SFPU, because the packer rounds"),
    ],
)
def test_the_plan_says_how_numbers_are_converted(kernel: Any, note: str) -> None:
    plan = ttx.explore(kernel).plan
    assert any(re.match(note, one) for one in said(plan))
    small = [one for one in plan.layouts if one.dtype not in (FP32, INT32)]
    assert all(one.reason.endswith(f"holds every number of {one.dtype}; the host converts") for one in small)


def test_one_pass_of_the_matrix_unit_takes_all_bits_of_float8() -> None:
    a, b = (np.random.default_rng(8).standard_normal((rows, 128)) * 30 for rows in (32, 64))
    kernel = product_of(E4M3, E5M2, FP32, FP32)
    full, low = (ttx.explore(kernel, options={"math_fidelity": fidelity}) for fidelity in ("HiFi4", "LoFi"))
    np.testing.assert_array_equal(full.run([a, b]).outputs[0], low.run([a, b]).outputs[0])
    reason = "a times b: HiFi4; LoFi multiplies all bits of float8, so it would give the same in less time"
    assert full.plan.compute is not None
    assert reason in full.plan.compute.reasons


def test_there_are_two_formats_of_float8_by_name() -> None:
    with pytest.raises(KernelError, match="'e3m4' is no format of float8") as caught:
        determine_fp8_type("e3m4")
    assert caught.value.hint == "use e4m3 or e5m2"


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (of_elements(lambda a, b: a + b, (E4M3, E4M3, E4M3)), "arithmetic in float8_e4m3fn on elements"),
        (of_elements(lambda a, b: T.exp(a), (E4M3, E4M3, FP32)), "arithmetic in float8_e4m3fn on elements"),
        (of_elements(lambda a, b: a * b, ("int4", "int4", "int4")), "arithmetic in int4 on elements"),
        (of_elements(lambda a, b: a + b, ("float64", FP32, FP32)), "A is float64: no tile format supports this dtype"),
        (product_of(INT32, INT32, INT32, INT32), "T.gemm into c, which is int32, with a, which is int32"),
        (product_of("int8", "int8", INT32, INT32, 32, 32, 32768), "T.gemm sums 32768 products of int8 and int8"),
    ],
)
def test_what_no_rule_computes_is_refused(kernel: Any, message: str) -> None:
    error = ttx.explore(kernel).error
    assert isinstance(error, Unsupported)
    assert error.message.startswith(message)
    assert error.hint
    assert error.span


def test_two_dtypes_of_8_bits_have_none_in_common() -> None:
    with pytest.raises(KernelError, match="joins float8_e4m3fn and float8_e5m2") as caught:
        of_elements(lambda a, b: a + b, (E4M3, E5M2, FP32))
    assert "T.cast" in caught.value.hint


@pytest.mark.parametrize(
    ("dtypes", "fidelity", "message"),
    [
        (("int8", "int8"), "LoFi", ""),
        (("uint8", "uint8"), "HiFi2", "math_fidelity is 'HiFi2', which leaves out bits of a, of uint8"),
        (("uint8", "uint8"), "HiFi3", ""),
        (("int4", "int8"), "LoFi", "math_fidelity is 'LoFi', which leaves out bits of b, of int8"),
        (("int4", "int8"), "HiFi2", ""),
    ],
)
def test_as_few_passes_as_integers_bear(dtypes: tuple[str, str], fidelity: str, message: str) -> None:
    kernel = product_of(*dtypes, INT32, INT32, 64, 32)
    exploration = ttx.explore(kernel, options={"math_fidelity": fidelity})
    if message:
        assert isinstance(exploration.error, UsageError)
        assert exploration.error.message == message
        return
    a, b = exploration.inputs(seed=1)
    (found,) = exploration.run([a, b]).outputs
    np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64).T)


def test_narrow_dst_does_not_round_to_8_bits() -> None:
    error = ttx.explore(cast_to(E4M3, BF16), options={"accumulate_dtype": "bfloat16"}).error
    assert isinstance(error, TTExploreError)
    assert error.message == "a cast to float8_e4m3fn in 16-bit DST"


@pytest.mark.parametrize("dtype", [E4M3, E5M2, "int8", "bool"])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax"])
def test_reductions_with_a_tail(dtype: str, kind: str) -> None:
    out = FP32 if dtype in SMALL_FLOATS else INT32

    @T.prim_func
    def reduced(A: T.Tensor((32, 50), dtype), Out: T.Tensor((32,), out)):
        with T.Kernel(1):
            a, o = T.alloc_shared((32, 50), dtype), T.alloc_fragment((32,), out)
            T.copy(A, a)
            T.reduce(a, o, kind, dim=1)
            T.copy(o, Out)

    exploration = ttx.explore(reduced)
    (a,) = exploration.inputs(seed=2)
    wide = -np.abs(a.astype(np.float64)) if kind == "max" and dtype != "bool" else a.astype(np.float64)
    (found,) = exploration.run([wide]).outputs
    joined = {"sum": np.sum, "max": np.max, "min": np.min, "absmax": lambda x, axis: np.abs(x).max(axis)}[kind]
    wanted = joined(wide.astype(numpy_dtype(dtype)).astype(np.float64), axis=1)
    np.testing.assert_allclose(found, wanted, atol=0 if kind != "sum" or out == INT32 else 2e-2 * np.abs(wanted).max())
    assert exploration.check([wide])


def test_a_gpu_has_one_float8_with_four_bits_of_exponent() -> None:
    a = np.full((256, 256), 400.0)
    for name in ("float8_e4m3", T.float8_e4m3):
        (found,) = ttx.explore(cast_to(name, FP32)).run([a]).outputs
        assert found.dtype == np.dtype(ml_dtypes.float8_e4m3fn)
        np.testing.assert_array_equal(found.astype(np.float32), 384.0)
