# %% yours
# Blocks such as {"block_M": 128, "block_N": 128, "block_K": 32}, and options such as {"multicast": "off"}:
blocks = None
options = None

# %% solution
# 8 x 8 blocks, one for each core; multicast, which is the default, reads each block of A and B once.
blocks = {"block_M": 64, "block_N": 64, "block_K": 128}
options = {"multicast": "auto"}

# %% hint
# With blocks of 128 x 128, 16 cores have work. How many blocks do 64 cores need?

# %% hint
# 33.6 MB were read at the beginning of this notebook, and 4.2 MB with one option more. Use it.

# %% hint
# Fewer and larger turns along K: `block_K` of 128.
