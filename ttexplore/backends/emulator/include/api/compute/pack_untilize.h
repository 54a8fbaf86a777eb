#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/reconfig_data_format.h"

template <uint32_t block_ct_dim = 8, uint32_t full_ct_dim = block_ct_dim, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void pack_untilize_init(uint32_t icb, uint32_t ocb, EMULATOR_CALL_LINE) {
    static_assert(full_ct_dim == block_ct_dim, "the emulator supports only rows of one block");
    (void)ocb;
    emulator_rows_init(Fpu_pack_untilize, icb, block_ct_dim, line.number);
}
// The chip reads the same tiles, those at the front, for each row of blocks: one row makes sense.
template <uint32_t block_ct_dim = 8, uint32_t full_ct_dim = block_ct_dim, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void pack_untilize_block(uint32_t icb, uint32_t block_rt_dim, uint32_t ocb, EMULATOR_CALL_LINE) {
    static_assert(full_ct_dim == block_ct_dim, "the emulator supports only rows of one block");
    if (block_rt_dim) {
        emulator_rows_block(Fpu_pack_untilize, icb, ocb, block_ct_dim, line.number);
    }
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void pack_untilize_uninit(uint32_t ocb, EMULATOR_CALL_LINE) {
    (void)ocb;
    emulator_rows_uninit(Fpu_pack_untilize, line.number);
}
