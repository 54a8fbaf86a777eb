# %% yours
# The columns of 1, -1 and 2^-12:
columns = None

# %% solution
# The two large numbers cancel within their group of eight; the small one is in another group.
columns = (0, 1, 8)

# %% hint
# A group of eight is shifted to its largest number before it is added. What is the largest number in the group of the
# small one?

# %% hint
# Columns 0 to 7 are one group, 8 to 15 the next. Put the large numbers into one group, where they cancel, and the small
# one into another.
