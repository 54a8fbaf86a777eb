// writer of plain for wormhole_n150, written by ttexplore.
// compile-time arguments: B_accessor, C_accessor
// common arguments: B_address, C_address
// per core arguments: work_start, work_count

#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr auto B_args = TensorAccessorArgs<0>();
    const auto B = TensorAccessor(B_args, get_common_arg_val<uint32_t>(0));
    constexpr auto C_args = TensorAccessorArgs<B_args.next_compile_time_args_offset()>();
    const auto C = TensorAccessor(C_args, get_common_arg_val<uint32_t>(1));
    constexpr uint32_t cb_b = 1;
    constexpr uint32_t cb_c_out = 16;
    constexpr uint32_t b_page_bytes = 2048;
    constexpr uint32_t c_out_page_bytes = 2048;
    DataflowBuffer b_buffer(cb_b);
    DataflowBuffer c_out_buffer(cb_c_out);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work / 2;
        const uint32_t bx = work % 2;
        for (uint32_t kb = 0; kb < 4; ++kb) {
            b_buffer.reserve_back(2);
            for (uint32_t c = 0; c < 2; ++c) {
                noc.async_read(B, b_buffer, b_page_bytes, {.page_id = kb * 4 + bx * 2 + c},
                    {.offset_bytes = c * b_page_bytes});
            }
            noc.async_read_barrier();
            b_buffer.push_back(2);
        }
        c_out_buffer.wait_front(4);
        for (uint32_t r = 0; r < 2; ++r) {
            for (uint32_t c_2 = 0; c_2 < 2; ++c_2) {
                noc.async_write(c_out_buffer, C, c_out_page_bytes, {.offset_bytes = (r * 2 + c_2) * c_out_page_bytes},
                    {.page_id = by * 8 + bx * 2 + r * 4 + c_2});
            }
        }
        noc.async_writes_flushed();
        c_out_buffer.pop_front(4);
    }
    noc.async_write_barrier();
}
