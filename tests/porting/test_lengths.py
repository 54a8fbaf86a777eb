"""Lengths, roundings and constants of Triton kernels that look like others: each is refused, or is what is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.porting.test_port import check_written, draft_of, read, refused
from tests.porting.test_twists import ew, product, row, turns

STORED = "tl.store(y + {1}, tl.load(x + {1}, mask={0}), mask={0})"
ROW = "v = tl.load(x + at + i, mask=i < n, other=0.0)\ntl.store(y + tl.program_id(0), {})"
FLAG = "v = tl.load(x + i, mask=i < n)\nif {}:\n    v = v * 3.0\nelse:\n    v = v + 1.0\ntl.store(y + i, v, mask=i < n)"
ROUNDED = "a rounding to 16 bits, which has no equivalent"

# Lengths that are not those of rows, in Triton.
LENGTHS = (
    "min(n, 64)", "tl.minimum(n, 64)", "n % 64", "(n & 0xffff)", "(n & 4096)", "max(n, 4)", "tl.maximum(n, B)",
    "min(n, B * 8)", "tl.cdiv(n, 2)", "n.to(tl.float16)", "n.to(tl.bfloat16)", "n.to(tl.float32)", "n.to(tl.int8)",
    "n.to(tl.int16)", "n * 1.0", "(n + 0.0)",
)  # fmt: skip
INDICES = (
    "i.to(tl.float32).to(tl.int32)", "(i * 1.0).to(tl.int32)", "i.to(tl.float32)", "(i + 0.0)",
    "(tl.program_id(0).to(tl.float32).to(tl.int32) * B + tl.arange(0, B))", "(i + tl.zeros([B], tl.float32))",
)  # fmt: skip
VALUES = (
    "tl.sum(v, 0) / (n * n * n)", "tl.sum(v, 0) * (n * n)", "tl.sum(v, 0) / n ** 2", "tl.sum(v, 0) / (n << n)",
    "tl.sum(v, 0) / n.to(tl.float16)", "tl.sum(v, 0) / n.to(tl.float32)",
)  # fmt: skip
ROUNDINGS: dict[str, str] = {
    "zeros": product().replace("(BM, BN), tl.float32", "(BM, BN), tl.float16"),
    "zeros by name": product().replace("(BM, BN), tl.float32", "(BM, BN), dtype=tl.bfloat16"),
    "product": product().replace("n[None, :]))\n", "n[None, :]), out_dtype=tl.float16)\n"),
    "carried": product().replace("\n    tl.store", "\n        acc = acc.to(tl.bfloat16)\n    tl.store"),
    "added": product().replace("n[None, :]))\n", "n[None, :])).to(tl.float16)\n"),
    "reduced": row(ROW.format("tl.sum(v.to(tl.float16), 0)")),
    "largest": row(ROW.format("tl.max(tl.cast(v, tl.bfloat16), 0)")),
    "there and back": ew("v = tl.load(x + i).to(tl.float16).to(tl.float32)\ntl.store(y + i, v * 2.0)"),
    "back and stored": ew("tl.store(y + i, (tl.load(x + i) * 2.0).to(tl.float16).to(tl.float32))"),
    "epilogue": product(ep=".to(tl.float16) * 2.0"),
}


@pytest.mark.parametrize("length", LENGTHS)
def test_a_mask_up_to_another_length_is_refused(length: str) -> None:
    assert refused(ew(STORED.format(f"i < {length}", "i")))


@pytest.mark.parametrize("length", [length for length in LENGTHS if "cdiv" not in length])
def test_a_loop_up_to_another_length_is_refused(length: str) -> None:
    body = "t = tl.zeros([B], tl.float32)\nfor j in range(0, {}, B):\n    t += tl.load(x + p * step + j + i)\n"
    assert refused(turns(body.format(length) + "tl.store(y + p, tl.sum(t, 0))"))


@pytest.mark.parametrize("index", INDICES)
def test_an_index_that_is_a_float_is_refused(index: str) -> None:
    assert refused(ew(STORED.format(f"{index} < n", "i")))
    assert refused(ew(STORED.format("i < n", index)))


@pytest.mark.parametrize("value", VALUES)
def test_a_value_of_lengths_that_is_rounded_or_may_overflow_is_refused(value: str) -> None:
    assert refused(row(ROW.format(value)))


@pytest.mark.parametrize("name", ROUNDINGS)
def test_a_rounding_in_the_middle_is_refused(name: str) -> None:
    assert ROUNDED in refused(ROUNDINGS[name])


def test_numbers_of_64_bits_are_refused() -> None:
    assert "the dtype `tl.float64`" in refused(row(ROW.format("tl.sum(v.to(tl.float64), 0)")))


@pytest.mark.parametrize(
    ("constant", "condition", "formula"),
    [
        ("F: tl.constexpr = False", "F", lambda x: x + 1),
        ("F: tl.constexpr = True", "F", lambda x: x * 3),
        ("F: tl.constexpr = ''", "F == 'relu'", lambda x: x + 1),
        ("F: tl.constexpr = 2", "F == 3", lambda x: x + 1),
        ("F: tl.constexpr = 4", "F % 2 == 0 and F > 3", lambda x: x * 3),
        ("F: tl.constexpr", "F", lambda x: x * 3),
        # What decides is the whole condition, however its parts come out.
        ("F: tl.constexpr = '', G: tl.constexpr = False", "F == 'relu' or G", lambda x: x + 1),
        ("F: tl.constexpr = '', G: tl.constexpr = True", "F == 'relu' or G", lambda x: x * 3),
        ("F: tl.constexpr = 'relu', G: tl.constexpr = False", "F == 'relu' and G", lambda x: x + 1),
        ("F: tl.constexpr = 'relu', G: tl.constexpr = True", "not (F == 'relu' and G)", lambda x: x + 1),
        ("F: tl.constexpr", "not F", lambda x: x * 3),
        ("F: tl.constexpr, G: tl.constexpr", "not (F or G)", lambda x: x * 3),
        ("F: tl.constexpr, G: tl.constexpr", "not F and G", lambda x: x * 3),
    ],
)
def test_the_variant_of_a_default_is_read(
    constant: str, condition: str, formula: Callable[[NDArray[Any]], NDArray[Any]], tmp_path: Path
) -> None:
    source = ew(FLAG.format(condition)).replace("B: tl.constexpr", f"B: tl.constexpr, {constant}")
    assert np.ptp(check_written(source, formula, tmp_path)) > 0


def test_a_sum_with_zero_stays() -> None:
    (kernel,) = read(ew("tl.store(y + i, tl.load(x + i, mask=i < n) + 0.0, mask=i < n)")).kernels
    assert "+ 0" in draft_of(kernel)
