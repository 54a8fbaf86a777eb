# %% yours
def tiles(M, N, K, parts, block_M, block_N):
    """How many tiles of A, of B and of C are moved, where C is read and written."""
    A = ...
    B = ...
    C = ...
    return A, B, C


# %% solution
def tiles(M, N, K, parts, block_M, block_N):
    """How many tiles of A, of B and of C are moved, where C is read and written."""
    # Each column of blocks reads all of A, each row of blocks all of B. The parts share K among them.
    A = (M // 32) * (K // 32) * (N // block_N)
    B = (K // 32) * (N // 32) * (M // block_M)
    # Each part reads all of C, adds to it, and writes it.
    C = (M // 32) * (N // 32) * parts * 2
    return A, B, C


# %% hint
# A matrix of M x K numbers has `(M // 32) * (K // 32)` tiles. How often is each tile of A read?

# %% hint
# Blocks of one row of the result, of which there are `N // block_N`, read the same tiles of A. The parts read different
# ones, because they divide K.

# %% hint
# C is added to once for each part, and `T.atomic_add` reads and writes it.
