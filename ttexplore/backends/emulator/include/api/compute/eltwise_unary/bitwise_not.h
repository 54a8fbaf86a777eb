#pragma once
#include "api/compute/common_globals.h"

ALWI void bitwise_not_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_bitwise_not, 0, line.number);
}
ALWI void bitwise_not_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_integer(Sfpu_bitwise_not, 0, idst, idst, idst, line.number);
}
