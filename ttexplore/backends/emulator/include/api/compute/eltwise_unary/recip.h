#pragma once
#include "api/compute/common_globals.h"

enum class ReciprocalDestAcc { BF16, FP32 };
enum class ReciprocalApproxMode { Default, Precise, Approximate };

template <ReciprocalDestAcc dest_acc = DST_ACCUM_MODE ? ReciprocalDestAcc::FP32 : ReciprocalDestAcc::BF16,
          ReciprocalApproxMode approximation = ReciprocalApproxMode::Default>
ALWI void recip_tile_init(EMULATOR_CALL_LINE) {
    emulator_sfpu_init(Sfpu_recip, static_cast<uint32_t>(approximation), line.number);
}
template <ReciprocalDestAcc dest_acc = DST_ACCUM_MODE ? ReciprocalDestAcc::FP32 : ReciprocalDestAcc::BF16,
          ReciprocalApproxMode approximation = ReciprocalApproxMode::Default>
ALWI void recip_tile(uint32_t idst, VectorMode vector_mode = VectorMode::RC, EMULATOR_CALL_LINE) {
    emulator_sfpu_unary(Sfpu_recip, static_cast<uint32_t>(approximation), idst, 0, 0,
                        static_cast<uint32_t>(vector_mode), line.number);
}
