// writer of binary for wormhole_n150, written by ttexplore.
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
    constexpr uint32_t cb_c = 16;
    constexpr uint32_t c_page_bytes = 4096;
    DataflowBuffer c_buffer(cb_c);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work;
        const uint32_t bx = 0;
        c_buffer.wait_front(4);
        for (uint32_t r = 0; r < 2; ++r) {
            for (uint32_t c = 0; c < 2; ++c) {
                noc.async_write(c_buffer, C, c_page_bytes, {.offset_bytes = (r * 2 + c) * c_page_bytes},
                    {.page_id = by * 4 + bx * 2 + r * 2 + c});
            }
        }
        noc.async_writes_flushed();
        c_buffer.pop_front(4);
    }
    noc.async_write_barrier();
}
