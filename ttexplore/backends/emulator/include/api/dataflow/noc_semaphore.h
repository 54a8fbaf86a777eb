#pragma once
#include "api/dataflow/noc.h"

enum class ProgrammableCoreType : uint8_t { TENSIX = 0 };

template <ProgrammableCoreType core_type = ProgrammableCoreType::TENSIX>
class Semaphore {
public:
    explicit Semaphore(uint32_t semaphore_id) : id_(semaphore_id) {}
    void up(uint32_t value, EMULATOR_CALL_LINE) { emulator_semaphore_add(id_, static_cast<int32_t>(value), line.number); }
    void down(uint32_t value, EMULATOR_CALL_LINE) {
        emulator_semaphore_wait(id_, value, 1, line.number);
        emulator_semaphore_add(id_, -static_cast<int32_t>(value), line.number);
    }
    void wait(uint32_t value, EMULATOR_CALL_LINE) const { emulator_semaphore_wait(id_, value, 0, line.number); }
    void wait_min(uint32_t value, EMULATOR_CALL_LINE) const { emulator_semaphore_wait(id_, value, 1, line.number); }
    void set(uint32_t value, EMULATOR_CALL_LINE) { emulator_semaphore_set(id_, value, line.number); }
    uint32_t value(EMULATOR_CALL_LINE) const { return emulator_semaphore_value(id_, line.number); }
    void up(const Noc&, uint32_t noc_x, uint32_t noc_y, uint32_t value, uint8_t vc = 1, EMULATOR_CALL_LINE) {
        (void)vc;
        emulator_semaphore_up_remote(id_, noc_x, noc_y, value, line.number);
    }
    template <NocOptions opts = NocOptions::DEFAULT>
    void set_multicast(const Noc&, uint32_t noc_x_start, uint32_t noc_y_start, uint32_t noc_x_end, uint32_t noc_y_end,
                       uint32_t num_dests, bool linked = false, EMULATOR_CALL_LINE) {
        (void)linked;
        const NocRectangle rectangle = {noc_x_start, noc_y_start, noc_x_end, noc_y_end};
        emulator_semaphore_multicast(id_, &rectangle, num_dests, has_flag(opts, NocOptions::MCAST_INCL_SRC), 0, 0,
                                     line.number);
    }
    void inc_multicast(const Noc&, uint32_t noc_x_start, uint32_t noc_y_start, uint32_t noc_x_end, uint32_t noc_y_end,
                       uint32_t value, uint32_t num_dests, EMULATOR_CALL_LINE) {
        const NocRectangle rectangle = {noc_x_start, noc_y_start, noc_x_end, noc_y_end};
        emulator_semaphore_multicast(id_, &rectangle, num_dests, 0, 1, value, line.number);
    }

private:
    uint32_t id_;
};
