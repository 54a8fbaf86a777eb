# %% yours
# Blocks such as {"block_M": 64, "block_N": 64}, and options such as {"math_fidelity": "HiFi2"}:
blocks = None
options = None

# %% solution
# Larger blocks of keys, so that a step is done less often; and the functions that are fast, not exact.
blocks = {"block_M": 64, "block_N": 128}
options = {"sfpu": "fast", "eltwise": "fpu", "math_fidelity": "HiFi2"}

# %% hint
# One of the two is not enough: neither blocks nor options alone save so much.

# %% hint
# What the math engine does takes most of the time. Which options in this chapter concern it?

# %% hint
# Of the blocks, the keys matter: a step has a maximum, a sum and a rescaling for each row, however many keys it takes.
