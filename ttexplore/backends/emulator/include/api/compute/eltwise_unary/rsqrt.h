#pragma once
#include "api/compute/common_globals.h"

enum class RsqrtMode { Default, Fast };

ALWI void rsqrt_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_rsqrt, 0, line.number);
}
template <RsqrtMode mode = RsqrtMode::Default, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void rsqrt_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_rsqrt, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
