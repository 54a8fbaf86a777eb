#pragma once
#include "api/dataflow/noc.h"
#include "api/tensor/tensor_accessor.h"

template <>
struct noc_traits_t<TensorAccessor> {
    struct src_args_type {
        uint32_t page_id{};
        uint32_t offset_bytes{};
    };
    using dst_args_type = src_args_type;
    static NocLocation source(const TensorAccessor& tensor, const src_args_type& args, uint32_t) {
        return {NocLocation::Tensor, tensor.get_bank_base_address(), args.page_id, tensor.get_aligned_page_size(),
                args.offset_bytes, 0, 0};
    }
    static NocLocation target(const TensorAccessor& tensor, const dst_args_type& args, uint32_t line) {
        return source(tensor, args, line);
    }
};
