"""Matrix products: several in one loop, chained on chip, with epilogues, in batches, of mixed dtypes and any block."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case
from tests.corpus.spine import gemm


def shared_operand() -> Any:
    """C = A @ B and D = A @ E in one loop, which loads A once."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 96), "bfloat16"), B: T.Tensor((96, 64), "bfloat16"), E: T.Tensor((96, 64), "bfloat16"),
        C: T.Tensor((64, 64), "bfloat16"), D: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            e = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.clear(d)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.copy(E[k * 32, 0], e)
                T.gemm(a, b, c)
                T.gemm(a, e, d)
            T.copy(c, C)
            T.copy(d, D)

    return kernel


def one_accumulator() -> Any:
    """C = A @ B + E @ F, both products into the same accumulator in each turn."""

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), E: T.Tensor((32, 64), "bfloat16"),
        F: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((32, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            e = T.alloc_shared((32, 32), "bfloat16")
            f = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            for k in T.serial(2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
                T.copy(E[0, k * 32], e)
                T.copy(F[k * 32, 0], f)
                T.gemm(e, f, c)
            T.copy(c, C)

    return kernel


def attention_like(through_fragment: bool = False) -> Any:
    """R = sum over blocks of f(Q @ K^T) @ V: the intermediate stays on chip, Q is loaded once."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 64), "bfloat16"), K: T.Tensor((128, 64), "bfloat16"), V: T.Tensor((128, 64), "bfloat16"),
        R: T.Tensor((64, 64), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            q = T.alloc_shared((64, 64), "bfloat16")
            k = T.alloc_shared((32, 64), "bfloat16")
            v = T.alloc_shared((32, 64), "bfloat16")
            s = T.alloc_fragment((64, 32), "float32")
            p = T.alloc_fragment((64, 32), "bfloat16") if through_fragment else T.alloc_shared((64, 32), "bfloat16")
            o = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.clear(o)
            for n in T.Pipelined(4, num_stages=2):
                T.copy(K[n * 32, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(64, 32):
                    p[i, j] = T.exp(s[i, j] * 0.125)
                T.copy(V[n * 32, 0], v)
                T.gemm(p, v, o)
            T.copy(o, R)

    return kernel


def gated(block: int = 64) -> Any:
    """silu(X @ G) * (X @ U): two products, one epilogue of both."""

    @T.prim_func
    def kernel(
        X: T.Tensor((64, 96), "bfloat16"), G: T.Tensor((96, 128), "bfloat16"), U: T.Tensor((96, 128), "bfloat16"),
        Y: T.Tensor((64, 128), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(128 // block, 1) as (bx, by):
            x = T.alloc_shared((64, 32), "bfloat16")
            g = T.alloc_shared((32, block), "bfloat16")
            u = T.alloc_shared((32, block), "bfloat16")
            gate = T.alloc_fragment((64, block), "float32")
            up = T.alloc_fragment((64, block), "float32")
            T.clear(gate)
            T.clear(up)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(X[0, k * 32], x)
                T.copy(G[k * 32, bx * block], g)
                T.copy(U[k * 32, bx * block], u)
                T.gemm(x, g, gate)
                T.gemm(x, u, up)
            for i, j in T.Parallel(64, block):
                up[i, j] = up[i, j] * (gate[i, j] / (1.0 + T.exp(0.0 - gate[i, j])))
            T.copy(up, Y[0, bx * block])

    return kernel


def starts_from_a_tensor(block: int, scaled: bool = False) -> Any:
    """D = A @ B + C, or 0.5 * A @ B + 2 * C: the accumulator starts with a block of C."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 96), "bfloat16"), B: T.Tensor((96, 128), "bfloat16"), C: T.Tensor((64, 128), "float32"),
        D: T.Tensor((64, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(128 // block, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, block), "bfloat16")
            c = T.alloc_fragment((64, block), "float32")
            T.copy(C[0, bx * block], c)
            if scaled:
                for i, j in T.Parallel(64, block):
                    c[i, j] = c[i, j] * 4.0
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            if scaled:
                for i, j in T.Parallel(64, block):
                    c[i, j] = c[i, j] * 0.5
            T.copy(c, D[0, bx * block])

    return kernel


def rows_and_columns() -> Any:
    """(A @ B + row) * column, relu: a bias for each column of the result and a scale for each row."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), R: T.Tensor((128,), "float32"),
        S: T.Tensor((64,), "float32"), C: T.Tensor((64, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 128), "bfloat16")
            r = T.alloc_shared((128,), "float32")
            s = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((64, 128), "float32")
            T.copy(R, r)
            T.copy(S, s)
            T.clear(c)
            for k in T.serial(2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(64, 128):
                c[i, j] = T.max((c[i, j] + r[j]) * s[i], 0.0)
            T.copy(c, C)

    return kernel


def batch_loop(rank: int) -> Any:
    """A batch that the kernel loops over, of tensors of rank 3, or of rank 4 whose heads are strided."""
    shape = (3, 64, 64) if rank == 3 else (3, 64, 2, 64)

    @T.prim_func
    def kernel(
        A: T.Tensor((3, 64, 64), "bfloat16"), B: T.Tensor((3, 64, 64), "bfloat16"), C: T.Tensor((3, 64, 64), "float32")
    ):
        with T.Kernel(2, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((64, 32), "float32")
            for batch in T.serial(3):
                T.clear(c)
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[batch, 0, k * 32], a)
                    T.copy(B[batch, k * 32, bx * 32], b)
                    T.gemm(a, b, c)
                T.copy(c, C[batch, 0, bx * 32])

    @T.prim_func
    def headed(
        A: T.Tensor((2, 3, 64, 64), "bfloat16"), B: T.Tensor((3, 64, 64), "bfloat16"),
        C: T.Tensor((2, 3, 64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, 1, 2) as (bx, by, bz):
            a = T.alloc_shared((64, 64), "bfloat16")
            b = T.alloc_shared((64, 32), "bfloat16")
            c = T.alloc_fragment((64, 32), "float32")
            for head in T.serial(3):
                T.copy(A[bz, head, 0, 0], a)
                T.copy(B[head, 0, bx * 32], b)
                T.gemm(a, b, c, clear_accum=True)
                T.copy(c, C[bz, head, 0, bx * 32])

    return kernel if rank == 3 else headed


def mixed(left: str, right: str, ta: bool = False, tb: bool = False, bm: int = 64, bn: int = 64) -> Any:
    """Operands of different dtypes, each as it is or transposed."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, bm) if ta else (bm, 64), left), B: T.Tensor((bn, 64) if tb else (64, bn), right),
        C: T.Tensor((bm, bn), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((32, bm) if ta else (bm, 32), left)
            b = T.alloc_shared((bn, 32) if tb else (32, bn), right)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.serial(2):
                if ta:
                    T.copy(A[k * 32, 0], a)
                else:
                    T.copy(A[0, k * 32], a)
                if tb:
                    T.copy(B[0, k * 32], b)
                else:
                    T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C)

    return kernel


def nested_loops(block: int) -> Any:
    """The inner dimension in two nested loops, with an epilogue after both."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), "bfloat16"), B: T.Tensor((128, 128), "bfloat16"), C: T.Tensor((64, 128), "bfloat16")
    ):
        with T.Kernel(128 // block, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, block), "bfloat16")
            c = T.alloc_fragment((64, block), "float32")
            T.clear(c)
            for outer in T.serial(2):
                for inner in T.Pipelined(2, num_stages=2):
                    T.copy(A[0, outer * 64 + inner * 32], a)
                    T.copy(B[outer * 64 + inner * 32, bx * block], b)
                    T.gemm(a, b, c)
            for i, j in T.Parallel(64, block):
                c[i, j] = T.max(c[i, j], 0.0)
            T.copy(c, C[0, bx * block])

    return kernel


def chained_loops() -> Any:
    """(A @ B) @ D with a loop for each product; the intermediate block stays on chip."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), D: T.Tensor((64, 128), "bfloat16"),
        C: T.Tensor((64, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            d = T.alloc_shared((64, 64), "bfloat16")
            x = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_shared((64, 64), "bfloat16")
            y = T.alloc_fragment((64, 64), "float32")
            T.clear(x)
            for k in T.serial(2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, x)
            T.copy(x, s)
            for n in T.serial(2):
                T.copy(D[0, n * 64], d)
                T.gemm(s, d, y, clear_accum=True)
                T.copy(y, C[0, n * 64])

    return kernel


def read_in_the_middle() -> Any:
    """An accumulator that each turn adds to, stores a function of, and goes on with."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 96), "bfloat16"), B: T.Tensor((96, 128), "bfloat16"), C: T.Tensor((3, 64, 128), "float32")
    ):
        with T.Kernel(1, 1) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 128), "bfloat16")
            c = T.alloc_fragment((64, 128), "float32")
            d = T.alloc_fragment((64, 128), "float32")
            T.clear(c)
            for k in T.serial(3):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
                for i, j in T.Parallel(64, 128):
                    d[i, j] = T.max(c[i, j], 0.0) + 1.0
                T.copy(d, C[k, 0, 0])

    return kernel


def residual() -> Any:
    """C = A @ B + A in float32: a factor that is an addend as well."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2) as by:
            a = T.alloc_shared((32, 64), "float32")
            b = T.alloc_shared((64, 64), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            T.copy(A[by * 32, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(32, 64):
                c[i, j] = c[i, j] + a[i, j]
            T.copy(c, C[by * 32, 0])

    return kernel


def many_products(count: int) -> Any:
    """A chain of products with the same factor, each of what the one before it made: more operands than a core has
    circular buffers, but few at a time."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 32), "bfloat16"), W: T.Tensor((32, 32), "bfloat16"), C: T.Tensor((64, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, 2) as (bx, by):
            w = T.alloc_shared((32, 32), "bfloat16")
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, 0], a)
            T.copy(W, w)
            T.clear(c)
            T.gemm(a, w, c)
            for _ in [*range(count)]:
                e = T.alloc_shared((32, 32), "bfloat16")
                for i, j in T.Parallel(32, 32):
                    e[i, j] = T.min(c[i, j], 1.0) * 0.125
                T.gemm(e, w, c)
            T.copy(c, C[by * 32, 0])

    return kernel


GEMMS: tuple[Case, ...] = (
    Case("gemm_shared_operand", shared_operand),
    Case("attention_like", attention_like),
    Case("gated_mlp_spilled", lambda: gated(128)),
    Case("gemm_scaled_both", lambda: starts_from_a_tensor(128, True), on_chip=False),
    Case("gemm_rows_and_columns", rows_and_columns, on_chip=False),
    Case("gemm_batch_loop", lambda: batch_loop(3), on_chip=False),
    Case("gemm_batch_of_heads", lambda: batch_loop(4), on_chip=False),
    Case("gemm_fp32_by_bf16_transposed", lambda: mixed("float32", "bfloat16", True, True), on_chip=False),
    Case("gemm_tall_block", lambda: mixed("bfloat16", "bfloat16", True, bm=256, bn=32), on_chip=False),
    Case("gemm_nested_loops_spilled", lambda: nested_loops(128), on_chip=False),
    Case("gemm_shared_circular_buffers", lambda: many_products(33), on_chip=False),
    Case("gemm_chained_loops", chained_loops, on_chip=False),
    Case("gemm_read_in_the_middle", read_in_the_middle, on_chip=False),
    Case(
        "gemm_bf16_accumulator", lambda: gemm(64, 128, 64, 64, 128, 32, bias=True), {"accumulate_dtype": "bfloat16"},
        on_chip=False,
    ),
    Case("gemm_fp32_residual", residual, on_chip=False),
    Case("gemm_full_sync", lambda: gemm(64, 128, 64, 64, 128, 32, bias=True), {"dst_full_sync": True}, on_chip=False),
)  # fmt: skip
