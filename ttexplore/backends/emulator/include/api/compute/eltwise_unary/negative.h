#pragma once
#include "api/compute/common_globals.h"

ALWI void negative_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_negative, 0, line.number);
}
ALWI void negative_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_negative, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
