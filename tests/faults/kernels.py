# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""The sound kernels that faults are planted into."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.branches import skipped
from tests.corpus.deciding_variables import gathered_rows
from tests.corpus.formats import product_of
from tests.corpus.gemms import many_products
from tests.corpus.index_tensors import counted, in_two_loops, masked_blocks
from tests.corpus.scans import scanned
from tests.corpus.sums import sums_of_found_rows
from tests.corpus.turns import UP_TO_AND_WITH, triangle
from tests.corpus.whiles import stream_k, strided


def taken_in_turns() -> Any:
    """Blocks take every so many-th tile in a `while`."""
    return strided(2, 7, 2)


def streamed() -> Any:
    """Blocks share the turns of a product."""
    return stream_k(32, 64, 96, 4)


def difference() -> Any:
    """Two inputs, two tiles a block, four work items."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), C: T.Tensor((64, 128), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 64), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "bfloat16")
            T.copy(A[by * 32, bx * 64], a)
            T.copy(B[by * 32, bx * 64], b)
            for i, j in T.Parallel(32, 64):
                c[i, j] = a[i, j] - b[i, j]
            T.copy(c, C[by * 32, bx * 64])

    return kernel


def summed() -> Any:
    """Every block of a matrix is added to each block of the sum, which one core owns: two matrices on two cores."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 96, 64), "bfloat16"), C: T.Tensor((2, 64, 64), "bfloat16")):
        with T.Kernel(2, 3) as (bx, by):
            a = T.alloc_shared((32, 64), "bfloat16")
            T.copy(A[bx, by * 32, 0], a)
            for k in range(2):
                T.atomic_add(C[bx, k * 32, 0], a)

    return kernel


def handed_on() -> Any:
    """Like :func:`summed`, but three cores hand on the sums of each matrix, the blocks of it one after another."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 96, 64), "bfloat16"), C: T.Tensor((2, 64, 64), "bfloat16")):
        with T.Kernel(2, 3) as (bx, by):
            T.annotate_tt_schedule(partials="noc")
            a = T.alloc_shared((32, 64), "bfloat16")
            T.copy(A[bx, by * 32, 0], a)
            for k in range(2):
                T.atomic_add(C[bx, k * 32, 0], a)

    return kernel


def one_head() -> Any:
    """One head of many is copied."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 2, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(2) as b:
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[b, :, 1, :], a)
            T.copy(a, C[b * 32, 0])

    return kernel


