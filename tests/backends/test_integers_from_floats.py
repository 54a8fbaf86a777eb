"""What integers, comparisons and long sums of bfloat16 may be, where rounding before them decides: right results pass,
and the same results with one fault do not. Where rounding decides is computed here, in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from ttexplore.backends.compare import compare
from ttexplore.exploration import Exploration

BF16 = ml_dtypes.bfloat16


def quotients(rows: int, columns: int, dtype: str, out: str, step: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype), S: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), out)
    ):
        with T.Kernel(rows // 32) as by:
            a, s = T.alloc_fragment((32, columns), dtype), T.alloc_fragment((32, columns), dtype)
            q = T.alloc_fragment((32, columns), out)
            T.copy(A[by * 32, 0], a)
            T.copy(S[by * 32, 0], s)
            for i, j in T.Parallel(32, columns):
                if step == "round":
                    q[i, j] = T.cast(T.round(a[i, j] / s[i, j]), out)
                elif step == "floor":
                    q[i, j] = T.cast(T.floor(a[i, j] / s[i, j]), out)
                elif step == "ceil":
                    q[i, j] = T.cast(T.ceil(a[i, j] / s[i, j]), out)
                elif step == "cast":
                    q[i, j] = T.cast(a[i, j] / s[i, j], out)
                elif step == "reciprocal":
                    q[i, j] = T.cast(T.round(a[i, j] * (1.0 / s[i, j])), out)
                elif step == "greater":
                    q[i, j] = T.cast(a[i, j] / s[i, j] * 3.0 > 7.5, out)
                elif step == "equal":
                    q[i, j] = T.cast(a[i, j] * (1.0 / s[i, j]) == 1.5, out)
                elif step == "choice":
                    q[i, j] = T.if_then_else(a[i, j] / s[i, j] * 3.0 > 7.5, 1.0, 0.0)
            T.copy(q, B[by * 32, 0])

    return main


def near_steps(rows: int, columns: int, dtype: str, seed: int) -> list[Any]:
    """Numbers whose quotients are halves of integers, but for the rounding of the first."""
    random, own = np.random.default_rng(seed), np.float32 if dtype == "float32" else BF16
    scales = random.uniform(0.5, 3, (rows, columns)).astype(own)
    return [(scales.astype(np.float64) * random.integers(-40, 41, scales.shape) / 2).astype(own), scales]


STEPS: dict[str, Callable[[Any], Any]] = {
    "round": np.rint, "reciprocal": np.rint, "floor": np.floor, "ceil": np.ceil, "cast": np.trunc,
    "greater": lambda q: 3 * q > 7.5, "choice": lambda q: 3 * q > 7.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "out", "step", "shape"),
    [
        ("float32", "int8", "round", (64, 48)), ("float32", "int8", "reciprocal", (32, 64)),
        ("bfloat16", "int8", "reciprocal", (96, 33)), ("float32", "int32", "floor", (64, 48)),
        ("float32", "int32", "ceil", (32, 96)), ("float32", "uint8", "cast", (64, 48)),
        ("float32", "int4", "cast", (32, 48)), ("float32", "int8", "greater", (96, 64)),
        ("float32", "bool", "equal", (96, 64)), ("float32", "float32", "choice", (96, 64)),
    ],
)  # fmt: skip
def test_where_rounding_decides_both_integers_are_right(
    dtype: str, out: str, step: str, shape: tuple[int, int]
) -> None:  # fmt: skip
    lowered, differing = ttx.explore(quotients, rows=shape[0], columns=shape[1], dtype=dtype, out=out, step=step), 0
    for seed in range(2, 5):
        arrays = near_steps(*shape, dtype, seed)
        for backend in ("emulator", "interpreter"):
            run = lowered.run(arrays, backend=backend)
            assert run.passed, run.message
            differing += int((np.asarray(run.outputs[0]) != lowered.reference(arrays)[0]).sum())
    assert differing, "nothing lay near a step, so nothing was tested"


@dataclass(frozen=True)
class Case:
    lowered: Exploration
    arrays: list[Any]
    reference: Any

    def passes(self, outputs: Any) -> bool:
        rounding = self.lowered._rounding(tuple(self.arrays))
        return compare([outputs], [self.reference], self.lowered.plan.precisions, rounding).passed


@pytest.mark.parametrize(
    ("dtype", "out", "step"),
    [("float32", "int8", "round"), ("float32", "int32", "floor"), ("float32", "int32", "ceil"),
     ("float32", "uint8", "cast"), ("bfloat16", "int8", "reciprocal"), ("float32", "int8", "greater"),
     ("float32", "float32", "choice")],
)  # fmt: skip
def test_an_integer_that_no_rounding_gives_is_found(dtype: str, out: str, step: str) -> None:
    shape = (64, 48)
    lowered = ttx.explore(quotients, rows=shape[0], columns=shape[1], dtype=dtype, out=out, step=step)
    arrays = [np.abs(one) for one in near_steps(*shape, dtype, 2)]
    case = Case(lowered, arrays, lowered.reference(arrays)[0])
    exact = arrays[0].astype(np.float64) / arrays[1].astype(np.float64)
    # Quotients are float32, whatever they are of, and the result of a few operations.
    reach = exact * 2.0**-23
    low, high, wide = (STEPS[step](exact + side * reach).astype(np.int64) for side in (-0.2, 0.2, 40.0))
    low_wide = STEPS[step](exact - 40 * reach).astype(np.int64)
    found: dict[str, list[bool]] = {"one step off": [], "either side": []}
    reference = np.asarray(case.reference).astype(np.int64)
    for place in map(tuple, np.argwhere(np.ones(shape, bool))[::97].tolist() + np.argwhere(low != high).tolist()[:12]):
        for off in (-1, 1):
            other = int(reference[place]) + off
            if not (0 <= other <= 1 if step in ("greater", "choice") else other >= 0):
                continue
            planted = np.array(case.reference)
            planted[place] = other
            if low[place] <= other <= high[place]:
                found["either side"].append(case.passes(planted))
            elif not low_wide[place] <= other <= wide[place]:
                found["one step off"].append(case.passes(planted))
    assert len(found["one step off"]) > 10
    assert not any(found["one step off"])
    assert all(found["either side"])


def test_sums_of_integers_are_exact() -> None:
    """What int32 sums of int8 products are does not depend on rounding, however large they are."""

    def kernel(depth: int = 512) -> Any:
        @T.prim_func
        def main(A: T.Tensor((32, depth), "int8"), W: T.Tensor((depth, 32), "int8"), C: T.Tensor((32, 32), "int32")):
            with T.Kernel(1):
                a, w = T.alloc_shared((32, depth), "int8"), T.alloc_shared((depth, 32), "int8")
                c = T.alloc_fragment((32, 32), "int32")
                T.copy(A, a)
                T.copy(W, w)
                T.gemm(a, w, c, clear_accum=True)
                T.copy(c, C)

        return main

    lowered = ttx.explore(kernel)
    arrays = [np.full((32, 512), 127, np.int8), np.full((512, 32), 126, np.int8)]
    case = Case(lowered, arrays, lowered.reference(arrays)[0])
    assert case.passes(np.full((32, 32), 127 * 126 * 512, np.int32))
    planted = np.array(case.reference)
    planted[3, 4] += 1
    assert not case.passes(planted)


# Sums of bfloat16


def long_sum(depth: int, step: int, out: str, skipped: int = -1) -> Any:
    @T.prim_func
    def main(A: T.Tensor((32, depth), "bfloat16"), W: T.Tensor((depth, 32), "bfloat16"), C: T.Tensor((32, 32), out)):
        with T.Kernel(1):
            a, w = T.alloc_shared((32, step), "bfloat16"), T.alloc_shared((step, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "bfloat16")
            T.clear(c)
            for k in T.serial(depth // step):
                T.copy(A[0, k * step], a)
                T.copy(W[k * step, 0], w)
                if k == skipped:
                    T.clear(a)
                T.gemm(a, w, c)
            T.copy(c, C)

    return main


def factors(depth: int, seed: int, sign: str) -> list[Any]:
    random = np.random.default_rng(seed)
    pair = [random.standard_normal(shape) for shape in ((32, depth), (depth, 32))]
    return [
        (np.abs(one) if sign == "positive" else np.ones_like(one) if sign == "ones" else one).astype(BF16)
        for one in pair
    ]


@pytest.mark.parametrize(
    ("depth", "step", "out", "sign"),
    [
        (4096, 32, "float32", "both"), (4096, 32, "bfloat16", "both"), (4096, 128, "float32", "positive"),
        # A sum of bfloat16 to which each term adds less than half of its last place.
        (16384, 32, "bfloat16", "ones"), (8192, 32, "bfloat16", "positive"),
    ],
)  # fmt: skip
def test_sums_that_are_rounded_more_or_less_often_are_right(depth: int, step: int, out: str, sign: str) -> None:
    lowered = ttx.explore(long_sum, depth=depth, step=step, out=out)
    for seed in (0, 1):
        arrays = factors(depth, seed, sign)
        want = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64)
        for backend in ("emulator", "interpreter"):
            run = lowered.run(arrays, backend=backend)
            assert run.passed, run.message
            assert np.abs(run.outputs[0].astype(np.float64) - want).max() < 0.005 * np.abs(want).max()


@pytest.mark.parametrize("out", ["bfloat16", "float32"])
def test_a_sum_without_one_of_its_terms_is_found(out: str) -> None:
    lowered, arrays = ttx.explore(long_sum, depth=4096, step=32, out=out), factors(4096, 0, "both")
    case = Case(lowered, arrays, lowered.reference(arrays)[0])
    short = ttx.explore(long_sum, depth=4096, step=32, out=out, skipped=100)
    for backend in ("emulator", "interpreter"):
        assert case.passes(lowered.run(arrays, backend=backend).outputs[0])
        assert not case.passes(short.run(arrays, backend=backend).outputs[0])


def test_a_cast_to_bfloat16_rounds() -> None:
    """What is left of a number beside its bfloat16 is no rounding error: a program without the cast gives 0."""

    def kernel() -> Any:
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1):
                a = T.alloc_fragment((32, 32), "float32")
                T.copy(A, a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] - T.cast(T.cast(a[i, j], "bfloat16"), "float32")
                T.copy(a, B)

        return main

    lowered = ttx.explore(kernel)
    arrays = [np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)]
    case = Case(lowered, arrays, lowered.reference(arrays)[0])
    assert case.passes(lowered.run(arrays).outputs[0])
    assert not case.passes(np.zeros((32, 32), np.float32))
