# %% yours
# The corrected text, such as broken.replace("old", "new"):
reader = None

# %% solution
# Each receiver counts as one. The sender's own B_valid is what set_multicast sends, so it has to be 1 before.
send = "B_valid.set_multicast("
reader = broken.replace("B_sender_y, 2);", "B_sender_y, 1);").replace(send, f"B_valid.set(1); {send}")

# %% hint
# The report says that the sender waits for semaphore 0 to be 3, and it is 6. How many receivers does a column have, and
# by how much does each of them count `B_ready` up?

# %% hint
# With the first mistake corrected, run `hang(lab, reader)`: nobody has asked for the second block, because the
# receivers still wait for `B_valid` of the first one. Which value does `set_multicast` send?

# %% hint
# `set_multicast` sends the value that the semaphore has at the sender. Compare with the lines for A above.
