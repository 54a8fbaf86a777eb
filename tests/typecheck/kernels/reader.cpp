#include <cstdint>
#include "api/dataflow/dataflow_api.h"
#include "api/dataflow/dataflow_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"

// Reads `count` blocks of a row-major tile grid, from block `start` on.
void kernel_main() {
    constexpr uint32_t rows = get_compile_time_arg_val(0);
    constexpr uint32_t stride_pages = get_named_compile_time_arg_val("stride_pages");
    constexpr auto source_args = TensorAccessorArgs<1>();
    const auto source = TensorAccessor(source_args, get_common_arg_val<uint32_t>(0));
    const uint32_t start = get_arg_val<uint32_t>(0);
    const uint32_t count = get_arg_val<uint32_t>(1);
    Noc noc;
    DataflowBuffer block(0);
    for (uint32_t item = 0; item < count; ++item) {
        block.reserve_back(rows);
        for (uint32_t row = 0; row < rows; ++row) {
            noc.async_read(source, block, 2048, {.page_id = (start + item) * rows + row * stride_pages},
                           {.offset_bytes = row * 2048});
        }
        noc.async_read_barrier();
        block.push_back(rows);
    }
}
