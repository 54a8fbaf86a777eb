// writer of copy for wormhole_n150, written by ttexplore.
// compile-time arguments: B_accessor
// common arguments: B_address
// per core arguments: work_start, work_count

#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr auto B_args = TensorAccessorArgs<0>();
    const auto B = TensorAccessor(B_args, get_common_arg_val<uint32_t>(0));
    constexpr uint32_t cb_S = 16;
    constexpr uint32_t S_page_bytes = 2048;
    DataflowBuffer S_buffer(cb_S);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work / 3;
        const uint32_t bx = work % 3;
        S_buffer.wait_front(1);
        noc.async_write(S_buffer, B, S_page_bytes, {.offset_bytes = 0}, {.page_id = by * 3 + bx});
        noc.async_writes_flushed();
        S_buffer.pop_front(1);
    }
    noc.async_write_barrier();
}
