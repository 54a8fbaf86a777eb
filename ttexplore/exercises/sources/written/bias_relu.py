# %% yours
def bias_relu(M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"),
        B: T.Tensor((K, N), "bfloat16"),
        bias: T.Tensor((N,), "bfloat16"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64)) as (bx, by):
            ...  # write your lines here

    return main


# %% solution
def bias_relu(M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"),
        B: T.Tensor((K, N), "bfloat16"),
        bias: T.Tensor((N,), "bfloat16"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64)) as (bx, by):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            row = T.alloc_shared((64,), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(bias[bx * 64], row)
            # After the loop, once, and not in each iteration.
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.max(c[i, j] + row[j], 0.0)
            T.copy(c, C[by * 64, bx * 64])

    return main


# %% hint
# First the product: clear a fragment of float32, then for each block along K two copies and a `T.gemm`.


# %% hint
# The bias is added once, after the loop over K. It is one number for each column.


# %% hint
# Blocks may end behind the matrix: `T.ceildiv` in the grid and in the loop is enough, copies fill up with zeros.
