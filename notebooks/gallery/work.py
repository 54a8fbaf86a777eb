"""One product of matrices, its work divided in other ways than one block of the result for each block of the grid."""

import ttexplore.language as T


def split_k(M=64, N=64, K=512, parts=4, block_M=32, block_N=64, block_K=32, dtype="bfloat16"):
    """Parts of the sum over K on different cores, stored as they are: `joined` adds them up."""
    per_part = K // parts

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), Parts: T.Tensor((parts, M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), parts) as (bx, by, bz):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(per_part, block_K), num_stages=2):
                T.copy(A[by * block_M, bz * per_part + k * block_K], a)
                T.copy(B[bz * per_part + k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, Parts[bz, by * block_M, bx * block_N])

    return main


def split_k_reference(A, B, parts=4):
    rows, inner = A.shape
    return A.reshape(rows, parts, inner // parts).swapaxes(0, 1) @ B.reshape(parts, inner // parts, -1)


def joined(M=64, N=64, parts=4, block=32, dtype="bfloat16"):
    """The sum of all parts."""

    @T.prim_func
    def main(Parts: T.Tensor((parts, M, N), "float32"), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
            part = T.alloc_shared((block, block), "float32")
            total = T.alloc_fragment((block, block), "float32")
            T.clear(total)
            for n in T.Pipelined(parts, num_stages=2):
                T.copy(Parts[n, by * block, bx * block], part)
                for i, j in T.Parallel(block, block):
                    total[i, j] = total[i, j] + part[i, j]
            T.copy(total, C[by * block, bx * block])

    return main


def joined_reference(Parts):
    return Parts.sum(axis=0)


def persistent(M=128, N=192, K=128, cores=4, block=32, dtype="bfloat16"):
    """A grid of as many blocks as cores shall work; each takes every fourth block of the result."""
    columns, blocks = N // block, M // block * (N // block)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(cores) as core:
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            for turn in T.serial(blocks // cores):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                    T.copy(A[(turn * cores + core) // columns * block, k * block], a)
                    T.copy(B[k * block, (turn * cores + core) % columns * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[(turn * cores + core) // columns * block, (turn * cores + core) % columns * block])

    return main


def persistent_reference(A, B):
    return A @ B


def split_k_added(M=64, N=64, K=512, parts=4, block_M=32, block_N=64, block_K=32, dtype="bfloat16"):
    """Parts of the sum over K, added up where they are stored. All parts of one block of the result run on one core, so
    the order of the additions, and with it the result, is the same each time."""
    per_part = K // parts

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), parts) as (bx, by, bz):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(per_part, block_K), num_stages=2):
                T.copy(A[by * block_M, bz * per_part + k * block_K], a)
                T.copy(B[bz * per_part + k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.atomic_add(C[by * block_M, bx * block_N], c)

    return main


def split_k_added_reference(A, B, C):
    return C + A @ B


def dealt(M=128, N=192, K=128, cores=4, block=32, dtype="bfloat16"):
    """The same grid of blocks, which T.Persistent deals to the cores."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(cores) as core:
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), "float32")
            for by, bx in T.Persistent([T.ceildiv(M, block), T.ceildiv(N, block)], cores, core):
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                    T.copy(A[by * block, k * block], a)
                    T.copy(B[k * block, bx * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * block, bx * block])

    return main


def dealt_reference(A, B):
    return A @ B
