#pragma once
#include "api/compute/common_globals.h"

template <DataFormat data_format>
ALWI void mac_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_mac, 0, line.number);
}
template <DataFormat data_format>
ALWI void mac_tile(uint32_t idst0, uint32_t idst1, uint32_t idst2, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Float32 || data_format == DataFormat::Float16_b,
                  "the emulator supports only Float32 and Float16_b");
    emulator_sfpu_ternary(Sfpu_mac, data_format == DataFormat::Float32, idst0, idst1, idst2, odst, line.number);
}
