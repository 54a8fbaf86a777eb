// reader of plain for wormhole_n150, written by ttexplore.
// compile-time arguments: A_accessor, B_accessor
// common arguments: A_address, B_address
// per core arguments: work_start, work_count

#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr auto A_args = TensorAccessorArgs<0>();
    const auto A = TensorAccessor(A_args, get_common_arg_val<uint32_t>(0));
    constexpr auto B_args = TensorAccessorArgs<A_args.next_compile_time_args_offset()>();
    const auto B = TensorAccessor(B_args, get_common_arg_val<uint32_t>(1));
    constexpr uint32_t cb_a = 0;
    constexpr uint32_t cb_b = 1;
    constexpr uint32_t a_page_bytes = 2048;
    constexpr uint32_t b_page_bytes = 2048;
    DataflowBuffer a_buffer(cb_a);
    DataflowBuffer b_buffer(cb_b);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work / 2;
        const uint32_t bx = work % 2;
        for (uint32_t kb = 0; kb < 4; ++kb) {
            a_buffer.reserve_back(4);
            b_buffer.reserve_back(4);
            for (uint32_t r = 0; r < 4; ++r) {
                noc.async_read(A, a_buffer, a_page_bytes, {.page_id = by * 16 + kb + r * 4},
                    {.offset_bytes = r * a_page_bytes});
            }
            for (uint32_t c = 0; c < 4; ++c) {
                noc.async_read(B, b_buffer, b_page_bytes, {.page_id = kb * 8 + bx * 4 + c},
                    {.offset_bytes = c * b_page_bytes});
            }
            noc.async_read_barrier();
            a_buffer.push_back(4);
            b_buffer.push_back(4);
        }
    }
}
