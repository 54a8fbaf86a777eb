#pragma once
#include "api/compute/common_globals.h"

ALWI void sub_int_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_sub_int, 0, line.number);
}
template <DataFormat data_format>
ALWI void sub_int_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_sub_int, 0, idst0, idst1, odst, line.number);
}
