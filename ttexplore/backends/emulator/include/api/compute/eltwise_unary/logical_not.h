#pragma once
#include "api/compute/common_globals.h"

ALWI void logical_not_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_logical_not, 0, line.number);
}
template <DataFormat DATA_FORMAT>
ALWI void logical_not_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    static_assert(DATA_FORMAT == DataFormat::Float32 || DATA_FORMAT == DataFormat::Float16_b,
                  "the emulator supports only Float32 and Float16_b");
    emulator_sfpu_unary(Sfpu_logical_not, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
