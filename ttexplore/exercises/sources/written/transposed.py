# %% yours
def transposed(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "bfloat16"), C: T.Tensor((N, M), "bfloat16")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32)) as (bx, by):
            ...  # write your lines here

    return main


# %% solution
def transposed(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "bfloat16"), C: T.Tensor((N, M), "bfloat16")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32)) as (bx, by):
            a = T.alloc_shared((32, 32), "bfloat16")
            c = T.alloc_fragment((32, 32), "bfloat16")
            T.copy(A[by * 32, bx * 32], a)
            # Inside of a block: element (i, j) is element (j, i).
            for i, j in T.Parallel(32, 32):
                c[i, j] = a[j, i]
            # And the block itself changes places: rows of C are columns of A.
            T.copy(c, C[bx * 32, by * 32])

    return main


# %% hint
# Two things are transposed: the elements inside of a block, and the blocks. Which block of C is the block (by, bx)
# of A?


# %% hint
# In a `T.Parallel(32, 32)`, `c[i, j] = a[j, i]`.


# %% hint
# The block is stored to `C[bx * 32, by * 32]`.
