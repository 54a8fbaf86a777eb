#pragma once
#include "api/compute/common_globals.h"

// The compiler takes single bits of numbers, and says what all bits of a tile stand for from here on: with all bits,
// `and` makes integers of numbers; without any, `or` makes numbers of integers.
constexpr uint32_t EMULATOR_ALL_BITS = 0xffffffffu;

ALWI void bitwise_and_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_bitwise, BitwiseAnd, line.number);
}
template <DataFormat data_format>
ALWI void bitwise_and_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator knows only Int32 here");
    emulator_sfpu_unary(Sfpu_bitwise, BitwiseAnd, idst, param0, param0 == EMULATOR_ALL_BITS,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void bitwise_or_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_bitwise, BitwiseOr, line.number);
}
template <DataFormat data_format>
ALWI void bitwise_or_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    static_assert(data_format == DataFormat::Int32, "the emulator knows only Int32 here");
    emulator_sfpu_unary(Sfpu_bitwise, BitwiseOr, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
