# %% yours
def outer(M, N):
    @T.prim_func
    def main(a: T.Tensor((M,), "bfloat16"), b: T.Tensor((N,), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64)) as (bx, by):
            ...  # write your lines here

    return main


# %% solution
def outer(M, N):
    @T.prim_func
    def main(a: T.Tensor((M,), "bfloat16"), b: T.Tensor((N,), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64)) as (bx, by):
            column = T.alloc_shared((64,), "bfloat16")
            row = T.alloc_shared((64,), "bfloat16")
            c = T.alloc_fragment((64, 64), "bfloat16")
            T.copy(a[by * 64], column)
            T.copy(b[bx * 64], row)
            # The index says how a vector is broadcast: `i` over the columns, `j` over the rows.
            for i, j in T.Parallel(64, 64):
                c[i, j] = column[i] * row[j]
            T.copy(c, C[by * 64, bx * 64])

    return main


# %% hint
# A block of C needs 64 numbers of `a` and 64 of `b`, each in a buffer of one axis.


# %% hint
# In a `T.Parallel(64, 64)`, a vector with the index `i` is broadcast along a row, one with `j` along a column.
