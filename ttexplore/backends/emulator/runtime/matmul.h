#pragma once
#include "number.h"

// One 32x32 tile product on tiles of four 16x16 faces: result += a * b, over the depth range [begin, end) of 32.
// With `fresh`, what `result` held before counts as zero. Each element is a chain of fused multiply-adds in order of
// the depth, whatever the vector width.
void multiply_tiles(const float* a, const float* b, float* result, uint32_t begin, uint32_t end, bool fresh);
