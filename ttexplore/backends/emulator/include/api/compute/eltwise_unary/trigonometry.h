#pragma once
#include "api/compute/common_globals.h"

ALWI void sin_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sin, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void sin_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_sin, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void cos_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_cos, 0, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void cos_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_cos, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
