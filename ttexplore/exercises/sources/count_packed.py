# %% yours
def packed(block_M, block_N, block_K, K):
    """How many tiles the packer moves from DST to L1 for one block."""
    return ...


# %% solution
def packed(block_M, block_N, block_K, K):
    """How many tiles the packer moves from DST to L1 for one block."""
    tiles = (block_M // 32) * (block_N // 32)
    # What fits stays in DST until the last turn. What does not is packed in each turn.
    return tiles if tiles <= 4 else tiles * (K // block_K)


# %% hint
# A block of block_M x block_N numbers has `(block_M // 32) * (block_N // 32)` tiles.

# %% hint
# There are `K // block_K` turns. A block of at most 4 tiles stays in `DST` during all of them, and is packed once.

# %% hint
# A larger block is packed in each turn: the last turn packs the result, the others partial sums.
