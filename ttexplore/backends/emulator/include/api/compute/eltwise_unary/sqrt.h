#pragma once
#include "api/compute/common_globals.h"

ALWI void sqrt_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sqrt, 0, line.number);
}
template <bool FAST_APPROX = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sqrt_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_sqrt, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
