"""What usual inputs do not show: types of parameters, lengths that are the same, finite numbers for infinite ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.porting.port as port_module
from tests.porting.test_port import ATTENTION
from ttexplore.errors import UsageError
from ttexplore.porting.foreign.skeletons import Skeleton
from ttexplore.porting.proof.results import PortProof

KERNEL = """
#include <cfloat>
__global__ void k(const float *x, float *y, int n, float s, {kind} t) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}
"""


def proof_of(source: str) -> PortProof:
    proof = ttx.port(source).proof
    assert proof is not None
    return proof


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int", "unsigned u = t; y[i] = x[i] + u * 1.5f;"),
        ("int", "size_t u = t; y[i] = x[i] + u * 2;"),
        ("int", "y[i] = x[i] * (unsigned)t;"),
        ("int", "y[i] = x[i] * (t + 1u);"),
        ("unsigned", "int u = t; y[i] = x[i] * u;"),
        ("unsigned", "y[i] = x[i] + (t + t);"),
        ("long long", "int u = t; y[i] = x[i] * u;"),
    ],
)
def test_whole_numbers_that_become_others_give_a_draft(kind: str, body: str) -> None:
    (kernel,) = ttx.port(KERNEL.format(kind=kind, body=body)).kernels
    assert kernel.proof is None
    assert kernel.draft is not None
    assert kernel.draft.difference is not None
    assert ", with t = " in kernel.draft.reason


@pytest.mark.parametrize("kind", ["int", "unsigned", "long long", "size_t", "short", "bool", "uint8_t", "float"])
def test_whole_numbers_that_stay_what_they_are_are_written(kind: str) -> None:
    assert proof_of(KERNEL.format(kind=kind, body="y[i] = x[i] * t;"))


@pytest.mark.parametrize("condition", ["!(v > 0)", "!(v > 0 && v < 2)", "!(v <= 1)"])
def test_a_comparison_that_does_not_hold_is_not_the_opposite_one_for_nan(condition: str) -> None:
    source = KERNEL.format(kind="int", body=f"float v = x[i]; y[i] = {condition} ? 3.f : v;")
    x = np.array([[np.nan, 1.0, -2.0, 0.5] * 8] * 4, np.float32)
    exploration = ttx.explore(ttx.port(source), rows=4, columns=32, block=4, dtype="float32")
    result = exploration.reference([x])[0]
    tests = {"!(v > 0)": ~(x > 0), "!(v > 0 && v < 2)": ~((x > 0) & (x < 2)), "!(v <= 1)": ~(x <= 1)}
    np.testing.assert_array_equal(result, np.where(tests[condition], np.float32(3), x))


S = np.float32(0.1)
BIG, SMALL = np.float32(1e25), np.float32(1e-25)


@pytest.mark.parametrize(
    ("body", "s", "expected"),
    [
        ("s * 3.f == 0.3f ? x[i] : -x[i]", S, 1 if S * np.float32(3) == np.float32(0.3) else -1),
        ("s + 0.6f > 0.7f ? x[i] : -x[i]", S, 1 if S + np.float32(0.6) > np.float32(0.7) else -1),
        ("(s - 0.1f) * 1e9f == 0.f ? x[i] : -x[i]", S, 1),
        ("x[i] * (s * s / s / s)", BIG, np.inf),
        ("s * s > 0.f ? x[i] : -x[i]", SMALL, -1),
        ("1.f / s < 10.f ? x[i] : -x[i]", S, 1 if np.float32(1) / S < 10 else -1),
    ],
)
def test_what_is_computed_from_parameters_is_float32(body: str, s: np.float32, expected: float) -> None:
    port = ttx.port(KERNEL.format(kind="int", body=f"y[i] = {body};"))
    assert port.proof is not None
    x = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    exploration = ttx.explore(port, rows=4, columns=4, block=4, s=float(s), dtype="float32")
    np.testing.assert_array_equal(exploration.reference([x])[0], x * np.float32(expected))


TRITON = """
import triton
import triton.language as tl
@triton.jit
def k(a, out, n, t, u, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + i, mask=i < n)
    tl.store(out + i, {value}, mask=i < n)
