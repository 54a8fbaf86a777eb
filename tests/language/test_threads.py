"""The names with which kernels ask for threads and join their values."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

import ttexplore as ttx
from ttexplore.errors import TTExploreError

_KERNEL = """
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=(32, 2)) as bx:
        r = T.alloc_local((1,), "float32")
{body}
"""
_REDUCE = 'with T.attr({reducer}, "reduce_scope", 0):\n    T.tvm_thread_allreduce(1, A[tx], True, r[0], {axis})'
_PRODUCT = "T.comm_reducer(lambda x, y: x * y, [1.0])"
_FROM_ZERO = "T.comm_reducer(lambda x, y: T.max(x, y), [0.0])"
_SUM = "T.comm_reducer(lambda x, y: x + y, [0.0])"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("T.get_thread_binding(2)", "T.get_thread_binding(2): the threads of the block have 2 axes"),
        (
            'T.thread_binding(0, 64, thread="threadIdx.x")',
            "T.thread_binding from 0 to 64 along threadIdx.x, where the block has 32 threads",
        ),
        ('T.thread_binding(0, 32, thread="vthread")', "T.thread_binding: 'vthread' is no axis of threads"),
        ('T.import_source("int x;")', "T.import_source is not lowered"),
        ("T.tvm_thread_allreduce(1, A[0], True, r[0], 0)", "T.tvm_thread_allreduce is outside of a reducer"),
        (
            f"tx = T.get_thread_binding()\n{_REDUCE.format(reducer=_SUM, axis='bx')}",
            "T.tvm_thread_allreduce joins the threads of an axis, and bx (Var) is the index of none",
        ),
        (
            f"tx = T.get_thread_binding()\n{_REDUCE.format(reducer=_PRODUCT, axis='tx')}",
            "T.comm_reducer of anything but a sum, a maximum or a minimum is not lowered",
        ),
        (
            f"tx = T.get_thread_binding()\n{_REDUCE.format(reducer=_FROM_ZERO, axis='tx')}",
            "T.comm_reducer of max that begins with T.float32(0.0) is not lowered",
        ),
        ('s = T.alloc_buffer((32,), "float32")', "T.alloc_buffer in the memory of all blocks is not lowered"),
        ('s = T.alloc_buffer((32,), scope="L2")', "T.alloc_buffer: unknown scope 'L2'"),
        ('with T.attr(A, "pragma", 1):\n    pass', "T.attr('pragma') is not lowered"),
    ],
)
def test_what_threads_are_not(tmp_path: Path, body: str, message: str) -> None:
    file = tmp_path / "threads.py"
    file.write_text(_KERNEL.format(body=textwrap.indent(body, " " * 8)))
    with pytest.raises(TTExploreError) as raised:
        ttx.explore(f"{file}::kernel")
    assert raised.value.message == message
    assert raised.value.span is not None


def test_code_of_nothing_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "threads.py"
    body = "T.import_source(None)\ntx, ty = T.get_thread_bindings()\nC[ty * 32 + tx] = A[ty * 32 + tx]"
    file.write_text(_KERNEL.format(body=textwrap.indent(body, " " * 8)))
    assert ttx.explore(f"{file}::kernel").error is None


_CONSTANTS = """
import ttexplore.language as T


@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"), *, n=64, f=lambda x: x * 2.0):
    with T.Kernel(1) as bx:
        a = T.alloc_buffer((n,), "float32", scope="shared")
        c = T.alloc_buffer((n,), "float32", scope="local.fragment")
        T.copy(A, a)
        for i in T.Parallel(n):
            c[i] = f(a[i])
        T.copy(c, C)
"""


def test_defaults_of_keywords_are_constants(tmp_path: Path) -> None:
    file = tmp_path / "constants.py"
    file.write_text(_CONSTANTS)
    ex = ttx.explore(f"{file}::kernel")
    assert ex.error is None
    numbers = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(ex.run([numbers]).outputs[0], numbers * 2)
