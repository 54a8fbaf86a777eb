#pragma once
#include "api/compute/common_globals.h"

ALWI void binary_max_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binary_max, 0, line.number);
}
ALWI void binary_max_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, VectorMode vector_mode = VectorMode::RC, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_binary_max, idst0, idst1, odst, static_cast<uint32_t>(vector_mode), line.number);
}
ALWI void binary_min_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binary_min, 0, line.number);
}
ALWI void binary_min_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, VectorMode vector_mode = VectorMode::RC, EMULATOR_CALL_LINE) {
    emulator_sfpu_binary(Sfpu_binary_min, idst0, idst1, odst, static_cast<uint32_t>(vector_mode), line.number);
}
ALWI void binary_max_int32_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binary_max_int32, 0, line.number);
}
ALWI void binary_max_int32_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_integer(Sfpu_binary_max_int32, 0, idst0, idst1, odst, line.number);
}
ALWI void binary_min_int32_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_binary_min_int32, 0, line.number);
}
ALWI void binary_min_int32_tile(uint32_t idst0, uint32_t idst1, uint32_t odst, EMULATOR_CALL_LINE) {
    emulator_sfpu_integer(Sfpu_binary_min_int32, 0, idst0, idst1, odst, line.number);
}
