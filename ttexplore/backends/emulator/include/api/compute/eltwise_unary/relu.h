#pragma once
#include "api/compute/common_globals.h"

ALWI void relu_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_relu, 0, line.number);
}
ALWI void relu_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_relu, 0, idst, 0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void relu_max_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_relu_max, 0, line.number);
}
ALWI void relu_max_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_relu_max, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void relu_min_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_relu_min, 0, line.number);
}
ALWI void relu_min_tile(uint32_t idst, uint32_t param0, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_relu_min, 0, idst, param0, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
ALWI void leaky_relu_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_leaky_relu, 0, line.number);
}
ALWI void leaky_relu_tile(uint32_t idst, uint32_t slope, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_leaky_relu, 0, idst, slope, 0, static_cast<uint32_t>(VectorMode::RC), line.number);
}
