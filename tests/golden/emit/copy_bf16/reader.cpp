// reader of copy for wormhole_n150, written by ttexplore.
// compile-time arguments: A_accessor
// common arguments: A_address
// per core arguments: work_start, work_count

#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

void kernel_main() {
    constexpr auto A_args = TensorAccessorArgs<0>();
    const auto A = TensorAccessor(A_args, get_common_arg_val<uint32_t>(0));
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
        S_buffer.reserve_back(1);
        noc.async_read(A, S_buffer, S_page_bytes, {.page_id = by * 3 + bx}, {.offset_bytes = 0});
        noc.async_read_barrier();
        S_buffer.push_back(1);
    }
}
