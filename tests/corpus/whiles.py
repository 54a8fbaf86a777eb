# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportUnusedVariable=false
"""Loops with a condition."""

from __future__ import annotations

from typing import Any

import ttexplore.language as T
from tests.corpus.case import Case


def strided(blocks: int, tiles: int, step: int) -> Any:
    """Blocks that take every so many-th tile, up to the end."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * tiles, 32), "float32"), Out: T.Tensor((32 * tiles, 32), "float32")):
        with T.Kernel(blocks) as block:
            a = T.alloc_shared((32, 32), "float32")
            tile = T.alloc_var("int32")
            tile = block
            while tile < tiles:
                current = tile
                T.copy(A[current * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] * 0.5 + current
                T.copy(a, Out[current * 32, 0])
                tile = current + step

    return kernel


def stream_k(m: int, n: int, k: int, cores: int, tile: int = 32) -> Any:
    """A product whose blocks take equal shares of the turns of some tiles, and then whole tiles. A tile that several
    blocks have parts of is a sum."""
    columns, turns = n // tile, k // tile
    tiles = m // tile * columns
    shared = tiles % cores
    full, partial = divmod(shared * turns, cores)

    @T.prim_func
    def kernel(A: T.Tensor((m, k), "bfloat16"), B: T.Tensor((n, k), "bfloat16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(cores) as core:
            a = T.alloc_shared((tile, tile), "bfloat16")
            b = T.alloc_shared((tile, tile), "bfloat16")
            c = T.alloc_fragment((tile, tile), "float32")
            start = T.alloc_fragment((1,), "int32", "local")
            end = T.alloc_fragment((1,), "int32", "local")
            start[0] = core * full + T.min(core, partial)
            last = (core + 1) * full + T.min(core + 1, partial)
            while start[0] < last:
                end[0] = T.min(start[0] + (turns - (start[0] % turns)), last)
                number = start[0] // turns
                before = start[0] % turns
                row = number // columns
                column = number % columns
                T.clear(c)
                for step in T.Pipelined(end[0] - start[0], num_stages=2):
                    T.copy(A[row * tile, (step + (start[0] % turns)) * tile], a)
                    T.copy(B[column * tile, (step + (start[0] % turns)) * tile], b)
                    T.gemm(a, b, c, transpose_B=True)
                if before == 0 and (end[0] % turns == 0):
                    T.copy(c, C[row * tile, column * tile])
                else:
                    for i, j in T.Parallel(tile, tile):
                        T.atomic_add(C[row * tile + i, column * tile + j], c[i, j])
                start[0] = end[0]
            for wave in T.serial(tiles // cores):
                number = core + shared + wave * cores
                T.clear(c)
                for step in T.Pipelined(turns, num_stages=1):
                    T.copy(A[number // columns * tile, step * tile], a)
                    T.copy(B[number % columns * tile, step * tile], b)
                    T.gemm(a, b, c, transpose_B=True)
                T.copy(c, C[number // columns * tile, number % columns * tile])

    return kernel


def by_index(groups: int = 3) -> Any:
    """Rows between two numbers of a tensor, from both ends at once: the last are halved, the first doubled. What is
    left in the middle is stored with the variables after the loop."""

    @T.prim_func
    def kernel(
        A: T.Tensor((256, 32), "float32"), Ends: T.Tensor((groups, 2), "int32"), Out: T.Tensor((256, 32), "float32"),
        Met: T.Tensor((32 * groups, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(groups) as group:
            a = T.alloc_shared((32, 32), "float32")
            low = T.alloc_var("int32")
            high = T.alloc_var("int32")
            low = Ends[group, 0]
            high = Ends[group, 1] - 1
            while low < high and high >= 1:
                T.copy(A[low * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] * 2
                T.copy(a, Out[low * 32, 0])
                low += 1
                T.copy(A[high * 32, 0], a)
                for i, j in T.Parallel(32, 32):
                    a[i, j] = a[i, j] * 0.5
                T.copy(a, Out[high * 32, 0])
                high -= 1
            for i, j in T.Parallel(32, 32):
                Met[group * 32 + i, j] = T.cast(low, "float32") + T.cast(high, "float32") * 0.125

    return kernel


def nested(rows: int = 4, columns: int = 5) -> Any:
    """A loop in a loop; each row begins one tile later."""

    @T.prim_func
    def kernel(A: T.Tensor((32 * rows, 32 * columns), "float32"), Out: T.Tensor((32 * rows, 32 * columns), "float32")):
        with T.Kernel(2) as block:
            a = T.alloc_shared((32, 32), "float32")
            row = T.alloc_local((1,), "int32")
            column = T.alloc_var("int32")
            row[0] = block
            while row[0] < rows:
                column = row[0]
                while not (column >= columns):
                    T.copy(A[row[0] * 32, column * 32], a)
                    for i, j in T.Parallel(32, 32):
                        a[i, j] = a[i, j] + (row[0] + column)
                    T.copy(a, Out[row[0] * 32, column * 32])
                    column += 2
                row[0] += 2

    return kernel


WHILES: tuple[Case, ...] = (
    Case("while_strided", lambda: strided(4, 7, 4)),
    Case("while_stream_k", lambda: stream_k(96, 64, 96, 4)),
    Case("while_by_index", by_index, on_chip=False),
    Case("while_nested", nested, on_chip=False),
)
