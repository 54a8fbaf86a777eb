#pragma once
#include "emulator/interface.h"

template <typename T>
struct noc_traits_t {
    static_assert(sizeof(T) == 0, "NoC transactions are not supported for this type");
};

enum class NocOptions : uint32_t {
    DEFAULT = 0,
    TXN_ID = 1u << 0,
    POSTED = 1u << 1,
    CUSTOM_VC = 1u << 2,
    MCAST_INCL_SRC = 1u << 3,
    INLINE_L1 = 1u << 4,
    INLINE_REG = 1u << 5,
};
constexpr NocOptions operator|(NocOptions a, NocOptions b) {
    return static_cast<NocOptions>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has_flag(NocOptions options, NocOptions flag) {
    return (static_cast<uint32_t>(options) & static_cast<uint32_t>(flag)) != 0;
}

struct NocOptVals {
    uint32_t vc = 1;
    uint32_t trid = 0;
};

// Largest single packet on Wormhole; it only bounds a template argument here.
#define NOC_MAX_BURST_SIZE 8192

template <typename T>
using src_args_t = typename noc_traits_t<T>::src_args_type;
template <typename T>
using dst_args_t = typename noc_traits_t<T>::dst_args_type;
template <typename T>
using dst_args_mcast_t = typename noc_traits_t<T>::dst_args_mcast_type;

class Noc {
public:
    Noc() = default;
    explicit Noc(uint8_t noc_id) : noc_id_(noc_id) {}
    uint8_t get_noc_id() const { return noc_id_; }

    template <NocOptions opts = NocOptions::DEFAULT, uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1,
              bool enable_noc_tracing = true, typename Src, typename Dst>
    void async_read(const Src& src, const Dst& dst, uint32_t size_bytes, const src_args_t<Src>& src_args,
                    const dst_args_t<Dst>& dst_args, const NocOptVals& = {}, EMULATOR_CALL_LINE) const {
        const NocLocation source = noc_traits_t<Src>::source(src, src_args, line.number);
        const NocLocation target = noc_traits_t<Dst>::target(dst, dst_args, line.number);
        emulator_noc_read(&source, &target, size_bytes, line.number);
    }

    template <NocOptions opts = NocOptions::DEFAULT, uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1,
              bool enable_noc_tracing = true, typename Src, typename Dst>
    void async_write(const Src& src, const Dst& dst, uint32_t size_bytes, const src_args_t<Src>& src_args,
                     const dst_args_t<Dst>& dst_args, const NocOptVals& = {}, EMULATOR_CALL_LINE) const {
        const NocLocation source = noc_traits_t<Src>::source(src, src_args, line.number);
        const NocLocation target = noc_traits_t<Dst>::target(dst, dst_args, line.number);
        emulator_noc_write(&source, &target, size_bytes, line.number);
    }

    template <NocOptions opts = NocOptions::DEFAULT, uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1,
              bool enable_noc_tracing = true, typename Src, typename Dst>
    void async_write_multicast(const Src& src, const Dst& dst, uint32_t size_bytes, uint32_t num_dsts,
                               const src_args_t<Src>& src_args, const dst_args_mcast_t<Dst>& dst_args,
                               bool linked = false, EMULATOR_CALL_LINE) const {
        static_assert(!has_flag(opts, NocOptions::TXN_ID), "Mcasts with transaction id are not supported yet");
        static_assert(!has_flag(opts, NocOptions::POSTED), "Mcasts with posted transactions are not supported");
        (void)linked;
        const NocLocation source = noc_traits_t<Src>::source(src, src_args, line.number);
        const NocLocation target = noc_traits_t<Dst>::target_mcast(dst, dst_args, line.number);
        const NocRectangle rectangle = {dst_args.noc_x_start, dst_args.noc_y_start, dst_args.noc_x_end,
                                        dst_args.noc_y_end};
        emulator_noc_multicast(&source, &target, &rectangle, size_bytes, num_dsts,
                               has_flag(opts, NocOptions::MCAST_INCL_SRC), line.number);
    }

    template <typename Dst>
    void async_write_zeros(const Dst& dst, uint32_t size_bytes, const dst_args_t<Dst>& args = {}, EMULATOR_CALL_LINE) const {
        const NocLocation target = noc_traits_t<Dst>::target(dst, args, line.number);
        emulator_noc_write_zeros(&target, size_bytes, line.number);
    }
    void write_zeros_l1_barrier(EMULATOR_CALL_LINE) const { emulator_noc_read_barrier(line.number); }

    template <NocOptions opts = NocOptions::DEFAULT>
    void async_read_barrier(const NocOptVals& = {}, EMULATOR_CALL_LINE) const {
        emulator_noc_read_barrier(line.number);
    }
    template <NocOptions opts = NocOptions::DEFAULT>
    void async_write_barrier(const NocOptVals& = {}, EMULATOR_CALL_LINE) const {
        emulator_noc_write_barrier(line.number);
    }
    template <NocOptions opts = NocOptions::DEFAULT>
    void async_writes_flushed(const NocOptVals& = {}, EMULATOR_CALL_LINE) const {
        emulator_noc_writes_flushed(line.number);
    }
    void async_atomic_barrier(EMULATOR_CALL_LINE) const { emulator_noc_atomic_barrier(line.number); }
    void async_full_barrier(EMULATOR_CALL_LINE) const {
        emulator_noc_read_barrier(line.number);
        emulator_noc_write_barrier(line.number);
        emulator_noc_atomic_barrier(line.number);
    }

private:
    uint8_t noc_id_ = NOC_INDEX;
};
