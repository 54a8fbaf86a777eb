# %% yours
def triangle(M):
    @T.prim_func
    def main(A: T.Tensor((M, M), "bfloat16"), C: T.Tensor((M, M), "bfloat16")):
        with T.Kernel(T.ceildiv(M, 64), T.ceildiv(M, 64)) as (bx, by):
            ...  # write your lines here

    return main


# %% solution
def triangle(M):
    @T.prim_func
    def main(A: T.Tensor((M, M), "bfloat16"), C: T.Tensor((M, M), "bfloat16")):
        with T.Kernel(T.ceildiv(M, 64), T.ceildiv(M, 64)) as (bx, by):
            a = T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "bfloat16")
            T.copy(A[by * 64, bx * 64], a)
            # The row and the column in the matrix, not in the block.
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.if_then_else(bx * 64 + j <= by * 64 + i, a[i, j], 0.0)
            T.copy(c, C[by * 64, bx * 64])

    return main


# %% hint
# What decides is the row and the column in the matrix. In a block, `i` and `j` begin at 0.


# %% hint
# Element (i, j) of the block is element (by * 64 + i, bx * 64 + j) of the matrix.


# %% hint
# `T.if_then_else(condition, value, 0.0)` chooses for each element.
