#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/reconfig_data_format.h"

template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tilize_init(uint32_t icb, uint32_t block, uint32_t ocb, EMULATOR_CALL_LINE) {
    (void)ocb;
    emulator_rows_init(Fpu_tilize, icb, block, line.number);
}
// The tiles from the front of a buffer only: what an index into it means depends on the chip.
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void tilize_block(uint32_t icb, uint32_t block, uint32_t ocb, EMULATOR_CALL_LINE) {
    emulator_rows_block(Fpu_tilize, icb, ocb, block, line.number);
}
ALWI void tilize_uninit(uint32_t icb, uint32_t ocb, EMULATOR_CALL_LINE) {
    (void)icb;
    (void)ocb;
    emulator_rows_uninit(Fpu_tilize, line.number);
}
