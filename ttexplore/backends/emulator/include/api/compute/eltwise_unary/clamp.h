#pragma once
#include "api/compute/common_globals.h"

ALWI void clamp_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_clamp, 0, line.number);
}
ALWI void clamp_tile(uint32_t idst, uint32_t min, uint32_t max, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_clamp, 0, idst, min, max, static_cast<uint32_t>(VectorMode::RC), line.number);
}
