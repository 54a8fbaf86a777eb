# %% yours
def embedding(words, dim, tokens):
    @T.prim_func
    def main(
        table: T.Tensor((words, dim), "bfloat16"),
        index: T.Tensor((tokens,), "int32"),
        Y: T.Tensor((tokens, dim), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(tokens, 32)) as by:
            ...  # write your lines here

    return main


# %% solution
def embedding(words, dim, tokens):
    @T.prim_func
    def main(
        table: T.Tensor((words, dim), "bfloat16"),
        index: T.Tensor((tokens,), "int32"),
        Y: T.Tensor((tokens, dim), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(tokens, 32)) as by:
            y = T.alloc_shared((32, dim), "bfloat16")
            for i, j in T.Parallel(32, dim):
                y[i, j] = table[index[by * 32 + i], j]
            T.copy(y, Y[by * 32, 0])

    return main


# %% hint
# The number of a row is an element of a tensor: an index may be one.


# %% hint
# `table[index[by * 32 + i], j]` in a `T.Parallel(32, dim)`. The reader fetches row after row.
