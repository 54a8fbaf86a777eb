#pragma once
#include "api/compute/common_globals.h"

// The maxima of the rows of several tiles. The init gets a buffer of the same format as the tiles: that of the packer.
template <uint32_t block_ct_dim, bool respect_trigger = false, uint32_t num_faces = 4>
ALWI void reduce_block_max_row_init(uint32_t ocb, EMULATOR_CALL_LINE) {
    static_assert(block_ct_dim > 0 && block_ct_dim < 128, "reduce_block_max_row takes 1 to 127 tiles");
    static_assert(!respect_trigger && num_faces == 4, "the emulator models reduce_block_max_row of whole tiles alone");
    emulator_fpu_init(Fpu_reduce_block, emulator_reduce_block_variant(block_ct_dim), ocb, ocb, line.number);
}
template <uint32_t block_ct_dim, bool respect_trigger = false, uint32_t num_faces = 4>
ALWI void reduce_block_max_row(uint32_t icb, uint32_t icb_scaler, uint32_t row_start_index, uint32_t idst,
                               EMULATOR_CALL_LINE) {
    emulator_reduce_block_max_row(block_ct_dim, icb, icb_scaler, row_start_index, idst, line.number);
}
template <bool respect_trigger = false>
ALWI void reduce_block_max_row_uninit(uint32_t icb, EMULATOR_CALL_LINE) {
    (void)icb;
    emulator_reduce_uninit(line.number);
}
