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
    assert "element by element" not in "\n".join(exploration.plan.notes)
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
            "b[i, j + 16]: one T.Parallel stores to b and reads it at other elements", "",
        ),
        (
            "for j in T.Parallel(64):\n    b[0, j] = a[0, j]\n    b[bx, j] = a[1, j]", 2, Unsupported,
            "b[bx, j]: two stores of one T.Parallel to b may overlap", "",
        ),
        (
            "for i, j in T.Parallel(64, 64):\n    b[i, j] = b[2, j]", 1, Unsupported,
            "b[2, j]: one T.Parallel stores to b and reads it at other elements", "",
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
