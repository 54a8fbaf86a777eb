# %% yours
# A shape of blocks whose sums stay in DST, and for which at most 512 tiles are read:
block_M = None
block_N = None

# %% solution
# 4 tiles fit. As 2 x 2 tiles they need 2 + 2 tiles for each step along K; as 4 x 1 tiles, 4 + 1.
block_M = 64
block_N = 64

# %% hint
# `DST` holds 4 tiles of 32-bit numbers, and a tile has 32 x 32 elements.

# %% hint
# A block of r x c tiles needs r tiles of A and c tiles of B for each tile along K. Which shape with r * c = 4 has the
# smallest r + c?
