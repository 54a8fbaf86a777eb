#pragma once
#include "api/compute/common_globals.h"

template <uint32_t IN_DTYPE, uint32_t OUT_DTYPE>
ALWI void typecast_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_typecast, IN_DTYPE | OUT_DTYPE << 8, line.number);
}
template <uint32_t IN_DTYPE, uint32_t OUT_DTYPE>
ALWI void typecast_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    static_assert((IN_DTYPE == static_cast<uint32_t>(DataFormat::Float32) || IN_DTYPE == static_cast<uint32_t>(DataFormat::Float16_b)) &&
                  (OUT_DTYPE == static_cast<uint32_t>(DataFormat::Float32) || OUT_DTYPE == static_cast<uint32_t>(DataFormat::Float16_b)),
                  "the emulator casts between Float32 and Float16_b only");
    emulator_sfpu_unary(Sfpu_typecast, IN_DTYPE | OUT_DTYPE << 8, idst, OUT_DTYPE, 0,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
