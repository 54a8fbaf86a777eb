#pragma once
#include "api/compute/common_globals.h"

ALWI void fill_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_fill, 0, line.number);
}
ALWI void fill_tile(uint32_t idst, float param0, EMULATOR_CALL_LINE) {
    uint32_t bits;
    __builtin_memcpy(&bits, &param0, 4);
    emulator_sfpu_unary(Sfpu_fill, 0, idst, bits, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void fill_tile_bitcast(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_fill, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
template <DataFormat data_format>
ALWI void fill_tile_int(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator supports only Int32");
    emulator_sfpu_unary(Sfpu_fill, 0, idst, param0, 1, static_cast<uint32_t>(VectorMode::RC), line.number);
}
