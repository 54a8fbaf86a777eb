// writer of plain for wormhole_n150, written by ttexplore.
// compile-time arguments: C_accessor
// common arguments: C_address
// per core arguments: work_start, work_count

#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr auto C_args = TensorAccessorArgs<0>();
    const auto C = TensorAccessor(C_args, get_common_arg_val<uint32_t>(0));
    constexpr uint32_t cb_c_out = 16;
    constexpr uint32_t c_out_page_bytes = 2048;
    DataflowBuffer c_out_buffer(cb_c_out);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work / 2;
        const uint32_t bx = work % 2;
        c_out_buffer.wait_front(16);
        for (uint32_t r = 0; r < 4; ++r) {
            for (uint32_t c = 0; c < 4; ++c) {
                noc.async_write(c_out_buffer, C, c_out_page_bytes, {.offset_bytes = (r * 4 + c) * c_out_page_bytes},
                    {.page_id = by * 32 + bx * 4 + r * 8 + c});
            }
        }
        noc.async_writes_flushed();
        c_out_buffer.pop_front(16);
    }
    noc.async_write_barrier();
}