"""


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(
    ("value", "parameters", "expected"),
    [
        ("x * (t * t)", {"t": 70_000}, wrapped(70_000**2)),
        ("x * (t * 32767)", {"t": 70_000}, wrapped(70_000 * 32_767)),
        ("x * (t * 32767)", {"t": 0.5}, 16_383.5),
        ("x * (t * u + 1)", {"t": 70_000, "u": 80_000}, wrapped(70_000 * 80_000 + 1)),
        ("x * (t * u + 1)", {"t": 3, "u": 0.5}, 2.5),
        ("x * (t * t * 0.5)", {"t": 70_000}, np.float32(wrapped(70_000**2)) * 0.5),
        ("x * (t * t * u)", {"t": 70_000, "u": 0.5}, np.float32(wrapped(70_000**2)) * 0.5),
        ("x * (u * (t + t))", {"t": 2**31 - 1, "u": 3}, -6),
        ("x * (-t)", {"t": -(2**31)}, -(2**31)),
        ("x * (t / u)", {"t": 1, "u": 3}, np.float32(1) / np.float32(3)),
    ],
)
def test_whole_parameters_of_triton_wrap_around(value: str, parameters: dict[str, Any], expected: float) -> None:
    port = ttx.port(TRITON.format(value=value))
    assert port.proof is not None
    x = np.array([[1.0, -2.0, 4.0, 0.0]] * 4, np.float32)
    exploration = ttx.explore(port, rows=4, columns=4, block=4, dtype="float32", **parameters)
    np.testing.assert_array_equal(exploration.reference([x])[0], x * np.float32(expected))


def test_constants_of_the_compiler_are_those_of_python() -> None:
    source = TRITON.replace("u, BLOCK", "u: tl.constexpr, BLOCK").format(value="x * (u * u / u)")
    port = ttx.port(source)
    x = np.ones((4, 4), np.float32)
    exploration = ttx.explore(port, rows=4, columns=4, block=4, dtype="float32", u=1e25)
    np.testing.assert_array_equal(exploration.reference([x])[0], x * np.float32(1e25))


def test_a_conversion_before_a_product_that_would_wrap_gives_a_draft() -> None:
    source = TRITON.format(value="x * (t.to(tl.float32) * t)")
    (kernel,) = ttx.port(source).kernels
    assert not kernel.skeleton


ONE_LENGTH = """
__global__ void k(const float *x, float *y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float m = -INFINITY;
        for (int j = 0; j < rows; j++) m = fmaxf(m, x[r * cols + j]);
        y[r] = m;
    }
}
"""


def test_one_length_for_two_axes_is_one_size() -> None:
    port = ttx.port(ONE_LENGTH)
    assert port.proof is not None
    with pytest.raises(UsageError, match="takes no argument columns"):
        ttx.explore(port, rows=3, columns=5)
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    exploration = ttx.explore(port, rows=6, block=4, dtype="float32")
    np.testing.assert_array_equal(exploration.reference([x])[0], x.max(axis=1))


def test_two_lengths_are_two_sizes() -> None:
    port = ttx.port(ONE_LENGTH.replace("j < rows", "j < cols"))
    exploration = ttx.explore(port, rows=3, columns=5, block=4, dtype="float32")
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(exploration.reference([x])[0], x.max(axis=1))


HIDES = {
    "no number": 's = tl.where(m[:, None] >= j[None, :], s, float("-inf"))',
    "instead": "s = tl.where(m[:, None] >= j[None, :], s, -1.0e6)",
    "added": "s = s + tl.where(m[:, None] >= j[None, :], 0, -1.0e6)",
    "small": "s = tl.where(m[:, None] >= j[None, :], s, -30.0)",
}


@pytest.mark.parametrize("how", ["instead", "added", "small"])
def test_scores_below_those_that_hide(how: str) -> None:
    """Where all scores that a row sees are less than what hides the others, those count."""
    port = ttx.port(ATTENTION.replace(HIDES["no number"], HIDES[how]))
    assert port.proof is not None
    heads, length, dim = 2, 16, 8
    draw = np.random.default_rng(1)
    q, k = (1000 * draw.normal(size=(heads, length, dim)) for _ in range(2))
    q[0], q[1, :4] = 5000, 0.001
    k[0] = -np.abs(k[0])
    v = draw.normal(size=(heads, length, dim))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(dim)
    is_seen = np.tri(length, dtype=bool)
    other = {"instead": -1e6, "added": scores - 1e6, "small": -30.0}[how]
    scores = np.where(is_seen, scores, other)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = (weights @ v) / weights.sum(axis=-1, keepdims=True)
    exploration = ttx.explore(port, heads=heads, length=length, dim=dim, block=4, dtype="float32")
    inputs = [tensor.astype(np.float32) for tensor in (q, k, v)]
    np.testing.assert_allclose(exploration.reference(inputs)[0], expected, rtol=1e-3, atol=1e-3)


def test_a_number_that_hides_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skeleton that hides them altogether differs."""
    source = ATTENTION.replace(HIDES["no number"], HIDES["instead"])
    text = ttx.port(source).skeleton
    assert "-1442695.0408889635)" in text
    written = port_module.skeleton

    def with_infinity(*arguments: Any) -> Skeleton:
        skeleton = written(*arguments)
        return replace(skeleton, text=skeleton.text.replace("-1442695.0408889635)", '-T.infinity("float32"))'))

    monkeypatch.setattr(port_module, "skeleton", with_infinity)
    (kernel,) = ttx.port(source).kernels
    assert kernel.draft is not None
    assert kernel.draft.difference is not None
    assert kernel.draft.difference.inputs == "hiding"


