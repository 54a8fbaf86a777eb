#pragma once
#include "api/dataflow/noc.h"

// Memory of another core by NoC coordinates; the emulator's NoC coordinates are the logical ones.
struct UnicastEndpoint {};
struct MulticastEndpoint {};

template <>
struct noc_traits_t<UnicastEndpoint> {
    struct src_args_type {
        uint32_t noc_x{};
        uint32_t noc_y{};
        uint32_t addr{};
    };
    using dst_args_type = src_args_type;
    static NocLocation source(const UnicastEndpoint&, const src_args_type& args, uint32_t) {
        return {NocLocation::Remote, args.addr, 0, 0, 0, args.noc_x, args.noc_y};
    }
    static NocLocation target(const UnicastEndpoint& endpoint, const dst_args_type& args, uint32_t line) {
        return source(endpoint, args, line);
    }
};

template <>
struct noc_traits_t<MulticastEndpoint> {
    struct dst_args_mcast_type {
        uint32_t noc_x_start{};
        uint32_t noc_y_start{};
        uint32_t noc_x_end{};
        uint32_t noc_y_end{};
        uint32_t addr{};
    };
    static NocLocation target_mcast(const MulticastEndpoint&, const dst_args_mcast_type& args, uint32_t) {
        return {NocLocation::Local, args.addr, 0, 0, 0, 0, 0};
    }
};
