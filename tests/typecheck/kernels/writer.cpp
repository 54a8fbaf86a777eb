#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

// Writes blocks of `rows` tiles behind one another, from page `start` on.
void kernel_main() {
    constexpr uint32_t rows = get_compile_time_arg_val(0);
    constexpr auto target_args = TensorAccessorArgs<1>();
    const auto target = TensorAccessor(target_args, get_common_arg_val<uint32_t>(0));
    const uint32_t start = get_arg_val<uint32_t>(0);
    const uint32_t count = get_arg_val<uint32_t>(1);
    Noc noc;
    DataflowBuffer block(16);
    for (uint32_t item = 0; item < count; ++item) {
        block.wait_front(rows);
        for (uint32_t row = 0; row < rows; ++row) {
            noc.async_write(block, target, 2048, {.offset_bytes = row * 2048}, {.page_id = start + item * rows + row});
        }
        noc.async_writes_flushed();
        block.pop_front(rows);
    }
    noc.async_write_barrier();
}
