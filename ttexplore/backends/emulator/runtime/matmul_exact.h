#pragma once
#include "fpu.h"

// What fpu_multiply_tiles() computes, bit for bit, with vectors of floats where the processor has what it takes and
// the operands keep away from the ends of the exponent range; several times faster.
void multiply_tiles_exactly(const float* in0, const float* in1, float* result, FpuMode mode);
