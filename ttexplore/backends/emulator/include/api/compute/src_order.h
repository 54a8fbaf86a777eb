#pragma once
#include "api/compute/common_globals.h"

enum class SrcOrder : uint8_t {
    Regular = 0,  // icb0 -> SrcA, icb1 -> SrcB
    Reverse = 1,  // icb0 -> SrcB, icb1 -> SrcA
};
