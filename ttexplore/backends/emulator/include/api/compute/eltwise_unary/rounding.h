#pragma once
#include "api/compute/common_globals.h"

ALWI void rounding_op_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_rounding_op, 0, line.number);
}
ALWI void floor_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_rounding_op, 0, idst, 0, RoundingFloor, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void ceil_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_rounding_op, 0, idst, 0, RoundingCeil, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void trunc_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_rounding_op, 0, idst, 0, RoundingTrunc, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void round_tile(uint32_t idst, int32_t decimals, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_rounding_op, 0, idst, static_cast<uint32_t>(decimals), RoundingNearest,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
