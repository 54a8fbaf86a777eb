"""The table of our programs beside the SDK's operations (benchmarks/sdk.py)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks import sdk
from benchmarks.sdk_attention import in_numpy
from tests.clock.measured import rows
from tests.clock.published import GEMMS

SMALL = sdk.distinct(sdk.COMPARISONS)


def test_published_times_are_those_of_the_tables() -> None:
    products = {
        (gemm.target.name, gemm.sizes, gemm.format): gemm.us for gemm in GEMMS if gemm.target.cores in (64, 110)
    }
    others = {row.value for row in rows()}
    for comparison in sdk.COMPARISONS:
        if comparison.kind == "matmul":
            m, k, n = (comparison.arguments[name] for name in "MKN")
            assert products[comparison.target, (m, k, n), "bf16"] == comparison.published_us
        elif comparison.published_us != 547:  # that of the kernels before K and V were passed on along chains of cores
            assert comparison.published_us in others


@pytest.mark.parametrize("comparison", SMALL, ids=lambda comparison: f"{comparison.kind} {comparison.what}")
def test_small_programs_are_right(comparison: sdk.Comparison) -> None:
    passed, line = sdk.checked(comparison)
    assert passed, line


def test_a_wrong_program_is_told() -> None:
    product = next(comparison for comparison in SMALL if comparison.kind == "matmul")
    other = dataclasses.replace(product, formula=np.subtract)
    passed, line = sdk.checked(other)
    assert not passed
    assert "DIFFERS from NumPy" in line


def test_a_row_has_both_times_and_their_ratio() -> None:
    product = next(comparison for comparison in sdk.COMPARISONS if comparison.kind == "matmul")
    assert sdk.row(product, 2 * product.published_us).split()[-3:] == ["39.9", "20.0", "2.00"]
    assert product.predicted_us == pytest.approx(product.published_us, rel=0.25)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_hostile_scores(causal: bool) -> None:
    """Scores of which one outweighs all others, that are all equal, all far below zero, and that grow and shrink from
    block to block."""
    comparison = next(item for item in SMALL if item.kind == "attention" and item.small["causal"] == causal)
    exploration = comparison.lowered({**comparison.small, "seq_len": 128, "dim": 32, "block_M": 32, "block_N": 64})
    q, k, v = (array.astype(np.float32) for array in exploration.inputs())
    q[0, 0] *= 60
    q[0, 1] = 0
    k[0] = np.abs(k[0]) * np.linspace(0.2, 3, len(k[0]))[:, None]
    q[1, 7::8] = -np.abs(q[1, 7::8])
    q[1, 6::8] = np.abs(q[1, 6::8])
    inputs = [array.astype(given.dtype) for array, given in zip((q, k, v), exploration.inputs(), strict=True)]
    assert exploration.check(inputs)
    (output,) = exploration.run(inputs).outputs
    expected = in_numpy(*inputs, causal=causal)
    # Block floats of 8 bits have a step of 1/64 of the largest of 16 elements.
    np.testing.assert_allclose(np.asarray(output, np.float64), expected, atol=0.08 * np.abs(expected).max())


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert sdk.main(["--kind", "matmul"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + sum(comparison.kind == "matmul" for comparison in sdk.COMPARISONS)
    assert all(0.5 < float(line.split()[-1]) < 1.2 for line in lines[1:])
