#pragma once
#include "api/compute/common_globals.h"

ALWI void bitwise_and_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_bitwise, 0, line.number);
}
// Of numbers: the compiler takes single bits of them.
template <DataFormat data_format>
ALWI void bitwise_and_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator knows only Int32 here");
    emulator_sfpu_unary(Sfpu_bitwise, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
