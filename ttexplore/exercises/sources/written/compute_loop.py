# %% yours
# The loop along K, as a string:
compute_loop = None


# %% solution
compute_loop = """
for (uint32_t k = 0; k < 2; ++k) {
    A_shared_buffer.wait_front(2);
    B_shared_buffer.wait_front(2);
    // Both products are added to tile 0 of DST.
    for (uint32_t t = 0; t < 2; ++t) {
        matmul_block(cb_A_shared, cb_B_shared, t, t, 0, 0, 1, 1, 2);
    }
    A_shared_buffer.pop_front(2);
    B_shared_buffer.pop_front(2);
}
"""


# %% hint
# Each iteration uses up one block of each buffer: `wait_front(2)`, the products, `pop_front(2)`. What the loop
# leaves in `DST` is packed after it.

# %% hint
# `matmul_block(cb_A_shared, cb_B_shared, t, t, 0, 0, 1, 1, 2)` adds the product of tile t of A and tile t of B to
# tile 0 of `DST`. Its last three arguments are columns and rows of the result in tiles, and the tiles along K of a
# block.
