"""What trials do not show is said beside a proof, and whole numbers are tried where they wrap around."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
from tests.porting.test_port import ATTENTION
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
    assert not proof_of(KERNEL.format(kind=kind, body="y[i] = x[i] * t;")).assumed


@pytest.mark.parametrize("condition", ["!(v > 0)", "!(v > 0 && v < 2)", "!(v <= 1)"])
def test_a_comparison_that_does_not_hold_is_not_the_opposite_one_for_nan(condition: str) -> None:
    source = KERNEL.format(kind="int", body=f"float v = x[i]; y[i] = {condition} ? 3.f : v;")
    x = np.array([[np.nan, 1.0, -2.0, 0.5] * 8] * 4, np.float32)
    exploration = ttx.explore(ttx.port(source), rows=4, columns=32, block=4, dtype="float32")
    result = exploration.reference([x])[0]
    tests = {"!(v > 0)": ~(x > 0), "!(v > 0 && v < 2)": ~((x > 0) & (x < 2)), "!(v <= 1)": ~(x <= 1)}
    np.testing.assert_array_equal(result, np.where(tests[condition], np.float32(3), x))


@pytest.mark.parametrize(
    ("body", "assumed"),
    [
        ("y[i] = s * 3.f == 0.3f ? x[i] : -x[i];", "what is computed from s alone is a float64"),
        ("y[i] = x[i] * (s * s / s);", "what is computed from s alone is a float64"),
    ],
)
def test_what_is_computed_from_parameters_is_said(body: str, assumed: str) -> None:
    proof = proof_of(KERNEL.format(kind="int", body=body))
    assert any(text.startswith(assumed) for text in proof.assumed)
    assert assumed in proof.summary


def test_one_length_for_two_axes_is_said() -> None:
    source = """
    __global__ void k(const float *x, float *y, int rows, int cols) {
        int r = blockIdx.x * blockDim.x + threadIdx.x;
        if (r < rows) {
            float m = -FLT_MAX;
            for (int j = 0; j < rows; j++) m = fmaxf(m, x[r * cols + j]);
            y[r] = m;
        }
    }
    """
    assumed = proof_of(source).assumed
    assert "rows and columns are equal, as in the source" in assumed
    assert any(text.startswith("FLT_MAX counts as infinity") for text in assumed)
    apart = source.replace("j < rows", "j < cols").replace("FLT_MAX", "INFINITY")
    assert proof_of(apart).assumed == ()


def test_finite_scores_that_hide_are_said() -> None:
    assert proof_of(ATTENTION).assumed == ()
    (text,) = proof_of(ATTENTION.replace('s, float("-inf"))', "s, -1.0e6)")).assumed
    assert text.startswith("no score that is seen is 1e+06 or more below another")


def test_blocks_that_go_beyond_are_no_proof() -> None:
    source = """
    __global__ void k(const float *x, float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = x[i - 2 * blockIdx.x * blockDim.x];
    }
    """
    (kernel,) = ttx.port(source).kernels
    assert kernel.proof is None
