#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/reconfig_data_format.h"

enum class ReluType : uint8_t { NO_RELU, ZERO_RELU, MIN_THRESHOLD_RELU, MAX_THRESHOLD_RELU };

struct ReluConfig {
    static constexpr ReluConfig none() { return {ReluType::NO_RELU, 0}; }
    static constexpr ReluConfig zero() { return {ReluType::ZERO_RELU, 0}; }
    static constexpr ReluConfig min_threshold(uint32_t t) { return {ReluType::MIN_THRESHOLD_RELU, t}; }
    static constexpr ReluConfig max_threshold(uint32_t t) { return {ReluType::MAX_THRESHOLD_RELU, t}; }
    constexpr ReluType get_mode() const { return mode; }
    constexpr uint32_t get_threshold() const { return threshold; }

private:
    constexpr ReluConfig(ReluType m, uint32_t t) : mode(m), threshold(t) {}
    ReluType mode;
    uint32_t threshold;
};

ALWI void pack_init(uint32_t ocb) { (void)ocb; }
template <bool out_of_order_output = false, bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void pack_tile(uint32_t ifrom_dst, uint32_t icb, uint32_t output_tile_index = 0, EMULATOR_CALL_LINE) {
    emulator_pack_tile(ifrom_dst, icb, out_of_order_output, output_tile_index, line.number);
}
template <bool is_fp32_dest_acc_en = DST_ACCUM_MODE>
ALWI void pack_block(uint32_t ifrom_dst, uint32_t icb, uint32_t ntiles, EMULATOR_CALL_LINE) {
    for (uint32_t tile = 0; tile < ntiles; ++tile) {
        emulator_pack_tile(ifrom_dst + tile, icb, 0, 0, line.number);
    }
}
ALWI void pack_reconfig_l1_acc(const uint32_t l1_acc_en, EMULATOR_CALL_LINE) {
    emulator_pack_accumulate(l1_acc_en, line.number);
}
ALWI void pack_relu_config(const ReluConfig& config, EMULATOR_CALL_LINE) {
    emulator_pack_relu(static_cast<uint32_t>(config.get_mode()), config.get_threshold(), line.number);
}
