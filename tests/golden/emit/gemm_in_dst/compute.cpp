// compute of plain for wormhole_n150, written by ttexplore.
// per core arguments: work_count

#include <cstdint>
#include "api/compute/common.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reg_api.h"
#include "api/dataflow/dataflow_buffer.h"

void kernel_main() {
    constexpr uint32_t cb_a = 0;
    constexpr uint32_t cb_b = 1;
    constexpr uint32_t cb_c_out = 16;
    DataflowBuffer a_buffer(cb_a);
    DataflowBuffer b_buffer(cb_b);
    DataflowBuffer c_out_buffer(cb_c_out);
    compute_kernel_hw_startup<SrcOrder::Reverse>(cb_a, cb_b, cb_c_out);
    const uint32_t work_count = get_arg_val<uint32_t>(0);
    matmul_block_init(cb_a, cb_b, 0, 2, 2, 1);
    for (uint32_t item = 0; item < work_count; ++item) {
        tile_regs_acquire();
        for (uint32_t kb = 0; kb < 4; ++kb) {
            a_buffer.wait_front(2);
            b_buffer.wait_front(2);
            {
                constexpr uint32_t kt = 0;
                matmul_block(cb_a, cb_b, kt, kt * 2, 0, 0, 2, 2, 1);
            }
            a_buffer.pop_front(2);
            b_buffer.pop_front(2);
        }
        c_out_buffer.reserve_back(4);
        tile_regs_commit();
        tile_regs_wait();
        for (uint32_t t = 0; t < 4; ++t) {
            pack_tile<true>(t, cb_c_out, t);
        }
        tile_regs_release();
        c_out_buffer.push_back(4);
    }
}
