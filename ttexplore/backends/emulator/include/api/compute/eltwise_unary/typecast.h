#pragma once
#include "api/compute/common_globals.h"

constexpr bool emulator_casts(uint32_t dtype) {
    return dtype == static_cast<uint32_t>(DataFormat::Float32) || dtype == static_cast<uint32_t>(DataFormat::Float16_b) ||
           dtype == static_cast<uint32_t>(DataFormat::Int32);
}

template <uint32_t IN_DTYPE, uint32_t OUT_DTYPE>
ALWI void typecast_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_typecast, IN_DTYPE | OUT_DTYPE << 8, line.number);
}
template <uint32_t IN_DTYPE, uint32_t OUT_DTYPE, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void typecast_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    static_assert(emulator_casts(IN_DTYPE) && emulator_casts(OUT_DTYPE),
                  "the emulator casts only between Float32, Float16_b and Int32");
    emulator_sfpu_unary(Sfpu_typecast, IN_DTYPE | OUT_DTYPE << 8, idst, IN_DTYPE, OUT_DTYPE,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
