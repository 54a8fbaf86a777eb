#pragma once
#include <stddef.h>
#include "api/compile_time_args.h"

// Two compile-time words: flags (2: interleaved in DRAM, 0: interleaved in L1) and the aligned page size.
template <size_t CTA_OFFSET>
struct TensorAccessorArgs {
    static constexpr uint32_t flags = get_compile_time_arg_val(CTA_OFFSET);
    static_assert((flags & ~2u) == 0, "the emulator supports only interleaved tensors: flags 2 (DRAM) or 0 (L1)");
    static constexpr bool is_dram = (flags & 2u) != 0;
    static constexpr uint32_t AlignedPageSize = get_compile_time_arg_val(CTA_OFFSET + 1);
    static constexpr uint32_t next_compile_time_args_offset() { return CTA_OFFSET + 2; }
    static constexpr uint32_t num_compile_time_args() { return 2; }
};

class TensorAccessor {
public:
    template <size_t CTA_OFFSET>
    TensorAccessor(const TensorAccessorArgs<CTA_OFFSET>&, size_t bank_base_address,
                   uint32_t page_size = TensorAccessorArgs<CTA_OFFSET>::AlignedPageSize)
        : bank_base_address_(static_cast<uint32_t>(bank_base_address)), page_size_(page_size) {}
    uint32_t get_bank_base_address() const { return bank_base_address_; }
    uint32_t get_aligned_page_size() const { return page_size_; }

private:
    uint32_t bank_base_address_;
    uint32_t page_size_;
};
