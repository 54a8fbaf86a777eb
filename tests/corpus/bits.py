# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false, reportOperatorIssue=false
"""The bits of numbers."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def exponents() -> Any:
    """The exponent of the power of two that is not below a number; that power; and the bits shifted as unsigned."""

    @T.prim_func
    def taken_apart(
        A: T.Tensor((40, 70), "float32"), E: T.Tensor((40, 70), "int32"), P: T.Tensor((40, 70), "float32"),
        S: T.Tensor((40, 70), "int32"),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a, p = T.alloc_shared((32, 64), "float32"), T.alloc_fragment((32, 64), "float32")
            e, s = T.alloc_fragment((32, 64), "int32"), T.alloc_fragment((32, 64), "int32")
            T.copy(A[by * 32, bx * 64], a)
            for i, j in T.Parallel(32, 64):
                bits = T.reinterpret(a[i, j], "uint32")
                rest = bits & ((1 << 23) - 1)
                e[i, j] = T.cast(((bits >> 23) & 0xFF) - 127 + T.if_then_else(rest != 0, 1, 0), "int32")
                p[i, j] = T.reinterpret((e[i, j] + 127) << 23, "float32")
                s[i, j] = T.cast(bits >> 4, "int32")
            T.copy(e, E[by * 32, bx * 64])
            T.copy(p, P[by * 32, bx * 64])
            T.copy(s, S[by * 32, bx * 64])

    return taken_apart


BITS = (Case("bits_of_numbers", exponents),)
