# %% yours
# The block sizes with which all 64 cores work:
block_M = None
block_N = None

# %% solution
# 512 / 64 = 8 blocks along each axis, so 64 blocks: one for each core.
block_M = 64
block_N = 64

# %% hint
# The launch grid has `ceildiv(N, block_N)` x `ceildiv(M, block_M)` blocks, and each block is the work of one core.

# %% hint
# 64 cores need at least 64 blocks. Now each axis of 512 has 4 blocks.
