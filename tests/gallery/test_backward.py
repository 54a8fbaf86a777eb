"""The kernels of the backward pass one after another, and what they give beside the slope of a loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ttexplore as ttx
from ttexplore.language.load import load_module

FILE = Path(__file__).parents[2] / "notebooks" / "gallery" / "attention_backward.py"
SIZES: dict[str, Any] = {"heads": 1, "seq_len": 64, "dim": 32}


def ran(name: str, *inputs: NDArray[Any], **blocks: Any) -> tuple[NDArray[np.float64], ...]:
    found = ttx.explore(f"{FILE}::{name}", **SIZES, **blocks).run(list(inputs))
    assert found.passed, str(found)
    return tuple(out.astype(np.float64) for out in found.outputs)


def test_the_gradients_are_the_slopes_of_the_loss() -> None:
    """The loss is the sum of the products of result and dOut. Its slope in some direction is the sum of the products of
    this direction and the gradient."""
    forward = vars(load_module(FILE))["attention_saving_sums_reference"]
    random = np.random.default_rng(0)
    q, k, v, d_out = (random.standard_normal((1, 1, 64, 32)).astype(np.float32) for _ in range(4))
    out, lse = ran("attention_saving_sums", q, k, v, block_M=32, block_N=32)
    (delta,) = ran("products_of_rows", out, d_out, block=32)
    d_k, d_v = ran("gradients_of_keys", q, k, v, d_out, lse, delta, block=32)
    (d_q,) = ran("gradients_of_queries", q, k, v, d_out, lse, delta, block=32)
    inputs = [one.astype(np.float64) for one in (q, k, v)]
    for position, gradient in enumerate((d_q, d_k, d_v)):
        slopes: list[float] = []
        found: list[float] = []
        for _ in range(8):
            direction = random.standard_normal(gradient.shape)
            ends = [
                [one + step * direction if at == position else one for at, one in enumerate(inputs)]
                for step in (1e-4, -1e-4)
            ]
            after, before = (float((forward(*end)[0] * d_out).sum()) for end in ends)
            slopes.append((after - before) / 2e-4)
            found.append(float((gradient * direction).sum()))
        assert np.linalg.norm(np.subtract(found, slopes)) < 0.01 * np.linalg.norm(slopes)
