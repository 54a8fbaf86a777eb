"""Print what lowerings compute and what is said about it: `test_processors.py` runs this as a program.

Its lines are the same on every processor: neither the sums of the BLAS nor NumPy's approximations of functions show.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import ttexplore as ttx
import ttexplore.language as T


@T.prim_func
def functions(A: T.Tensor((64, 256), "float32"), Out: T.Tensor((64, 256), "float32")):
    with T.Kernel(8) as bx:
        a, out = T.alloc_shared((64, 32), "float32"), T.alloc_shared((64, 32), "float32")
        T.copy(A[0, bx * 32], a)
        for i, j in T.Parallel(64, 32):
            out[i, j] = T.exp(a[i, j]) + T.tanh(a[i, j]) * T.sin(a[i, j]) + T.log(T.exp2(a[i, j])) + T.exp(1.25)
        T.copy(out, Out[0, bx * 32])


@T.prim_func
def product(A: T.Tensor((256, 256), "float32"), B: T.Tensor((256, 128), "float32"), C: T.Tensor((256, 128), "float32")):
    with T.Kernel(1):
        a, b = T.alloc_shared((256, 256), "float32"), T.alloc_shared((256, 128), "float32")
        c = T.alloc_fragment((256, 128), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)


def figures(exploration: Any, inputs: list[Any] | None = None) -> None:
    """Print the checked steps, a run on the emulator, and a hash of all bits of the reference."""
    run = exploration.run(inputs)
    print(exploration.check(), run.comparison, sep="\n")
    print(hashlib.sha256(b"".join(one.tobytes() for one in exploration.reference(inputs))).hexdigest())


if __name__ == "__main__":
    figures(ttx.explore("notebooks/kernels/gemm.py::matmul", M=256, N=256, K=256, block_M=128, block_N=128))
    figures(ttx.explore("notebooks/gallery/softmax.py::softmax"))
    figures(ttx.explore(functions), [np.linspace(-6, 6, 64 * 256, dtype=np.float32).reshape(64, 256)])
    figures(ttx.explore(product))
