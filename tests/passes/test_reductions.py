# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Reductions, vectors in columns and elements of tensors against NumPy, and what they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus.direct import branches, elements_of_tensors, from_tensor_to_tensor, scattered_reads
from tests.corpus.reductions import online_softmax, reduced, scaled_rows, softmax


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


@pytest.mark.parametrize("engine", ["auto", "fpu", "sfpu"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", [*_NUMPY])
def test_each_reduction(kind: str, dim: int, engine: str) -> None:
    """With tails along both axes, and a second block that is joined to the first."""
    (a,), (found,), _ = run(reduced(kind, (40, 70), dim, keeps=True), eltwise=engine)
    parts = np.stack([a[:, :40], a[:, 40:] * 0.5])
    want = _NUMPY[kind](parts, 2 + dim)
    want = {"sum": want.sum(0), "max": want.max(0), "min": want.min(0)}[kind.removeprefix("abs")]
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
