// compute of plain for wormhole_n150, written by ttexplore.
// per core arguments: work_count

#include <cstdint>
#include "api/compute/common.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"
#include "api/dataflow/dataflow_buffer.h"

void kernel_main() {
    constexpr uint32_t cb_a = 0;
    constexpr uint32_t cb_b = 1;
    constexpr uint32_t cb_c_out = 16;
    constexpr uint32_t cb_c_partials = 24;
    DataflowBuffer a_buffer(cb_a);
    DataflowBuffer b_buffer(cb_b);
    DataflowBuffer c_out_buffer(cb_c_out);
    DataflowBuffer c_partials_buffer(cb_c_partials);
    compute_kernel_hw_startup<SrcOrder::Reverse>(cb_a, cb_b, cb_c_partials);
    const uint32_t work_count = get_arg_val<uint32_t>(0);
    matmul_block_init(cb_a, cb_b, 0, 4, 1, 1);
    for (uint32_t item = 0; item < work_count; ++item) {
        pack_reconfig_data_format(cb_c_partials);
        for (uint32_t kb = 0; kb < 3; ++kb) {
            a_buffer.wait_front(4);
            b_buffer.wait_front(4);
            for (uint32_t sm = 0; sm < 4; ++sm) {
                tile_regs_acquire();
                if (kb > 0) {
                    c_partials_buffer.wait_front(4);
                    reconfig_data_format_srca(cb_b, cb_c_partials);
                    copy_init(cb_c_partials);
                    for (uint32_t t = 0; t < 4; ++t) {
                        copy_tile(cb_c_partials, t, t);
                    }
                    c_partials_buffer.pop_front(4);
                    reconfig_data_format_srca(cb_c_partials, cb_b);
                    matmul_block_init(cb_a, cb_b, 0, 4, 1, 1);
                }
                matmul_block(cb_a, cb_b, sm, 0, 0, 0, 4, 1, 1);
                tile_regs_commit();
                c_partials_buffer.reserve_back(4);
                tile_regs_wait();
                for (uint32_t t_2 = 0; t_2 < 4; ++t_2) {
                    pack_tile<true>(t_2, cb_c_partials, t_2);
                }
                tile_regs_release();
                c_partials_buffer.push_back(4);
            }
            a_buffer.pop_front(4);
            b_buffer.pop_front(4);
        }
        a_buffer.wait_front(4);
        b_buffer.wait_front(4);
        c_out_buffer.reserve_back(16);
        pack_reconfig_data_format(cb_c_partials, cb_c_out);
        for (uint32_t sm_2 = 0; sm_2 < 4; ++sm_2) {
            tile_regs_acquire();
            c_partials_buffer.wait_front(4);
            reconfig_data_format_srca(cb_c_partials);
            copy_init(cb_c_partials);
            for (uint32_t t_3 = 0; t_3 < 4; ++t_3) {
                copy_tile(cb_c_partials, t_3, t_3);
            }
            c_partials_buffer.pop_front(4);
            reconfig_data_format_srca(cb_c_partials, cb_b);
            matmul_block_init(cb_a, cb_b, 0, 4, 1, 1);
            matmul_block(cb_a, cb_b, sm_2, 0, 0, 0, 4, 1, 1);
            tile_regs_commit();
            tile_regs_wait();
            for (uint32_t t_4 = 0; t_4 < 4; ++t_4) {
                pack_tile<true>(t_4, cb_c_out, t_4 + sm_2 * 4);
            }
            tile_regs_release();
        }
        a_buffer.pop_front(4);
        b_buffer.pop_front(4);
        c_out_buffer.push_back(16);
    }
}
