# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Parts of blocks against NumPy: rows, columns, elements and regions, read and stored; and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.parts import mixed_rows, products_of_parts, rotated, stored_columns, turned_parts
from tests.said import said
from ttexplore.errors import KernelError, TTExploreError, Unsupported


def run(kernel: Any, **options: Any) -> tuple[list[Any], list[Any], Any]:
    """The inputs as float64, the outputs of the emulator, and the exploration, whose steps are all right."""
    exploration = ttx.explore(kernel, options=options)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    made = exploration.run()
    assert made.passed, made.message
    return [one.astype(np.float64) for one in exploration.inputs()], list(made.outputs), exploration


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32"])
def test_rows_columns_and_elements(dtype: str) -> None:
    (m, a, c), (out, s), _ = run(mixed_rows(dtype))
    want = c[:, None] * a[1] + m[:2].T @ a[:2]
    for block in range(3):
        want[:, block * 64 : block * 64 + 64] += (m @ a[:, block * 64 + 5])[:, None]
    np.testing.assert_allclose(out, want, rtol=5e-3, atol=2e-2)
    np.testing.assert_allclose(s, np.broadcast_to(m[:, 3] + c[0], (3, 40, 4)), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_parts_that_are_stored(dtype: str) -> None:
    (a,), (out, v), _ = run(stored_columns(dtype))
    want = a[:, :64] * 2
    want[7] = a[3, 32:]
    want[9] = np.concatenate([a[5, 64:], a[5, 32:64]])
    want[32, 32:] = 7
    np.testing.assert_allclose(out, want, rtol=1e-6)
    # A column that is stored as a row of tiles is transposed, which keeps 10 bits of its fractions.
    np.testing.assert_allclose(v, want[:, 63] + a[5, 35] + a[:, 63] * 2, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("rows", "columns", "dtype"), [(32, 128, "bfloat16"), (40, 64, "float32")])
def test_pairs_half_a_row_apart(rows: int, columns: int, dtype: str) -> None:
    (a, t), (out,), exploration = run(rotated(rows, columns, dtype))
    (x, y), (c, s) = np.split(a, 2, 1), np.split(t, 2, 1)
    np.testing.assert_allclose(
        out.astype(np.float64), np.concatenate([x * c - y * s, x * s + y * c], 1), rtol=2e-2, atol=3e-2
    )
    # By tiles: no element moves by itself.
    assert "element by element" not in "\n".join(said(exploration.plan))
    assert "T.copy_tiles(" in str(exploration.steps["A0"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_products_of_parts(dtype: str) -> None:
    (a, b), (out,), _ = run(products_of_parts(dtype))
    want = a @ b
    want[32:, 32:] += a[32:, :32] @ b[64:96, 32:]
    np.testing.assert_allclose(out, want, rtol=2e-2, atol=1e-1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_turned_parts(dtype: str) -> None:
    (a,), (b, c, d), _ = run(turned_parts(dtype))
    r = a.max(1)
    np.testing.assert_allclose(b.astype(np.float64), a[:, 32:64].T * r + r[:32, None], rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(c.astype(np.float64), np.concatenate([a[:, :32].T, a[:, :64].T]), rtol=1e-3)
    np.testing.assert_array_equal(d.astype(np.float64), a[:8, :40])


@pytest.mark.parametrize(("columns", "dtype"), [(48, "float32"), (128, "bfloat16")])
def test_pairs_side_by_side(columns: int, dtype: str) -> None:
    """RoPE with its pairs interleaved: stored to another block, and in place."""

    @T.prim_func
    def kernel(
        A: T.Tensor((40, columns), dtype), F: T.Tensor((40, columns // 2), dtype), Out: T.Tensor((40, columns), dtype),
        Own: T.Tensor((40, columns), dtype),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a, f = T.alloc_shared((16, columns), dtype), T.alloc_shared((16, columns // 2), dtype)
            o = T.alloc_fragment((16, columns), dtype)
            T.copy(A[bx * 16, 0], a)
            T.copy(F[bx * 16, 0], f)
            for i, j in T.Parallel(16, columns // 2):
                o[i, 2 * j] = a[i, 2 * j] * f[i, j] - a[i, 2 * j + 1]
                o[i, 2 * j + 1] = a[i, 2 * j + 1] * f[i, j] + a[i, 2 * j]
            T.copy(o, Out[bx * 16, 0])
            for i, j in T.Parallel(16, columns // 2):
                a[i, 2 * j] = a[i, 2 * j] + 1
                a[i, 2 * j + 1] = a[i, 2 * j + 1] + a[i, 2 * j]
            T.copy(a, Own[bx * 16, 0])

    (a, f), (out, own), _ = run(kernel)
    even, odd = a[:, ::2], a[:, 1::2]
    close = 1e-5 if dtype == "float32" else 4e-2
    for found, want in ((out, (even * f - odd, odd * f + even)), (own, (even + 1, odd + even + 1))):
        np.testing.assert_allclose(found.astype(np.float64), np.stack(want, 2).reshape(a.shape), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_steps_of_a_store(dtype: str) -> None:
    """Every third column backwards in a block; all of three, and backwards, in a tensor, up to its last row."""

    @T.prim_func
    def kernel(
        A: T.Tensor((40, 20), dtype), Back: T.Tensor((40, 64), dtype), Three: T.Tensor((40, 60), dtype),
        Turned: T.Tensor((40, 20), dtype),
    ):  # fmt: skip
        with T.Kernel(3) as bx:
            a, back = T.alloc_shared((16, 20), dtype), T.alloc_fragment((16, 64), dtype)
            T.copy(A[bx * 16, 0], a)
            T.fill(back, 3)
            for i, j in T.Parallel(8, 20):
                back[2 * i + 1, 62 - 3 * j] = a[i, j]
            T.copy(back, Back[bx * 16, 0])
            for i, j in T.Parallel(16, 20):
                Three[bx * 16 + i, j * 3 + 1] = a[i, j] + 1
                Three[bx * 16 + i, j * 3] = a[i, j]
                Three[bx * 16 + i, j * 3 + 2] = a[i, j] + 2
            for i, j in T.Parallel(16, 20):
                if bx * 16 + i < 40:
                    Turned[bx * 16 + i, 19 - j] = a[i, j]

    (a,), (back, three, turned), _ = run(kernel)
    want = np.full((48, 64), 3.0)
    for block in range(3):
        rows = np.concatenate([a, np.zeros((8, 20))])[block * 16 : block * 16 + 8]
        want[block * 16 + 1 : block * 16 + 16 : 2, 62 - 3 * np.arange(20)] = rows
    np.testing.assert_array_equal(back.astype(np.float64), want[:40])
    np.testing.assert_allclose(three.astype(np.float64), np.repeat(a, 3, 1) + np.arange(60) % 3, rtol=1e-2, atol=1e-2)
    np.testing.assert_array_equal(turned.astype(np.float64), a[:, ::-1])


def test_fills_with_values_of_the_kernel() -> None:
    """Numbers of blocks, scalars and elements fill blocks, parts of them, and tensors."""

    @T.prim_func
    def kernel(
        S: T.Tensor((3,), "float32"), N: T.Tensor((3,), "int32"), A: T.Tensor((3, 40, 33), "float32"),
        B: T.Tensor((3, 40, 33), "float32"), C: T.Tensor((3, 2, 5, 34), "bfloat16"), D: T.Tensor((3, 70), "int32"),
    ):  # fmt: skip
        with T.Kernel(3) as b:
            a, c = T.alloc_shared((40, 33), "float32"), T.alloc_fragment((2, 5, 34), "bfloat16")
            T.copy(A[b, 0, 0], a)
            T.fill(a[3:7, :], S[b])
            T.fill(a[b + 8, 2:9], a[0, 1] * 2)
            T.copy(a, B[b, 0, 0])
            T.fill(c, b * 3 - 2)
            T.fill(c[1, 0:5, 3:34], -(b == 1))
            T.copy(c, C[b, 0, 0, 0])
            T.fill(D[b, 3:67], N[b])
            T.fill(D[b, 0:3], b)
            T.fill(D[b, 67:70], N[b] + b)

    (s, n, a), (out, c, d), _ = run(kernel)
    want = np.repeat(n[:, None], 70, 1)
    for item in range(3):
        a[item, 3:7] = s[item]
        a[item, item + 8, 2:9] = a[item, 0, 1] * 2
        blocks = np.full((2, 5, 34), item * 3 - 2)
        blocks[1, 0:5, 3:34] = -(item == 1)
        np.testing.assert_array_equal(c[item].astype(np.float64), blocks)
        want[item, :3], want[item, 67:] = item, n[item] + item
    np.testing.assert_array_equal(out, a)
    np.testing.assert_array_equal(d, want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_parts_whose_rows_do_not_follow_one_another(dtype: str) -> None:
    """One head of a block of several, copied, reduced and filled."""

    @T.prim_func
    def kernel(
        A: T.Tensor((20, 3, 40), dtype), S: T.Tensor((3, 20, 20), "float32"), R: T.Tensor((3, 40), "float32"),
        Out: T.Tensor((20, 3, 40), dtype), Head: T.Tensor((20, 20), dtype),
    ):  # fmt: skip
        with T.Kernel(1):
            a, b = T.alloc_shared((20, 3, 40), dtype), T.alloc_shared((20, 3, 40), dtype)
            q, r = T.alloc_shared((20, 40), dtype), T.alloc_fragment((1, 40), "float32")
            s = T.alloc_fragment((20, 20), "float32")
            T.copy(A, a)
            T.clear(b)
            for h in range(3):
                T.copy(a[:, h, :], q)
                T.gemm(q, q, s, transpose_B=True, clear_accum=True)
                T.copy(s, S[h, 0, 0])
                T.reduce_max(a[0:20, h, :], r, dim=0)
                T.copy(r, R[h, 0])
            T.copy(a[0:8, 1, 0:40], b[12:20, 0, 0:40])
            T.fill(b[0:9, 2, :], 4)
            T.copy(b, Out)
            T.copy(a[:, 2, 3:23], Head)

    (a,), (s, r, out, head), _ = run(kernel)
    np.testing.assert_allclose(s, np.einsum("ihd,jhd->hij", a, a), rtol=2e-2, atol=1e-1)
    np.testing.assert_array_equal(r, a.max(0))
    want = np.zeros(a.shape)
    want[12:20, 0], want[0:9, 2] = a[0:8, 1], 4
    np.testing.assert_array_equal(out.astype(np.float64), want)
    np.testing.assert_array_equal(head.astype(np.float64), a[:, 2, 3:23])


def test_a_branch_that_stores_an_element_twice() -> None:
    """What is stored first is rounded to the block's dtype, and read by what is stored over it."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 48), "float32"), B: T.Tensor((40, 48), "bfloat16"), C: T.Tensor((40, 48), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((40, 48), "float32"), T.alloc_fragment((40, 48), "bfloat16")
            c = T.alloc_fragment((40, 48), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(40, 48):
                if a[i, j] > 0.5:
                    b[i, j] = a[i, j] * 1.01
                    c[i, j] = b[i, j] - a[i, j]
                    b[i, j] = T.min(b[i, j], 1.5)
                else:
                    b[i, j] = a[i, j]
                    if i < j:
                        b[i, j] = b[i, j] * 2
                        c[i, j] = 1.0
                    else:
                        c[i, j] = b[i, j]
            T.copy(b, B)
            T.copy(c, C)

    (a,), (b, c), _ = run(kernel)
    first, low = (a * 1.01).astype(b.dtype).astype(np.float64), a.astype(b.dtype).astype(np.float64)
    upper = np.triu(np.ones((40, 48)), 1) > 0
    np.testing.assert_allclose(
        b.astype(np.float64), np.where(a > 0.5, np.minimum(first, 1.5), low * (1 + upper)), rtol=1e-2
    )
    np.testing.assert_allclose(c, np.where(a > 0.5, first - a, np.where(upper, 1, low)), rtol=1e-2, atol=1e-2)


def test_a_narrower_nest_reads_the_tiles_of_its_own_rows() -> None:
    """The second row of tiles of a wider block does not follow the first tiles of its first row."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 96), "float32"), Out: T.Tensor((64, 32), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((64, 96), "float32"), T.alloc_fragment((64, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(64, 32):
                b[i, j] = a[i, j] + a[i, j + 32]
            T.copy(b, Out)

    (a,), (out,), _ = run(kernel)
    np.testing.assert_allclose(out, a[:, :32] + a[:, 32:64], rtol=1e-6)


def test_one_row_of_a_turned_part() -> None:
    """A block of one row stays a matrix."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 32), "float32"), Out: T.Tensor((8, 64), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((40, 32), "float32"), T.alloc_fragment((8, 64), "float32")
            T.copy(A, a)
            T.clear(b)
            for i, j in T.Parallel(1, 7):
                b[i, j] = b[i, j] + a[j, i]
            T.copy(b, Out)

    (a,), (out,), _ = run(kernel)
    np.testing.assert_array_equal(out[0, :7], a[:7, 0])
    assert not out[1:].any()
    assert not out[0, 7:].any()


def test_chosen_elements_keep_infinity_and_nan_apart() -> None:
    """A row is chosen by a mask, not by a product with zeros."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 64), "float32"), Out: T.Tensor((3, 64), "float32")):
        with T.Kernel(1):
            a, b = T.alloc_shared((3, 64), "float32"), T.alloc_fragment((3, 64), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(3, 64):
                b[i, j] = a[2, j]
            T.copy(b, Out)

    exploration = ttx.explore(kernel)
    (a,) = exploration.inputs()
    a[:2] = [[np.inf], [np.nan]]
    a[2, 5], a[2, 6] = -np.inf, np.nan
    assert exploration.check([a])
    np.testing.assert_array_equal(exploration.run([a]).outputs[0], np.broadcast_to(a[2], (3, 64)))


HEAD = """import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1) as bx:
        a = T.alloc_shared((64, 64), "float32")
        b = T.alloc_fragment((64, 64), "float32")
        v = T.alloc_fragment((64,), "float32")
        T.copy(A, a)
        T.clear(b)
"""


@pytest.mark.parametrize(
    ("body", "line", "kind", "message", "hint"),
    [
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, 3] = a[i, j]", 1, Unsupported,
            "b[i, 3]: each turn of j stores to the same element",
            "store each element once; sums over turns are T.reduce_sum, or T.atomic_add(b[i, 3], value)",
        ),
        (
            "for i, j in T.Parallel(64, 32):\n    b[i, j] = a[i, j]\n    b[i, j + 32] = b[i, j + 16]", 2, Unsupported,
            "one T.Parallel stores to b and reads it at other elements", "",
        ),
        (
            "for j in T.Parallel(64):\n    b[0, j] = a[0, j]\n    b[bx, j] = a[1, j]", 2, Unsupported,
            "b[bx, j]: two stores of one T.Parallel to b may overlap", "",
        ),
        (
            "for i, j in T.Parallel(64, 16):\n    b[i, 2 * j] = a[i, j]\n    b[i, 3 * j] = a[i, j]", 2, Unsupported,
            "one T.Parallel stores to the same elements of b in several iterations", "",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, 2 * j] = a[i, j]", 1, KernelError,
            "b has 64 elements along axis 1, but 2 * j reaches 126", "make the buffer as large as the loop",
        ),
        (
            "for i, j in T.Parallel(64, 32):\n    B[i, 2 * j + 1] = a[i, j]", 1, Unsupported,
            "T.Parallel stores to B[i, 2 * j + 1]: of each 2 elements it leaves some as they are",
            "store all of them in one T.Parallel: B[i, 2 * j + 1], B[i, j * 2 + 2] and so on",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = b[2, j]", 1, Unsupported,
            "one T.Parallel stores to b and reads it at other elements", "",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = a[64, j]", 1, KernelError,
            "a has 64 elements along axis 0, but the index reaches 64", "make the buffer as large as the loop",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = a[i, j + 32]", 1, KernelError,
            "a has 64 elements along axis 1, but j reaches 95", "make the buffer as large as the loop",
        ),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, body: str, line: int, kind: type[TTExploreError], message: str, hint: str) -> None:
    file = tmp_path / "kernels.py"
    text = HEAD + "".join(f"        {one}\n" for one in body.split("\n")) + "        T.copy(b, B)\n"
    file.write_text(text)
    error = ttx.explore(f"{file}::kernel").error
    assert isinstance(error, kind), str(error)
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.span is not None
    assert error.span.line == HEAD.count("\n") + 1 + line


def test_an_empty_loop_has_no_parts() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for _ in T.serial(4):
                pass
            T.copy(a, B)

    (a,), (b,), _ = run(kernel)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int4", "float8_e4m3fn"])
def test_rows_columns_and_elements_of_8_bits(dtype: str) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((40, 64), dtype), Row: T.Tensor((64,), dtype), Column: T.Tensor((40,), dtype),
        Element: T.Tensor((40, 64), dtype),
    ):  # fmt: skip
        with T.Kernel(1):
            a, e = T.alloc_shared((40, 64), dtype), T.alloc_fragment((40, 64), dtype)
            row, column = T.alloc_fragment((64,), dtype), T.alloc_fragment((40,), dtype)
            T.copy(A, a)
            for j in T.Parallel(64):
                row[j] = a[37, j]
            for i in T.Parallel(40):
                column[i] = a[i, 5]
            for i, j in T.Parallel(40, 64):
                e[i, j] = a[1, 63]
            T.copy(row, Row)
            T.copy(column, Column)
            T.copy(e, Element)

    (a,), outputs, _ = run(kernel)
    for found, wanted in zip(outputs, (a[37], a[:, 5], np.full(a.shape, a[1, 63])), strict=True):
        np.testing.assert_array_equal(found.astype(np.float64), wanted)
