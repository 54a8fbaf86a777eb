# %% yours
def long_rows(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "bfloat16"), total: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32)) as by:
            ...  # write your lines here

    return main


# %% solution
def long_rows(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "bfloat16"), total: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32)) as by:
            a = T.alloc_shared((32, 128), "bfloat16")
            sums = T.alloc_fragment((32,), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(N, 128), num_stages=2):
                T.copy(A[by * 32, k * 128], a)
                # What lies behind the end of a row is 0, and changes no sum.
                for i, j in T.Parallel(32, 128):
                    a[i, j] = T.abs(a[i, j])
                T.reduce_sum(a, sums, dim=1, clear=False)
            T.copy(sums, total[by * 32])

    return main


# %% hint
# The rows are longer than L1: go through them block by block, and keep one sum for each row.


# %% hint
# `T.reduce_sum(block, sums, dim=1, clear=False)` adds to what `sums` holds. Before the loop, `T.clear(sums)`.


# %% hint
# The absolute values: `T.abs` in a `T.Parallel` loop over the block.
