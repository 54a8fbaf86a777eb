#pragma once
#include "api/compute/common_globals.h"
#include "api/compute/src_order.h"

template <SrcOrder src_order = SrcOrder::Regular>
ALWI void reconfig_data_format(const uint32_t icb0_new_operand, const uint32_t icb1_new_operand, EMULATOR_CALL_LINE) {
    constexpr bool regular = src_order == SrcOrder::Regular;
    emulator_reconfigure_a(-1, regular ? icb0_new_operand : icb1_new_operand, line.number);
    emulator_reconfigure_b(-1, regular ? icb1_new_operand : icb0_new_operand, line.number);
}
template <SrcOrder src_order = SrcOrder::Regular>
ALWI void reconfig_data_format(const uint32_t icb0_old_operand, const uint32_t icb0_new_operand,
                               const uint32_t icb1_old_operand, const uint32_t icb1_new_operand, EMULATOR_CALL_LINE) {
    constexpr bool regular = src_order == SrcOrder::Regular;
    const uint32_t a_old = regular ? icb0_old_operand : icb1_old_operand;
    const uint32_t b_old = regular ? icb1_old_operand : icb0_old_operand;
    emulator_reconfigure_a(static_cast<int32_t>(a_old), regular ? icb0_new_operand : icb1_new_operand, line.number);
    emulator_reconfigure_b(static_cast<int32_t>(b_old), regular ? icb1_new_operand : icb0_new_operand, line.number);
}
ALWI void reconfig_data_format_srca(const uint32_t srca_new_operand, EMULATOR_CALL_LINE) {
    emulator_reconfigure_a(-1, srca_new_operand, line.number);
}
ALWI void reconfig_data_format_srca(const uint32_t srca_old_operand, const uint32_t srca_new_operand,
                                    EMULATOR_CALL_LINE) {
    emulator_reconfigure_a(static_cast<int32_t>(srca_old_operand), srca_new_operand, line.number);
}
ALWI void reconfig_data_format_srcb(const uint32_t srcb_new_operand, EMULATOR_CALL_LINE) {
    emulator_reconfigure_b(-1, srcb_new_operand, line.number);
}
ALWI void reconfig_data_format_srcb(const uint32_t srcb_old_operand, const uint32_t srcb_new_operand,
                                    EMULATOR_CALL_LINE) {
    emulator_reconfigure_b(static_cast<int32_t>(srcb_old_operand), srcb_new_operand, line.number);
}
template <bool is_tile_dim_reconfig_en = false>
ALWI void pack_reconfig_data_format(const uint32_t new_cb_id, EMULATOR_CALL_LINE) {
    emulator_reconfigure_pack(-1, new_cb_id, line.number);
}
template <bool is_tile_dim_reconfig_en = false>
ALWI void pack_reconfig_data_format(const uint32_t old_cb_id, const uint32_t new_cb_id, EMULATOR_CALL_LINE) {
    emulator_reconfigure_pack(static_cast<int32_t>(old_cb_id), new_cb_id, line.number);
}
