# %% yours
# The loop along K, as a string:
reader_loop = None


# %% solution
reader_loop = """
for (uint32_t k = 0; k < 2; ++k) {
    A_shared_buffer.reserve_back(2);
    B_shared_buffer.reserve_back(2);
    // A block of A is two tiles of one row of tiles, a block of B two of one column.
    for (uint32_t t = 0; t < 2; ++t) {
        noc.async_read(A, A_shared_buffer, A_shared_page_bytes, {.page_id = by * 4 + k * 2 + t},
            {.offset_bytes = t * A_shared_page_bytes});
        noc.async_read(B, B_shared_buffer, B_shared_page_bytes, {.page_id = (k * 2 + t) * 2 + bx},
            {.offset_bytes = t * B_shared_page_bytes});
    }
    noc.async_read_barrier();
    A_shared_buffer.push_back(2);
    B_shared_buffer.push_back(2);
}
"""


# %% hint
# Each iteration fills one block of each buffer: `reserve_back(2)` waits for room, then come the reads,
# `noc.async_read_barrier()` waits until they have arrived, and `push_back(2)` hands them over.

# %% hint
# `noc.async_read(A, A_shared_buffer, A_shared_page_bytes, {.page_id = ...}, {.offset_bytes = ...})` reads one tile.
# Tiles are numbered row by row: A has 4 in a row, B has 2.

# %% hint
# The tiles of A are `by * 4 + k * 2 + t`, those of B `(k * 2 + t) * 2 + bx`, for t = 0 and 1; tile t goes to `t *
# A_shared_page_bytes`.
