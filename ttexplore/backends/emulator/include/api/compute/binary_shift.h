#pragma once
#include "api/compute/common_globals.h"

ALWI void binary_shift_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binary_shift, 0, line.number);
}
template <DataFormat data_format>
ALWI void binary_left_shift_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_binary_shift, ShiftLeft, idst0, idst1, odst, line.number);
}
template <DataFormat data_format>
ALWI void binary_right_shift_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_integer(Sfpu_binary_shift, ShiftRight, idst0, idst1, odst, line.number);
}
