#pragma once
#include "api/compute/common_globals.h"

// The SDK's erf has two sets of coefficients.
#ifdef INP_FLOAT32
constexpr uint32_t EMULATOR_ERF_ACCURATE = 1;
#else
constexpr uint32_t EMULATOR_ERF_ACCURATE = 0;
#endif

template <bool fast_and_approx = true>
ALWI void erf_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_erf, fast_and_approx, line.number);
}
template <bool fast_and_approx = true>
ALWI void erf_tile(uint32_t idst, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_erf, fast_and_approx, idst, 0, EMULATOR_ERF_ACCURATE,
                        static_cast<uint32_t>(VectorMode::RC), line.number);
}
