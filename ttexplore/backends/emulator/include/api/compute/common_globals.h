#pragma once
#include "api/compute/cb_api.h"
#include "emulator/interface.h"

// From the plan's compute configuration; the SDK generates the same names.
constexpr bool DST_ACCUM_MODE = EMULATOR_DST_ACCUM_MODE;
constexpr bool APPROX = EMULATOR_APPROX;

enum class VectorMode : uint8_t { None = 0, R = 1, C = 2, RC = 4, RC_custom = 6 };
enum class BroadcastType : uint8_t { NONE = 0, COL = 1, ROW = 2, SCALAR = 3 };
enum class EltwiseBinaryType : uint8_t { ELWMUL, ELWADD, ELWSUB };
enum class EltwiseBinaryReuseDestType { NONE = 0, DEST_TO_SRCA = 1, DEST_TO_SRCB = 2 };

// The names of these enumerators that the SDK brings into scope.
constexpr auto ELWADD = EltwiseBinaryType::ELWADD;
constexpr auto ELWSUB = EltwiseBinaryType::ELWSUB;
constexpr auto ELWMUL = EltwiseBinaryType::ELWMUL;

// The key by which an init and its calls are compared.
constexpr uint32_t emulator_binary_variant(EltwiseBinaryType operation, BroadcastType broadcast) {
    return static_cast<uint32_t>(operation) | static_cast<uint32_t>(broadcast) << 8;
}
constexpr uint32_t emulator_reuse_variant(EltwiseBinaryType operation, EltwiseBinaryReuseDestType reuse) {
    return static_cast<uint32_t>(operation) | static_cast<uint32_t>(reuse) << 8;
}