MAXIMA = {
    "loop": """
__global__ void k(const float *x, float *y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float m = -FLT_MAX;
        for (int j = 0; j < cols; j++) m = fmaxf(m, x[r * cols + j]);
        y[r] = m;
    }
}
""",
    "warp": """
__global__ void k(const float *x, float *y, int rows, int cols) {
    int r = blockIdx.x;
    float m = -FLT_MAX;
    for (int j = threadIdx.x; j < cols; j += 32) m = fmaxf(m, x[r * cols + j]);
    for (int o = 16; o > 0; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, o));
    if (threadIdx.x == 0) y[r] = m;
}
""",
    "shared memory": """
__global__ void k(const float *x, float *y, int rows, int cols) {
    __shared__ float part[256];
    int r = blockIdx.x, t = threadIdx.x;
    float m = -FLT_MAX;
    for (int j = t; j < cols; j += blockDim.x) m = fmaxf(m, x[r * cols + j]);
    part[t] = m;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] = fmaxf(part[t], part[t + s]);
        __syncthreads();
    }
    if (t == 0) y[r] = part[0];
}
""",
}
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("how", MAXIMA)
@pytest.mark.parametrize(
    ("begin", "number"),
    [("FLT_MAX", LARGEST), ("INFINITY", np.inf), ("DBL_MAX", np.inf), ("1e30f", 1e30), ("2.f", 2.0)],
)
@pytest.mark.parametrize("takes", ["max", "min"])
def test_maxima_begin_with_the_number_of_the_source(how: str, begin: str, number: float, takes: str) -> None:
    source = MAXIMA[how].replace("FLT_MAX", begin)
    if takes == "min":
        source = source.replace(f"-{begin}", begin).replace("fmaxf", "fminf")
    port = ttx.port(source)
    assert port.proof is not None
    x = np.array([[-np.inf] * 6, [np.inf] * 6, [-1e38] * 6, [1, 5, -np.inf, 3, 3, 3]], np.float32)
    exploration = ttx.explore(port, rows=4, columns=6, block=4, dtype="float32")
    expected = np.maximum(x.max(axis=1), -number) if takes == "max" else np.minimum(x.min(axis=1), number)
    np.testing.assert_array_equal(exploration.reference([x])[0], expected.astype(np.float32))


def test_elements_of_no_thread_that_are_finite_are_tried() -> None:
    """Threads beyond the row have the least number, which is larger than an infinite one."""
    source = MAXIMA["shared memory"].replace(
        "for (int j = t; j < cols; j += blockDim.x) m = fmaxf(m, x[r * cols + j]);", ""
    )
    source = source.replace("float m = -FLT_MAX", "float m = t < cols ? x[r * cols + t] : -FLT_MAX")
    (kernel,) = ttx.port(source).kernels
    assert not kernel.skeleton


def test_blocks_that_go_beyond_are_no_proof() -> None:
    source = """
    __global__ void k(const float *x, float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = x[i - 2 * blockIdx.x * blockDim.x];
    }
    """
    (kernel,) = ttx.port(source).kernels
    assert kernel.proof is None
