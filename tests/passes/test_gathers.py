# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Gathered blocks and views of tensors against NumPy, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus.gathers import convolution, gathered, viewed
from tests.said import said
from ttexplore.errors import KernelError, TTExploreError, Unsupported


def run(kernel: Any, target: str = "wormhole_n150") -> tuple[list[Any], list[Any], Any]:
    """The inputs as float64, the outputs of the emulator, and the exploration, whose steps are all right."""
    exploration = ttx.explore(kernel, target=target)
    assert exploration.error is None, str(exploration.error)
    check = exploration.check()
    assert check, str(check)
    made = exploration.run()
    assert made.passed, made.message
    return [one.astype(np.float64) for one in exploration.inputs()], list(made.outputs), exploration


@pytest.mark.parametrize("target", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize(
    ("image", "size", "stride", "dilation", "padding", "block_k", "dtype"),
    [
        ((1, 8, 16, 32), 3, 1, 1, 1, 32, "bfloat16"),
        ((2, 9, 7, 32), 3, 2, 1, 1, 32, "float32"),
        ((1, 10, 10, 6), 3, 1, 2, 2, 27, "float32"),
    ],
)
def test_convolution(
    image: Any, size: int, stride: int, dilation: int, padding: int, block_k: int, dtype: str, target: str
) -> None:
    kernel = convolution(image, 32, size, stride, dilation, padding, block_k, dtype)
    (a, filters), (out,), exploration = run(kernel, target)
    rows, columns = out.shape[1:3]
    padded = np.pad(a, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    want = sum(
        padded[
            :, y * dilation : y * dilation + stride * (rows - 1) + 1 : stride,
            x * dilation : x * dilation + stride * (columns - 1) + 1 : stride,
        ] @ filters[y, x]
        for y in range(size)
        for x in range(size)
    )  # fmt: skip
    np.testing.assert_allclose(out.astype(np.float64), want, rtol=2e-2, atol=3e-1)
    (note,) = (one for one in said(exploration.plan) if one.startswith("Image is gathered"))
    # Of 16 bfloat16 numbers every second run is not aligned as Blackhole reads its memory.
    runs = image[3] % 16 == 0 and (dtype == "float32" or target == "wormhole_n150")
    assert ("runs of 16 elements" in note) == runs, note
    assert ("each waited for" in note) != runs, note


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_computed_places(dtype: str) -> None:
    (a, v), (out, d, e), _ = run(gathered(dtype))
    i, j = np.indices((40, 33))
    for x in range(2):
        want = a[x, i // 2, 2 * j] + a[x + 1, 39 - i, j % 7] * v[np.minimum(i + 2 * j, 99)] * (i + 2 * j < 100)
        y = i + x - 1
        inside = (y >= 0) & (y < 39)
        want += np.where(inside, a[(i + j) % 3, np.clip(y, 0, 39), 2 * j + 1], 0)
        np.testing.assert_allclose(out[x], want, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(e[x].astype(np.float64), a[x, :, :24:3])
        # A row is not transposed: all bits of it stay.
        np.testing.assert_array_equal(d[x], np.diagonal(a[x])[:40])


def test_views() -> None:
    (a,), (b, c), _ = run(viewed())
    np.testing.assert_array_equal(b.astype(np.float64), (a * 2).reshape(2, 8, 32, 64))
    line = a.reshape(-1)
    want = [[line[by * 4096 + np.arange(32) * 64 + bx] for bx in range(2)] for by in range(8)]
    np.testing.assert_array_equal(c, np.array(want).reshape(8, 64))


HEAD = """import ttexplore.language as T
@T.prim_func
def kernel(A: T.Tensor((2, 14, 14, 64), "bfloat16"), B: T.Tensor((392, 64), "bfloat16")):
    with T.Kernel(7) as bx:
        a = T.alloc_shared((56, 64), "bfloat16")
"""


@pytest.mark.parametrize(
    ("body", "kind", "message", "hint"),
    [
        (
            'v = T.Tensor((391, 64), "bfloat16", A.data)', KernelError,
            "a tensor of (391, 64) bfloat16 over the memory of A, which is (2, 14, 14, 64) bfloat16",
            "give both the same dtype and number of elements",
        ),
        (
            'v = T.Tensor((392, 64), "float32", A.data)', KernelError,
            "a tensor of (392, 64) float32 over the memory of A", "",
        ),
        (
            'v = T.Tensor((56, 64), "bfloat16", a)', Unsupported,
            "T.Tensor over the memory of", "pass the memory of a tensor: T.Tensor(shape, dtype, A.data)",
        ),
        (
            "T.im2col(A, A, bx, 0, 3, 1, 1, 1)", KernelError,
            "T.im2col takes a tensor of four dimensions and a block of two",
            "write T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad)",
        ),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, body: str, kind: type[TTExploreError], message: str, hint: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(
        HEAD + "".join(f"        {one}\n" for one in body.split("\n")) + "        T.copy(a, B[bx * 56, 0])\n"
    )
    with pytest.raises(kind) as raised:
        ttx.explore(f"{file}::kernel")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.span is not None
    assert raised.value.span.line == HEAD.count("\n") + 1 + body.count("\n")
