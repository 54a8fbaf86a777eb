// What the runner gives to a kernel: the position of its thread, the meetings of threads, and its arguments.
#pragma once

// Sections of shared memory, which has a pattern in it whenever a block starts.
#ifdef __APPLE__
#define MACHINE_SECTION __attribute__((section("__DATA,ttx_shared")))
#else
#define MACHINE_SECTION __attribute__((section("ttx_shared")))
#endif

struct uint3 {
    unsigned x, y, z;
};

namespace ttx_machine {

constexpr int WARP = 32;

extern uint3 thread, block, threads, blocks;
extern unsigned lane;  // of the thread in its warp
extern char* dynamic_shared;
extern unsigned long long clock;

// All threads of the block meet; the result is how many of them gave a predicate that holds.
unsigned block_meets(int line, bool predicate, unsigned* present);

// The lanes of `mask` meet: the last one calls `combine` with what each has passed, null for those that are not there.
using Combine = void (*)(void* const* lanes);
void lanes_meet(unsigned mask, int line, void* mine, Combine combine);

unsigned lanes_there();  // which lanes of the warp have not returned

[[noreturn]] void refuse(int line, const char* what);

enum Kind : unsigned { FLOAT = 1, HALF, BFLOAT, DOUBLE, I8, U8, I16, U16, I32, U32, I64, U64, BOOLEAN, ANY };

void* pointer_argument(int index, unsigned kind, unsigned bytes);
double float_argument(int index);
long long integer_argument(int index);

}  // namespace ttx_machine

// The translated source has these.
extern "C" void ttx_check();
extern "C" void ttx_thread();
