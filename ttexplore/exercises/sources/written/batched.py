# %% yours
def batched(batch, M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((batch, M, K), "bfloat16"),
        B: T.Tensor((batch, K, N), "bfloat16"),
        C: T.Tensor((batch, M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), batch) as (bx, by, bz):
            ...  # write your lines here

    return main


# %% solution
def batched(batch, M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((batch, M, K), "bfloat16"),
        B: T.Tensor((batch, K, N), "bfloat16"),
        C: T.Tensor((batch, M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), batch) as (bx, by, bz):
            a = T.alloc_shared((64, 32), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[bz, by * 64, k * 32], a)
                T.copy(B[bz, k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[bz, by * 64, bx * 64])

    return main


# %% hint
# The third number of the launch grid is the number of the product.


# %% hint
# `T.copy(A[bz, by * 64, k * 32], a)` copies a block of two axes: its last two are those of the tensor.
