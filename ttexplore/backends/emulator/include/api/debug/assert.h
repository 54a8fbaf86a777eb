#pragma once
#include "emulator/interface.h"
#define ASSERT(condition) ((condition) ? (void)0 : emulator_assertion(#condition, __LINE__))