def product() -> Any:
    """A matrix product whose accumulator is larger than DST: partial sums go through a circular buffer."""

    @T.prim_func
    def kernel(
        A: T.Tensor((96, 96), "bfloat16"), B: T.Tensor((96, 128), "bfloat16"), C: T.Tensor((96, 128), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(2, 1) as (bx, by):
            a = T.alloc_shared((96, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((96, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 96, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 96, bx * 64])

    return kernel


def causal() -> Any:
    """A loop of a block's own length, with an operand of its products computed in it."""
    return triangle(UP_TO_AND_WITH, factor=True)


def branched() -> Any:
    """Products of which each block leaves out some."""
    return skipped(lambda bx, k: k <= bx)


def quantized() -> Any:
    """Numbers rounded to 8 bits: some are beyond the largest of these, some below the smallest normal one."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float8_e4m3fn")):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((32, 64), "float8_e4m3fn")
            T.copy(A[by * 32, bx * 64], a)
            for i, j in T.Parallel(32, 64):
                c[i, j] = T.if_then_else(j < 48, a[i, j] * 200.0, a[i, j] * 0.01)
            T.copy(c, C[by * 32, bx * 64])

    return kernel


def product_of_bytes() -> Any:
    """A product of integers, which is taken apart."""
    return product_of("int8", "int8", "int32", "int32", 32, 32)


def chained() -> Any:
    """Products of what the products before them made: the first and the last operand are never there together."""
    return many_products(3)


def stored_in_another_order() -> Any:
    """Two blocks, of which the one that is made last is stored first."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "bfloat16"), C: T.Tensor((128, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            first = T.alloc_fragment((32, 32), "bfloat16")
            second = T.alloc_fragment((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                first[i, j] = T.exp(a[i, j])
            T.clear(c)
            for _ in range(2):
                T.gemm(a, a, c)
            for i, j in T.Parallel(32, 32):
                second[i, j] = c[i, j] + 1.0
            T.copy(second, C[bx * 64, 0])
            T.copy(first, C[bx * 64 + 32, 0])

    return kernel


def masked() -> Any:
    """Products that a tensor leaves out."""
    return masked_blocks("uint8", 32)


def with_turns() -> Any:
    """A condition says that one of two loops makes a turn."""
    return in_two_loops()


def told() -> Any:
    """As many turns as a tensor says, for reader and compute kernel."""
    return counted(2)


def summed_where_told() -> Any:
    """Blocks that are added to the rows that a tensor names."""
    return sums_of_found_rows()


def biased() -> Any:
    """A row broadcast and functions of DST, in float32 and bfloat16 together."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), V: T.Tensor((64,), "float32"), C: T.Tensor((64, 64), "bfloat16")):
        with T.Kernel(1, 2) as (bx, by):
            a = T.alloc_shared((32, 64), "float32")
            v = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((32, 64), "float32")
            T.copy(A[by * 32, bx * 64], a)
            T.copy(V, v)
            for i, j in T.Parallel(32, 64):
                c[i, j] = T.exp(a[i, j] * 0.5 + v[j])
            T.copy(c, C[by * 32, bx * 64])

    return kernel


def upper() -> Any:
    """Writes only the upper half of its result."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 128), "bfloat16"), C: T.Tensor((64, 128), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "bfloat16")
            T.copy(A[0, bx * 64], a)
            for i, j in T.Parallel(32, 64):
                c[i, j] = a[i, j] + 1.0
            T.copy(c, C[0, bx * 64])

    return kernel


def listed() -> Any:
    """Each core has a list of its work items."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "bfloat16"), C: T.Tensor((64, 128), "bfloat16")):
        with T.Kernel(4, 2) as (bx, by):
            T.annotate_tt_schedule(policy="z_order")
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], a)
            T.copy(a, C[by * 32, bx * 32])

    return kernel


def rows() -> Any:
    """Rows of tensors become tiles, and tiles rows, eight tiles at a time."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 256), "bfloat16"), B: T.Tensor((64, 256), "bfloat16"), C: T.Tensor((64, 256), "bfloat16")
    ):
        with T.Kernel(2) as by:
            T.annotate_tt_layout({A: {"page": "row"}, B: {"page": "row"}, C: {"page": "row"}})
            a = T.alloc_shared((32, 256), "bfloat16")
            b = T.alloc_shared((32, 256), "bfloat16")
            c = T.alloc_fragment((32, 256), "bfloat16")
            T.copy(A[by * 32, 0], a)
            T.copy(B[by * 32, 0], b)
            for i, j in T.Parallel(32, 256):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, C[by * 32, 0])

    return kernel


def stored_by_rows() -> Any:
    """Tiles become rows, eight at a time, and nothing else is computed."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 256), "bfloat16"), C: T.Tensor((64, 256), "bfloat16")):
        with T.Kernel(2) as by:
            T.annotate_tt_layout(C, page="row")
            a = T.alloc_shared((32, 256), "bfloat16")
            T.copy(A[by * 32, 0], a)
            T.copy(a, C[by * 32, 0])

    return kernel


def uneven() -> Any:
    """One large value, rows of usual values, and rows of small ones."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_shared((32, 32), "float32")
            T.copy(A[0, 0], a)
            T.copy(A[32, 0], b)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + T.if_then_else(i + j == 0, 1000.0, 0.5)
            for i, j in T.Parallel(32, 32):
                b[i, j] = b[i, j] * 0.001
            T.copy(a, C[0, 0])
            T.copy(b, C[32, 0])

    return kernel


def scattered() -> Any:
    """Columns that are read and stored element by element: two cores store to each page, and the first elements of the
    first block, and the last ones of the last, lie outside."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 40), "float32"), C: T.Tensor((38, 3), "float32")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((20,), "float32")
            c = T.alloc_fragment((20,), "float32")
            T.copy(A[1, bx * 20 - 1 : bx * 20 + 19], a)
            for i in T.Parallel(20):
                c[i] = a[i] + 2.0
            T.copy(c, C[bx * 20 - 1 : bx * 20 + 19, 1])

    return kernel


def rearranged() -> Any:
    """Pairs of elements of a computed block, the last of which do not fill the tiles."""

    @T.prim_func
    def kernel(A: T.Tensor((40, 96), "float32"), C: T.Tensor((40, 144), "float32")):
        with T.Kernel(2) as bx:
            a, c = T.alloc_shared((40, 48), "float32"), T.alloc_fragment((40, 72), "float32")
            T.copy(A[0, bx * 48], a)
            for i, j in T.Parallel(40, 48):
                a[i, j] = a[i, j] + 2.0
            for i, j in T.Parallel(40, 72):
                c[i, j] = a[39 - i, j // 2 + 6] * 2.0
            T.copy(c, C[0, bx * 72])

    return kernel


def reduced() -> Any:
    """Maxima and sums of rows that end in a tile. The numbers are below 0 and padding is not: it must not count."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 36), "bfloat16"), M: T.Tensor((64,), "float32"), S: T.Tensor((64,), "float32")
    ):  # fmt: skip
        with T.Kernel(2) as by:
            a, b = T.alloc_shared((32, 36), "bfloat16"), T.alloc_fragment((32, 36), "bfloat16")
            m, s = T.alloc_fragment((32,), "float32"), T.alloc_fragment((32,), "float32")
            T.copy(A[by * 32, 0], a)
            for i, j in T.Parallel(32, 36):
                b[i, j] = T.abs(a[i, j]) - 4.0
            T.reduce_max(b, m, dim=1)
            T.reduce_sum(b, s, dim=1)
            T.copy(m, M[by * 32])
            T.copy(s, S[by * 32])

    return kernel


def scaled() -> Any:
    """An element of a tensor as a factor, and a number of block indices, which begins below 0, as a term."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 32, 32), "float32"), S: T.Tensor((8,), "float32"), C: T.Tensor((3, 32, 32), "float32")):
        with T.Kernel(3) as bx:
            a = T.alloc_shared((32, 32), "float32")
            scale = S[bx * 2]
            rate = T.alloc_var("float32")
            rate = (bx - 1) * 0.5
            T.copy(A[bx, 0, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] * scale + rate
            T.copy(a, C[bx, 0, 0])

    return kernel


def limited() -> Any:
    """The first rows and columns of each block, as many as elements of tensors say."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float32"), Rows: T.Tensor((4,), "int32"), Columns: T.Tensor((4,), "int32"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            rows = Rows[by * 2 + bx] % 31 + 1
            columns = Columns[by * 2 + bx] % 31 + 1
            T.copy(A[by * 32, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                if i < rows and j < columns:
                    C[by * 32 + i, bx * 32 + j] = a[i, j] + 1.0

    return kernel


def running_sums() -> Any:
    """Sums of the elements up to each place of a row."""
    return scanned("cumsum", (3, 6), 1)


def running_maxima() -> Any:
    """Maxima of the elements from each place of a column on. Some columns are all below 0."""
    return scanned("cummax", (3, 6), 0, reverse=True)


def joined_in_rows() -> Any:
    """Bits that all elements of a row have, or an odd number of them: those of the sign are among them."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 6), "int32"), And: T.Tensor((4,), "int32"), Odd: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            a = T.alloc_shared((4, 6), "int32")
            every = T.alloc_fragment((4,), "int32")
            odd = T.alloc_fragment((4,), "int32")
            T.copy(A, a)
            for i, j in T.Parallel(4, 6):
                a[i, j] = T.if_then_else(i == 1, a[i, j], a[i, j] | (-32704))
            T.reduce_bitand(a, every)
            T.reduce_bitxor(a, odd)
            T.copy(every, And)
            T.copy(odd, Odd)

    return kernel


def asked() -> Any:
    """The sum of blocks: one whose mask has a true element, and one whose mask has only true ones."""

    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 32), "float32"), Mask: T.Tensor((2, 12), "bool"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            T.copy(A[0, 0, 0], a)
            if T.any_of(Mask[0, :]):
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j]
            T.copy(A[1, 0, 0], a)
            if T.all_of(Mask[1, :]):
                for i, j in T.Parallel(32, 32):
                    c[i, j] = c[i, j] + a[i, j]
            T.copy(c, C)

    return kernel


def chosen_rows() -> Any:
    """Rows that an index tensor chooses, some of which are outside of the tensor."""
    return gathered_rows()


def found() -> Any:
    """As many products as a variable says, which an element of a tensor changes."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 96), "bfloat16"), N: T.Tensor((3,), "int32"), C: T.Tensor((64, 32), "bfloat16")):
        with T.Kernel(2) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            count = T.alloc_var("int32")
            count = bx
            if N[0] % 4 < 2:
                count = count + 1
            T.clear(c)
            for k in range(count):
                T.copy(A[0, k * 32], a)
                T.gemm(a, a, c)
            T.copy(c, C[bx * 32, 0])

    return kernel


def shared_factor() -> Any:
    """A product whose left factor one core reads for both."""
    return _product("all", "reader")


def sent_by_writer() -> Any:
    """A product whose left factor the writer of one core sends to both."""
    return _product({"A": "grid"}, {"A": "writer"})


def _product(multicast: Any, loaded_by: Any) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((64, 64), "bfloat16")
    ):  # fmt: skip
        with T.Kernel(2, 2) as (bx, by):
            T.annotate_tt_schedule(policy="rectangular", multicast=multicast, loaded_by=loaded_by)
            a = T.alloc_shared((32, 32), "bfloat16")
            b = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return kernel


def other_third_block() -> Any:
    """Two cores that need the same blocks for their first two work items, and another one for the third."""

    @T.prim_func
    def kernel(A: T.Tensor((96, 32), "bfloat16"), C: T.Tensor((192, 32), "bfloat16")):
        with T.Kernel(6) as bx:
            a = T.alloc_shared((32, 32), "bfloat16")
            T.copy(A[(bx % 3) * (1 - bx // 5) * 32, 0], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1.0
            T.copy(a, C[bx * 32, 0])

    return kernel
