# %% yours
def online_rows(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32)) as by:
            ...  # write your lines here

    return main


# %% solution
def online_rows(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 32)) as by:
            x = T.alloc_shared((32, 64), "float32")
            e = T.alloc_fragment((32, 64), "float32")
            largest = T.alloc_fragment((32,), "float32")
            before = T.alloc_fragment((32,), "float32")
            total = T.alloc_fragment((32,), "float32")
            part = T.alloc_fragment((32,), "float32")
            T.fill(largest, -1e30)
            T.clear(total)
            for k in T.Pipelined(N // 64, num_stages=2):
                T.copy(X[by * 32, k * 64], x)
                T.copy(largest, before)
                T.reduce_max(x, largest, dim=1, clear=False)
                for i, j in T.Parallel(32, 64):
                    e[i, j] = T.exp(x[i, j] - largest[i])
                T.reduce_sum(e, part, dim=1)
                # What was summed up so far was relative to the maximum before.
                for i in T.Parallel(32):
                    total[i] = total[i] * T.exp(before[i] - largest[i]) + part[i]
            for i in T.Parallel(32):
                total[i] = largest[i] + T.log(total[i])
            T.copy(total, Y[by * 32])

    return main


# %% hint
# Keep two numbers for each row from block to block: the largest so far, and the sum of exp(x - largest) so far.


# %% hint
# When the largest number changes from `before` to `largest`, the sum so far is to be multiplied with exp(before -
# largest).


# %% hint
# At the end, the result of a row is `largest + log(total)`. Begin with a maximum below all numbers, such as -1e30.
