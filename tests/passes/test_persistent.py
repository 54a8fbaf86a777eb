# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""T.Persistent against NumPy: its places become the launch grid, or blocks loop over them."""

from __future__ import annotations

import numpy as np
import pytest

import ttexplore as ttx
import ttexplore.language as T
from tests.corpus.sums import persistent


@pytest.mark.parametrize(("more", "blocks", "grid"), [(False, 4, (5, 3)), (True, 4, (4,)), (True, 16, (16,))])
def test_each_place_is_taken_once(more: bool, blocks: int, grid: tuple[int, ...]) -> None:
    exploration = ttx.explore(persistent(blocks=blocks, more=more))
    assert exploration.error is None, str(exploration.error)
    assert exploration.check()
    made = exploration.run()
    assert made.passed, made.message
    a, b = (one.astype(np.float64) for one in exploration.inputs()[:2])
    np.testing.assert_allclose(made.outputs[0], a @ b, rtol=2e-2, atol=5e-2)
    if more:
        np.testing.assert_array_equal(made.outputs[1][:, 0], np.arange(1, blocks + 1).repeat(32))
    assert exploration.plan.partition is not None
    assert exploration.plan.partition.grid == grid


def test_the_options_say_which_core_takes_a_place() -> None:
    exploration = ttx.explore(persistent(), options={"policy": "strided", "cores": (2, 2)})
    assert exploration.check()
    assert exploration.plan.partition is not None
    assert [core.items for core in exploration.plan.partition.cores] == [4, 4, 4, 3]


def test_a_block_index_inside_keeps_the_loop() -> None:
    """Its value is that of the block, not of the place."""

    @T.prim_func
    def kernel(A: T.Tensor((192, 32), "float32"), B: T.Tensor((192, 32), "float32")):
        with T.Kernel(4) as block:
            a = T.alloc_shared((32, 32), "float32")
            for (bx,) in T.Persistent([6], 4, block):
                T.copy(A[bx * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] + block
                T.copy(a, B[bx * 32, 0])

    exploration = ttx.explore(kernel)
    assert exploration.check(), str(exploration.check())
    (a,), (found,) = exploration.inputs(), exploration.run().outputs
    np.testing.assert_allclose(found, a + (np.arange(6) % 4).repeat(32)[:, None], rtol=2e-3, atol=2e-3)
    assert exploration.plan.partition is not None
    assert exploration.plan.partition.grid == (4,)
