# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reductions, vectors in columns and elements of tensors against NumPy, and what they become."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.direct import branches, elements_of_tensors, from_tensor_to_tensor, scattered_reads, scattered_stores
from tests.corpus.reductions import online_softmax, reduced, scaled_rows, softmax
from ttexplore.errors import Unsupported
from ttexplore.ir.operations.reductions import JOININGS


def run(kernel: Any, **options: Any) -> tuple[list[Any], list[Any], Any]:
    """The inputs as float64, the outputs of the emulator, and the exploration, whose steps are all right."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    made = exploration.run()
    assert made.passed, made.message
    return [one.astype(np.float64) for one in exploration.inputs()], list(made.outputs), exploration


_NUMPY = {
    "sum": np.sum, "max": np.max, "min": np.min, "abssum": lambda a, axis: np.abs(a).sum(axis),
    "absmax": lambda a, axis: np.abs(a).max(axis),
}  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("kind", "sign"), [("max", -1), ("min", 1)])
def test_the_padding_of_a_block_is_never_the_extreme(kind: str, sign: int, dim: int) -> None:
    """Of numbers that all lie on one side of zero: zeros beyond the block would win."""
    exploration = ttx.explore(reduced(kind, (40, 70), dim))
    (a,) = exploration.inputs()
    array = (sign * (np.abs(a) + 1)).astype(a.dtype)
    assert exploration.check([array])
    made = exploration.run([array])
    np.testing.assert_allclose(made.outputs[0], _NUMPY[kind](array[:, :40], 1 + dim), rtol=2e-3)


@pytest.mark.parametrize("engine", ["auto", "fpu", "sfpu"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", [kind for kind, joining in JOININGS.items() if not joining.of_bits])
def test_each_reduction(kind: str, dim: int, engine: str) -> None:
    """With tails along both axes, and a second block that is joined to the first."""
    (a,), (found,), _ = run(reduced(kind, (40, 70), dim, keeps=True), eltwise=engine)
    parts = np.stack([a[:, :40], a[:, 40:] * 0.5])
    want = _NUMPY[kind.removeprefix("abs")](_NUMPY[kind](parts, 2 + dim), 0)
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-2)


def test_engines_of_reductions() -> None:
    """The FPU adds up bfloat16; float32 stays whole on the SFPU, which alone has minima and magnitudes."""
    for kind, dtype, options, name in (
        ("sum", "bfloat16", {}, "tt.reduce_sum_row"),
        ("max", "float32", {}, "tt.sfpu_reduce_max_row"),
        ("max", "float32", {"eltwise": "fpu"}, "tt.reduce_max_row"),
        ("min", "bfloat16", {}, "tt.sfpu_reduce_min_row"),
    ):
        exploration = ttx.explore(reduced(kind, (32, 64), 1, dtype), options=options)
        assert f"{name}(" in str(exploration.steps["C2"]), kind
        assert exploration.plan.compute is not None
        reasons = "\n".join(exploration.plan.compute.reasons)
        assert f"r, the {kind} of buffer: {'SFPU' if 'sfpu' in name else 'FPU'}" in reasons


_BLACKHOLE: dict[str, Any] = {"target": "blackhole_p150", "options": {"eltwise": "fpu"}}


@pytest.mark.parametrize(("dtype", "tiles"), [("bfloat16", 2), ("bfloat16", 5), ("float32", 3), ("bfloat16", 130)])
def test_blackhole_pools_the_maxima_of_a_row_of_tiles_in_one_operation(dtype: str, tiles: int) -> None:
    """Large, negative and equal numbers, rows of minus infinity and of zeros of both signs; float32 is cut to TF32.
    More than 127 tiles are joined one by one."""
    rows, columns = 32, 32 * tiles
    exploration = ttx.explore(reduced("max", (rows, columns), 1, dtype), **_BLACKHOLE)
    assert ("tt.reduce_block_max_row(" in str(exploration.steps["C2"])) == (tiles < 128)
    random = np.random.default_rng(tiles)
    a = random.standard_normal((2, 2 * rows, columns)) * 10.0 ** random.integers(-6, 6, (2, 2 * rows, 1))
    a[:, 0] = -np.inf
    a[:, 1] = -np.abs(a[:, 1]) * 1e30
    a[:, 2] = np.where(np.arange(columns) == columns - 1, -3.0, -np.inf)
    a[:, 3] = -1e30
    a[:, 4] = np.where(np.arange(columns) % 2, -0.0, 0.0)
    a[:, 5] = np.abs(a[:, 5]) * 1e30
    array = a.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float32)
    assert exploration.check([array])
    (found,) = exploration.run([array]).outputs
    want = array[:, :rows].astype(np.float32).max(axis=2)
    np.testing.assert_array_equal(found, (want.view(np.uint32) & 0xFFFFE000).view(np.float32))


def test_a_maximum_of_a_row_of_tiles_is_set_up_apart_from_the_vector_unit() -> None:
    """Their inits set the same address mode: a maximum of elements that was set up before is set up again after it."""
    exploration = ttx.explore(reduced("max", (64, 96), 1, "bfloat16", keeps=True), **_BLACKHOLE)
    lines = [line.strip() for line in str(exploration.code["compute"]).splitlines()]
    calls = [line.partition("(")[0].partition("<")[0] for line in lines]
    for position in (number for number, name in enumerate(calls) if name == "reduce_block_max_row_uninit"):
        after = [name for name in calls[position:] if name.startswith("binary_max_tile")]
        assert not after or after[0] == "binary_max_tile_init"
    assert "binary_max_tile" in calls
    assert exploration.run().passed


def test_a_reduction_is_listed_with_all_that_it_is() -> None:
    exploration = ttx.explore(reduced("max", (32, 64), 1, keeps=True))
    assert "T.reduce_max(buffer_2, r, dim=1, clear=False)" in str(exploration.steps["A1"])
    assert "T.reduce_max(buffer_2, r_part, dim=1)" in str(exploration.steps["A2"])


def test_softmax() -> None:
    (a,), (out, logarithm), _ = run(softmax(32, 100, "bfloat16"))
    exponentials = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(out.astype(np.float64), exponentials / exponentials.sum(1, keepdims=True), atol=4e-3)
    np.testing.assert_allclose(logarithm, np.log(exponentials.sum(1)) + a.max(1), rtol=2e-3)


def test_online_softmax_is_attention() -> None:
    (q, k, v), (out,), _ = run(online_softmax(3))
    scores = q @ k.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out.astype(np.float64), weights @ v / weights.sum(1, keepdims=True), atol=5e-2)


def test_vectors_as_rows_and_columns() -> None:
    (a, w), (out, rows), _ = run(scaled_rows())
    r, c = a.sum(1) * w, a.max(0)
    np.testing.assert_allclose(rows, r, rtol=2e-3, atol=2e-2)
    np.testing.assert_allclose(out, a * r[:, None] + c[:, None] + r * c, rtol=5e-3, atol=2e-1)


def test_elements_of_tensors() -> None:
    (a, r, c), (out,), exploration = run(elements_of_tensors())
    np.testing.assert_allclose(out, a * 2 + r * c[:, None], rtol=1e-5, atol=1e-5)
    firings = {firing.rule.name for firing in exploration.steps["A0"].after.firings}
    assert {"plain elements", "elements on the chip"} <= firings


def test_branches_and_loops() -> None:
    (a,), (out,), _ = run(branches())
    i, j = np.indices(a.shape)
    want = np.where(i > j, a, np.where(1 + a > 1, 5.0, 1 - a)) + 3 * a
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def test_operands_in_tensors() -> None:
    (a,), (out, sums, threes), _ = run(from_tensor_to_tensor())
    np.testing.assert_array_equal(out, np.concatenate([a[:, 32:], a[:, :32]], 1))
    np.testing.assert_allclose(sums, a.sum(2), rtol=2e-3, atol=2e-2)
    np.testing.assert_array_equal(threes.astype(np.float32), 3.0)


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_scattered_reads(target: str) -> None:
    """A column of a matrix, single elements, a row that starts anywhere, a turned block: moved element by element."""
    exploration = ttx.explore(scattered_reads(), target=target)
    assert exploration.check()
    g, h, a, b = (one.astype(np.float64) for one in exploration.inputs())
    made = exploration.run()
    want = np.stack([g[x, 5:45, 2][:, None] * h[x + 3] + a[x + 1, 3:11] + b[:8, :40].T for x in range(2)])
    np.testing.assert_allclose(made.outputs[0], want, rtol=2e-3, atol=1e-2)


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_scattered_stores(target: str) -> None:
    """A column, single elements and vectors that start anywhere, beside what the tensors held before; statistics of
    rows are stored without a transposition, which would cut them to TF32."""
    exploration = ttx.explore(scattered_stores(), target=target)
    assert exploration.check()
    a, *before = exploration.inputs()
    most = a.astype(np.float64).max(2)
    outputs = [one.astype(np.float64) for one in exploration.run([a, *before]).outputs]
    column, singles, indices, vector = (one.astype(np.float64) for one in before)
    column[1, 3:, 2] = most.reshape(-1)
    singles[4:6] = a[:, 39, 3].astype(ml_dtypes.bfloat16).astype(np.float64)
    indices[1:, 5:45] = np.arange(40)
    vector[2, :10], vector[2, 50:] = most[0, 30:], most[1]
    for found, wanted in zip(outputs[:3], (column, singles, indices), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(outputs[3], vector, rtol=4e-3)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sums_of_rows_and_columns_in_one_vector(dtype: str, keeps: bool) -> None:
    """A reduction along columns makes a row, which becomes a column where statistics of rows are computed with it."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 40), dtype), Out: T.Tensor((40, 40), "float32"), R: T.Tensor((40,), "float32")):
        with T.Kernel(1):
            a, o = T.alloc_shared((40, 40), dtype), T.alloc_fragment((40, 40), "float32")
            r, c = T.alloc_fragment((40,), "float32"), T.alloc_fragment((40,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, r, dim=1)
            if keeps:
                T.copy(r, c)
                T.reduce_sum(a, r, dim=0, clear=False)
            else:
                T.reduce_max(a, c, dim=0)
                for i in T.Parallel(40):
                    r[i] = r[i] + c[i]
            for i, j in T.Parallel(40, 40):
                o[i, j] = a[i, j] * r[i] + c[j] - r[j]
            T.copy(o, Out)
            T.copy(r, R)

    (a,), (out, rows), _ = run(kernel)
    c = a.sum(1) if keeps else a.max(0)
    r = a.sum(1) + (a.sum(0) if keeps else c)
    np.testing.assert_allclose(rows, r, rtol=2e-3, atol=2e-2)
    np.testing.assert_allclose(out, a * r[:, None] + c - r, rtol=5e-3, atol=1e-1)


def test_a_reduction_to_one_element() -> None:
    (a,), (found,), _ = run(reduced("sum", (1, 70), 1))
    np.testing.assert_allclose(found[:, 0], a[:, :1].sum(2)[:, 0], rtol=2e-3, atol=2e-2)


def test_sums_of_bytes() -> None:
    """They wrap around in NumPy, which the sums of the chip's numbers do not: an int32 keeps them whole."""
    error = ttx.explore(reduced("sum", (32, 64), 1, "uint8", "uint8")).error
    assert isinstance(error, Unsupported)
    assert error.message == "T.reduce_sum of uint8 into uint8"
    assert error.hint == "reduce into a block of int32 or float32, and cast that in T.Parallel"
    (a,), (found,), _ = run(reduced("sum", (32, 64), 1, "uint8", "int32"))
    np.testing.assert_array_equal(found, a[:, :32].sum(2))
    (a,), (found,), _ = run(reduced("max", (32, 64), 1, "uint8", "uint8"))
    np.testing.assert_array_equal(found, a[:, :32].max(2))


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_the_magnitude_of_the_least_number_does_not_fit_its_dtype(dtype: str) -> None:
    error = ttx.explore(reduced("absmax", (32, 64), 1, dtype, dtype)).error
    assert isinstance(error, Unsupported)
    assert error.message == f"T.reduce_absmax of {dtype} into {dtype}"
    wide = ttx.explore(reduced("absmax", (32, 64), 1, dtype, "int32"))
    given = [np.full_like(one, np.iinfo("int8").min if dtype == "int8" else -8) for one in wide.inputs()]
    for backend in ("interpreter", "emulator"):
        assert (wide.run(given, backend=backend).outputs[0] == -int(given[0].flat[0])).all()


def test_branches_that_store_the_same_elements() -> None:
    """To a block that holds nothing before, and to a tensor: one of the two is always stored."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 70), "float32"), Out: T.Tensor((40, 70), "float32")):
        with T.Kernel(2) as bx:
            b = T.alloc_fragment((32, 70), "float32")
            for i, j in T.Parallel(32, 70):
                y = bx * 32 + i
                if A[y, j] < 0.0:
                    b[i, j] = -A[y, j]
                    b[i, j] = b[i, j] * 2.0
                else:
                    x = A[y, j] + 1.0
                    b[i, j] = x
                    b[i, j] = b[i, j] * x
                if y < 40:
                    if b[i, j] > 2.0:
                        Out[y, j] = b[i, j]
                    elif b[i, j] > 1.0:
                        Out[y, j] = 7.0
                    else:
                        Out[y, j] = -b[i, j]

    (a,), (out,), _ = run(kernel)
    b = np.where(a < 0, -a * 2, (a + 1) ** 2)
    np.testing.assert_allclose(out, np.where(b > 2, b, np.where(b > 1, 7, -b)), rtol=1e-5, atol=1e-5)


def test_elements_that_do_not_exist() -> None:
    """They are zeros, also where none of a block exists."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 5), "float32"), Out: T.Tensor((3, 40), "float32")):
        with T.Kernel(3) as bx:
            for i in T.Parallel(40):
                Out[bx, i] = A[0, bx + 3]

    (a,), (out,), _ = run(kernel)
    np.testing.assert_array_equal(out, np.repeat([[a[0, 3]], [a[0, 4]], [0]], 40, 1))
    size = T.dynamic("size")

    @T.prim_func
    def shifted(A: T.Tensor((size, 50), "float32"), Out: T.Tensor((size, 37), "float32")):
        with T.Kernel(T.ceildiv(size, 32)) as bx:
            for i, j in T.Parallel(32, 37):
                Out[bx * 32 + i, j] = A[bx * 32 + i, j + 3]

    exploration = ttx.explore(shifted, sizes={"size": 40})
    (a,) = exploration.inputs()
    assert exploration.check()
    np.testing.assert_array_equal(exploration.run().outputs[0], a[:, 3:40])


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
def test_a_maximum_is_compared_with_elements_where_none_is_cut(target: str) -> None:
    def last_largest(M: int = 40, N: int = 50) -> object:
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), at: T.Tensor((M,), "int32")) -> None:
            with T.Kernel(T.ceildiv(M, 32)) as by:
                a = T.alloc_shared((32, N), "float32")
                largest = T.alloc_fragment((32,), "float32")
                columns = T.alloc_fragment((32, N), "int32")
                column = T.alloc_fragment((32,), "int32")
                T.copy(A[by * 32, 0], a)
                T.reduce_max(a, largest, dim=1)
                for i, j in T.Parallel(32, N):
                    columns[i, j] = T.if_then_else(a[i, j] == largest[i], j, -1)
                T.reduce_max(columns, column, dim=1)
                T.copy(column, at[by * 32])

        return main

    ex = ttx.explore(last_largest, target=target)
    (a,) = ex.inputs()
    assert np.array_equal(ex.run([a]).outputs[0], a.argmax(axis=1))
    refused = ex.fork(eltwise="fpu").error
    assert isinstance(refused, Unsupported)
    assert refused.message.startswith("a comparison of elements of float32 with each other")
    assert refused.hint == "leave out eltwise='fpu'"
