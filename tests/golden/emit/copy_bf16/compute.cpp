// compute of copy for wormhole_n150, written by ttexplore.

#include <cstdint>

// This program only moves data.
void kernel_main() {}
