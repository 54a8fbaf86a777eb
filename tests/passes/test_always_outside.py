# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false
"""What is noted of blocks that can never lie in their tensors, as where a block was meant for another axis."""

from __future__ import annotations

from typing import Any

import pytest

import ttexplore as ttx
import ttexplore.language as T


def rows_of_tokens(heads: int, first: Any) -> Any:
    """Sums of blocks of 32 x 32 elements of (tokens, heads, dim), which start at ``first(token, head)``."""

    @T.prim_func
    def kernel(Q: T.Tensor((64, heads, 32), "float32"), R: T.Tensor((64, heads, 32), "float32")):
        with T.Kernel(2, heads) as (t, h):
            q, m = T.alloc_fragment((32, 32), "float32"), T.alloc_fragment((32,), "float32")
            T.copy(Q[first(t, h)], q)
            T.reduce_sum(q, m, dim=0)
            T.copy(m, R[t, h, 0])

    return kernel


def outside(kernel: Any) -> list[dict[str, Any]]:
    notes = ttx.explore(kernel).plan.notes
    return [{name: note.values[name] for name in ("tensor", "axis", "length", "outside")} for note in notes
            if note.kind == "always outside"]  # fmt: skip


@pytest.mark.parametrize("heads", [2, 31])
def test_heads_taken_as_rows_are_noted(heads: int) -> None:
    wanted = {"tensor": "Q", "axis": 1, "length": heads, "outside": 32 - heads}
    assert outside(rows_of_tokens(heads, lambda t, h: (t, h, 0))) == [wanted]


@pytest.mark.parametrize(
    ("heads", "first"),
    [
        # Tokens as rows, which was meant; blocks side by side, of which the last is cut; and blocks that fit somewhere.
        (2, lambda t, h: (slice(t * 32, t * 32 + 32), h, slice(0, 32))),
        (2, lambda t, h: (t, 0, 0)),
        (40, lambda t, h: (t, h * 32, 0)),
        (32, lambda t, h: (t, h, 0)),
    ],
)
def test_other_blocks_are_not(heads: int, first: Any) -> None:
    assert outside(rows_of_tokens(heads, first)) == []
