#pragma once
#include "api/compute/common_globals.h"

template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void transpose_init(uint32_t icb, EMULATOR_CALL_LINE) {
    emulator_fpu_init(Fpu_transpose, 0, icb, icb, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void transpose_tile(uint32_t icb, uint32_t itile, uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_transpose_tile(icb, itile, idst, line.number);
}
