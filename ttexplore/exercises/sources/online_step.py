# %% yours
def step(s, p, v, m, total, acc, alpha, part):
    """Change s, m, total and acc by one block of keys."""
    ...  # write your lines here


# %% solution
def step(s, p, v, m, total, acc, alpha, part):
    """Change s, m, total and acc by one block of keys."""
    # alpha keeps the old maximum until the new one is known. clear=False lets the maximum begin with what m holds.
    T.copy(m, alpha)
    T.reduce_max(s, m, dim=1, clear=False)
    for i in T.Parallel(32):
        alpha[i] = T.exp(alpha[i] - m[i])
    for i, j in T.Parallel(32, 32):
        s[i, j] = T.exp(s[i, j] - m[i])
    T.reduce_sum(s, part, dim=1)
    for i in T.Parallel(32):
        total[i] = total[i] * alpha[i] + part[i]
    for i, j in T.Parallel(32, 64):
        acc[i, j] = acc[i, j] * alpha[i]
    T.copy(s, p)
    T.gemm(p, v, acc)


# %% hint
# `tl.max(s, 1)` is `T.reduce_max(s, m, dim=1, clear=False)`: with `clear=False`, the maximum begins with what is in
# `m`. Copy `m` to `alpha` first, because the old maximum is still needed.

# %% hint
# Element by element: `for i, j in T.Parallel(32, 32): s[i, j] = T.exp(s[i, j] - m[i])`. The index `i` alone broadcasts
# a column over the columns of a block.

# %% hint
# `T.gemm(p, v, acc)` adds to `acc`. Scale `acc` by `alpha` before it, and copy `s` to `p`, which converts to bfloat16.
