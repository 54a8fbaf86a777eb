// reader of plain for wormhole_n150, written by ttexplore.
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
    constexpr uint32_t cb_a = 0;
    constexpr uint32_t a_page_bytes = 2048;
    DataflowBuffer a_buffer(cb_a);
    Noc noc;
    const uint32_t work_start = get_arg_val<uint32_t>(0);
    const uint32_t work_count = get_arg_val<uint32_t>(1);
    for (uint32_t item = 0; item < work_count; ++item) {
        const uint32_t work = work_start + item;
        const uint32_t by = work / 2;
        for (uint32_t kb = 0; kb < 4; ++kb) {
            a_buffer.reserve_back(2);
            for (uint32_t r = 0; r < 2; ++r) {
                noc.async_read(A, a_buffer, a_page_bytes, {.page_id = by * 8 + kb + r * 4},
                    {.offset_bytes = r * a_page_bytes});
            }
            noc.async_read_barrier();
            a_buffer.push_back(2);
        }
    }
}
