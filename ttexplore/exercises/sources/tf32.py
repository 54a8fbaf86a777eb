# %% yours
def seen(x):
    """What the matrix engine sees of an array of float32."""
    return ...


# %% solution
def seen(x):
    """What the matrix engine sees of an array of float32."""
    # A float32 has 23 bits behind the leading 1. The last 13 of them are cut, so that 10 are left.
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


# %% hint
# A float32 has 23 bits behind the leading 1, and 10 of them come through. They are cut, not rounded.

# %% hint
# `x.view(np.uint32)` gives the bits of the numbers: first the sign, then 8 bits of exponent, then the 23.

# %% hint
# The last 13 bits have to be 0: `bits & np.uint32(0xFFFFE000)`. `.view(np.float32)` makes numbers of bits again.
