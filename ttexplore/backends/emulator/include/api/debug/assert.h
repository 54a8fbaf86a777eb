#pragma once
#define ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
