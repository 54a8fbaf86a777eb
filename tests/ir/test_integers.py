"""Integers in the interpreter: they wrap around, and are not mixed with numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import elementwise
from tests.corpus.dtypes import bytes_from_numbers, conversions, plain_copies, polynomial
from tests.ir.interpreter.changed import dropped, renamed, run_changed
from ttexplore.backends.compare import compare
from ttexplore.errors import Unsupported, UsageError, VerifyError


@pytest.mark.parametrize(
    ("kernel", "change", "message"),
    [
        (conversions(), dropped("typecast_fp32_to_int32_tile"), "add_int_tile takes int32, but slot . of DST holds fl"),
        (conversions(), renamed("add_int_tile", "add_binary_tile"), "runs under the init of"),
        (conversions(), dropped("typecast_int32_to_fp32_tile"), "packs int32 to .*_out_2, which holds float32"),
    ],
)  # fmt: skip
def test_integers_are_not_mixed_with_numbers(kernel: Any, change: Any, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        run_changed(kernel, "compute", change)


def test_products_wrap_around() -> None:
    a = np.random.default_rng(0).integers(-(2**31), 2**31, (32, 128)).astype(np.int32)
    wanted = np.full((32, 32), 5, np.int32)
    for k in range(4):
        part = a[:, 32 * k : 32 * k + 32]
        wanted = wanted * np.int32(1000003) + part // 4 * part
    exploration = ttx.explore(polynomial())
    for backend in ("reference", "interpreter", "emulator"):
        np.testing.assert_array_equal(exploration.run([a], backend=backend).outputs[0], wanted)


def test_a_wrong_integer_is_seen() -> None:
    run = ttx.explore(plain_copies()).run()
    assert run.passed
    wrong = run.outputs[1].copy()
    wrong[0, 0] += 1
    assert not compare([wrong], run.outputs[1:]).passed


def test_integers_need_32_bits_of_dst() -> None:
    error = ttx.explore(polynomial(), options={"accumulate_dtype": "bfloat16"}).error
    assert isinstance(error, UsageError)
    assert "A, Out hold int32" in error.message

    rounded = elementwise(lambda a, b: a, "bfloat16")
    assert ttx.explore(rounded, options={"accumulate_dtype": "bfloat16"}).error is None
    bits = elementwise(lambda a, b: (a.astype("int32") & 1).astype("bfloat16") + b, "bfloat16")
    error = ttx.explore(bits, options={"accumulate_dtype": "bfloat16"}).error
    assert isinstance(error, Unsupported)
    assert "integers in 16-bit DST" in error.message


def test_bytes_and_masks() -> None:
    random = np.random.default_rng(0)
    a, m = random.standard_normal((32, 32)).astype(np.float32), random.integers(0, 256, (32, 32)).astype(np.uint8)
    wrapped, integers, numbers = ttx.explore(bytes_from_numbers()).run([a, m]).outputs
    np.testing.assert_array_equal(wrapped, np.trunc(a * np.float32(300)).astype(np.int32).astype(np.uint8))
    assert wrapped.dtype == np.uint8
    np.testing.assert_array_equal(integers, m)
    np.testing.assert_array_equal(numbers, m)
    layout = ttx.explore(bytes_from_numbers()).plan.layout("M")
    assert (layout.data_format, layout.reason) == (
        "Float16_b",
        "stored as bfloat16, which holds every number of uint8; the host converts",
    )
