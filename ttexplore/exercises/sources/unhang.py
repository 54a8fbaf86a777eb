# %% yours
# The corrected texts, such as broken["reader"].replace("old", "new"):
reader = None
compute = None

# %% solution
# The reader ended one block too early, and compute freed only half of each block of B.
reader = broken["reader"].replace("k < 3", "k < 4")
compute = broken["compute"].replace("B_shared_buffer.pop_front(2)", "B_shared_buffer.pop_front(4)")

# %% hint
# There are two mistakes, one in each text. Run `hang(product, **broken)`: which kernel has finished, and what does the
# other one wait for?

# %% hint
# K is 256 and a block is 64 wide along K. How many blocks does each kernel handle?

# %% hint
# With the reader corrected, it waits for room in the buffer of B: of 8 tiles only 2 are free. How many tiles does
# compute wait for, and how many does it pop?
