#include <cstdint>
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/relu.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/compute/reg_api.h"
#include "api/compute/tile_move_copy.h"
#include "api/dataflow/dataflow_buffer.h"

// One accumulator tile over `steps` products, kept in buffer 24 in between, then relu(sum + buffer 2).
void kernel_main() {
    constexpr uint32_t steps = get_compile_time_arg_val(0);
    DataflowBuffer a(0);
    DataflowBuffer b(1);
    DataflowBuffer bias(2);
    DataflowBuffer sums(24);
    DataflowBuffer out(16);
    compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 24);
    matmul_block_init(0, 1, 0, 1, 1, 1);
    for (uint32_t step = 0; step < steps; ++step) {
        a.wait_front(1);
        b.wait_front(1);
        tile_regs_acquire();
        if (step > 0) {
            reconfig_data_format_srca(1, 24);
            copy_init(24);
            sums.wait_front(1);
            copy_tile(24, 0, 0);
            sums.pop_front(1);
            reconfig_data_format_srca(24, 1);
            matmul_block_init(0, 1, 0, 1, 1, 1);
        }
        matmul_block(0, 1, 0, 0, 0, 0, 1, 1, 1);
        tile_regs_commit();
        sums.reserve_back(1);
        tile_regs_wait();
        pack_tile(0, 24);
        tile_regs_release();
        sums.push_back(1);
        a.pop_front(1);
        b.pop_front(1);
    }
    reconfig_data_format(1, 24, 0, 2);
    pack_reconfig_data_format(24, 16);
    add_init(24, 2);
    relu_tile_init();
    sums.wait_front(1);
    bias.wait_front(1);
    out.reserve_back(1);
    tile_regs_acquire();
    add_tiles(24, 2, 0, 0, 0);
    relu_tile(0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, 16);
    tile_regs_release();
    out.push_back(1);
    bias.pop_front(1);
    sums.pop_front(1);
}
