// compute of binary for wormhole_n150, written by ttexplore.
// per core arguments: work_count

#include <cstdint>
#include "api/compute/common.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/eltwise_unary/binop_with_scalar.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/pack.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"
#include "api/dataflow/dataflow_buffer.h"

void kernel_main() {
    constexpr uint32_t cb_a = 0;
    constexpr uint32_t cb_b = 1;
    constexpr uint32_t cb_c = 16;
    DataflowBuffer a_buffer(cb_a);
    DataflowBuffer b_buffer(cb_b);
    DataflowBuffer c_buffer(cb_c);
    compute_kernel_hw_startup(cb_a, cb_a, cb_c);
    const uint32_t work_count = get_arg_val<uint32_t>(0);
    copy_init(cb_a);
    for (uint32_t item = 0; item < work_count; ++item) {
        a_buffer.wait_front(4);
        b_buffer.wait_front(4);
        c_buffer.reserve_back(4);
        for (uint32_t sn = 0; sn < 2; ++sn) {
            tile_regs_acquire();
            for (uint32_t t = 0; t < 2; ++t) {
                copy_tile(cb_a, t + sn * 2, t);
            }
            exp_tile_init();
            for (uint32_t t_2 = 0; t_2 < 2; ++t_2) {
                exp_tile(t_2);
            }
            for (uint32_t t_3 = 0; t_3 < 2; ++t_3) {
                copy_tile(cb_b, t_3 + sn * 2, t_3 + 2);
            }
            mul_binary_tile_init();
            for (uint32_t t_4 = 0; t_4 < 2; ++t_4) {
                mul_binary_tile(t_4, t_4 + 2, t_4);
            }
            binop_with_scalar_tile_init();
            for (uint32_t t_5 = 0; t_5 < 2; ++t_5) {
                add_unary_tile(t_5, 0x3f000000u);
            }
            tile_regs_commit();
            tile_regs_wait();
            for (uint32_t t_6 = 0; t_6 < 2; ++t_6) {
                pack_tile<true>(t_6, cb_c, t_6 + sn * 2);
            }
            tile_regs_release();
        }
        a_buffer.pop_front(4);
        b_buffer.pop_front(4);
        c_buffer.push_back(4);
    }
}
