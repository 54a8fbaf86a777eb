#pragma once
#include "api/compute/common_globals.h"

enum class InputClamping : uint8_t {
    ClampToNegative = 1,
    None = 0,
};

// The approximate exp multiplies by the scale of its init, which sets its constants; the accurate one ignores it.
template <bool approx = false, uint32_t scale = 0x3F800000, InputClamping input_clamping = InputClamping::ClampToNegative,
          bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void exp_tile_init(EMULATOR_CALL_LINE) {
    static_assert(input_clamping == InputClamping::ClampToNegative, "the emulator does not model exp without a clamp");
#ifndef DISABLE_SFPLOADMACRO
    static_assert(!approx, "define DISABLE_SFPLOADMACRO: else the SDK's approximate exp rounds at random");
#endif
    emulator_sfpu_init(Sfpu_exp, approx, line.number);
    emulator_exp_scale(scale);
}
template <bool approx = false, bool scale_en = false, InputClamping input_clamping = InputClamping::ClampToNegative,
          int iterations = 8, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void exp_tile(uint32_t idst, VectorMode vector_mode = VectorMode::RC, uint16_t scale = 0x3F80, EMULATOR_CALL_LINE) {
    static_assert(!scale_en, "the emulator does not model the scaled exp");
    static_assert(input_clamping == InputClamping::ClampToNegative, "the emulator does not model exp without a clamp");
    (void)scale;
    emulator_sfpu_unary(Sfpu_exp, approx, idst, 0, 0, static_cast<uint32_t>(vector_mode), line.number);
}
