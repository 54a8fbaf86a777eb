#pragma once
// Printing from kernels is not emulated: the arguments are not evaluated.
#define DPRINT(...) do {} while (0)
#define DPRINT_UNPACK(...) do {} while (0)
#define DPRINT_MATH(...) do {} while (0)
#define DPRINT_PACK(...) do {} while (0)
