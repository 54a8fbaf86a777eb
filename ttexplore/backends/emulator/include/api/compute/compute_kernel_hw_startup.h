#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/src_order.h"

template <SrcOrder src_order = SrcOrder::Regular>
ALWI void compute_kernel_hw_startup(uint32_t icb0, uint32_t icb1, uint32_t ocb, EMULATOR_CALL_LINE) {
    constexpr bool regular = src_order == SrcOrder::Regular;
    emulator_startup(regular ? icb0 : icb1, regular ? icb1 : icb0, ocb, line.number);
}
ALWI void compute_kernel_hw_startup(uint32_t icb0, uint32_t ocb, EMULATOR_CALL_LINE) {
    emulator_startup(icb0, icb0, ocb, line.number);
}
