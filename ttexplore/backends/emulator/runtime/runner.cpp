// The child process: reads a job, loads the three kernels, runs all cores, writes the result.
//
//   runner JOB LIMIT PARENT
//                   in the job's folder; ends after LIMIT seconds and with the process PARENT that started it, and with
//                   it all that the program has started.
//                   JOB is a text of one declaration per line (see read_job), result.txt the answer:
//                   a word (ok, fault, deadlock, timeout, crash), then fields, separated by the ASCII record separator; the Python side
//                   reads it (backend.py).
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fiber.h"
#include "fpu.h"
#include "machine.h"
#include "matmul_exact.h"

Machine machine;
Kernel* running = nullptr;

static constexpr char SEPARATOR = '\x1e';
static std::vector<CoreMemory*> free_memories;
static std::vector<void*> free_stacks;

// ---- results and faults

static void write_result(const char* text, size_t bytes) {
    const int file = open("result.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    while (file >= 0 && bytes) {
        const ssize_t written = write(file, text, bytes);
        if (written <= 0) {
            break;
        }
        text += written;
        bytes -= static_cast<size_t>(written);
    }
    close(file);
}

std::string format_text(const char* pattern, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, pattern);
    vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

void fault(const char* code, const std::string& message, const std::string& hint) {
    const std::string where = running ? format_text("%s%c%u", KERNEL_NAMES[running->role], SEPARATOR, running->line)
                                      : format_text("%c", SEPARATOR);
    const std::string text = std::string("fault") + SEPARATOR + code + SEPARATOR + message + SEPARATOR + hint + SEPARATOR + where;
    write_result(text.data(), text.size());
    _exit(0);
}

void kernel_fault(const char* code, const std::string& message, const std::string& hint) {
    fault(code,
          format_text("%s kernel on core (%u, %u), %s.cpp line %u: ", KERNEL_NAMES[running->role], running->core->x,
                      running->core->y, KERNEL_NAMES[running->role], running->line) +
              message,
          hint);
}

[[noreturn]] static void broken_job(const std::string& what) { fault("B019",
                                                                     "the emulator's job is broken: " + what, ""); }

static void save(const std::string& path, const void* data, size_t bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    file.close();
    if (!file) {
        broken_job("cannot write " + path);
    }
}

bool made_room_for_event() {
    const uint32_t cores = static_cast<uint32_t>(machine.cores.size());
    while (machine.event_cursor == machine.event_end && machine.event_stride < cores) {
        machine.event_stride *= 2;
        for (Core& core : machine.cores) {
            core.recorded = core.index % machine.event_stride == machine.event_core % machine.event_stride;
        }
        machine.event_cursor = std::remove_if(machine.events, machine.event_cursor,
                                              [](const Event& event) { return !machine.cores[event.core].recorded; });
    }
    const bool full = machine.event_cursor == machine.event_end;
    machine.events_cut += running->core->recorded && full;
    return running->core->recorded && !full;
}

// Read by backend.py.
static std::string event_counts() {
    return format_text("%llu %u %llu", static_cast<unsigned long long>(machine.event_count), machine.event_stride,
                       static_cast<unsigned long long>(machine.events_cut));
}

void keep_move(const Place& from, const Place& to, uint32_t bytes, bool adds, bool also) {
    machine.operation += !also;
    if (machine.move_cursor != machine.move_end) {
        const uint32_t core = running ? running->core->index : to.kind == Place::L1 ? to.object : from.object;
        *machine.move_cursor++ = {machine.operation, bytes, from.page, from.offset, to.page, to.offset,
                                  static_cast<uint16_t>(core), static_cast<uint16_t>(running ? running->line : 0),
                                  from.object, to.object, from.kind, to.kind,
                                  static_cast<uint8_t>(running ? running->role : HOST), adds};
    }
}

static void save_events() {
    const size_t recorded = static_cast<size_t>(machine.event_cursor - machine.events);
    save("events.bin", machine.events, recorded * sizeof(Event));
    if (machine.moves) {
        save("moves.bin", machine.moves, static_cast<size_t>(machine.move_cursor - machine.moves) * sizeof(Move));
    }
}

// A time limit (SIGTERM from the parent, else SIGALRM) or a crash: says where the kernels were. Only async-signal-safe calls, except for snprintf.
static void on_signal(int signal) {
    char text[256];
    const char* kind = signal == SIGTERM || signal == SIGALRM ? "timeout" : "crash";
    int length;
    if (running) {
        const char* name = KERNEL_NAMES[running->role];
        length = snprintf(text, sizeof text, "%s%cthe %s kernel on core (%u, %u) was running, last call in %s.cpp line %u%csignal %d%c%s%c%u",
                          kind, SEPARATOR, name, running->core->x, running->core->y, name, running->line, SEPARATOR, signal,
                          SEPARATOR, name, SEPARATOR, running->line);
    } else {
        length = snprintf(text, sizeof text, "%s%cno kernel was running%csignal %d%c%c0", kind, SEPARATOR, SEPARATOR, signal, SEPARATOR, SEPARATOR);
    }
    write_result(text, static_cast<size_t>(length));
    _exit(0);
}

static void catch_signals() {
    static char stack[65536];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    for (int signal : {SIGTERM, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
        sigaction(signal, &action, nullptr);
    }
}

// ---- memory

std::string buffer_name(uint32_t buffer) {
    return format_text("circular buffer %u (%s)", buffer, machine.buffers[buffer].name.c_str());
}

void missing_buffer(uint32_t buffer) {
    kernel_fault("B010",
                 format_text("circular buffer %u does not exist in this program", buffer),
                 "declare it in the plan, or correct the id");
}

Core* core_at(uint32_t x, uint32_t y) {
    for (Core& core : machine.cores) {
        if (core.x == x && core.y == y) {
            return &core;
        }
    }
    return nullptr;
}

static void* map_memory(size_t bytes, bool low) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef MAP_32BIT
    // Kernels hold L1 addresses in 32 bits and may turn them into pointers.
    flags |= low ? MAP_32BIT : 0;
#endif
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) {
        fault("B019",
              format_text("no memory for %zu bytes of emulated L1", bytes), "use fewer cores or smaller circular buffers");
    }
    return memory;
}

// What the host does is done by no kernel, also where one runs.
static void host_moved(const Place& from, const Place& to, uint32_t bytes) {
    Kernel* kernel = running;
    running = nullptr;
    moved(from, to, bytes);
    running = kernel;
}

// A shard that kernels write begins as NaN, so that a missing write shows.
static void load_shards(Core* core) {
    for (const Shard& shard : core->shards) {
        const Tensor& tensor = machine.tensors[shard.tensor];
        for (uint32_t page = 0; page < shard.pages.size(); ++page) {
            uint8_t* place = page_memory(core, shard.buffer, page);
            if (shard.output || shard.pages[page] < 0) {
                memset(place, 0xFF, tensor.page_bytes);
            } else {
                memcpy(place, tensor.memory + static_cast<size_t>(shard.pages[page]) * tensor.page_bytes,
                       tensor.page_bytes);
                host_moved(in_tensor(&tensor, static_cast<uint32_t>(shard.pages[page]), 0), in_l1(core, place),
                           tensor.page_bytes);
            }
        }
    }
}

static void keep_shards(Core* core) {
    for (const Shard& shard : core->shards) {
        Tensor& tensor = machine.tensors[shard.tensor];
        for (uint32_t page = 0; shard.output && page < shard.pages.size(); ++page) {
            if (shard.pages[page] >= 0) {
                memcpy(tensor.memory + static_cast<size_t>(shard.pages[page]) * tensor.page_bytes,
                       page_memory(core, shard.buffer, page), tensor.page_bytes);
                host_moved(in_buffer(core, shard.buffer, page),
                           in_tensor(&tensor, static_cast<uint32_t>(shard.pages[page]), 0), tensor.page_bytes);
                tensor.written[shard.pages[page]] = static_cast<uint16_t>(core->index + 1);
            }
        }
    }
}

CoreMemory* memory_of(Core* core) {
    if (core->memory) {
        return core->memory;
    }
    if (!free_memories.empty()) {
        core->memory = free_memories.back();
        free_memories.pop_back();
        std::fill(core->memory->pushed_at.begin(), core->memory->pushed_at.end(), 0);
        std::fill(core->memory->popped_at.begin(), core->memory->popped_at.end(), 0);
        load_shards(core);
        return core->memory;
    }
    CoreMemory* memory = new CoreMemory;
    memory->l1 = static_cast<uint8_t*>(map_memory(machine.l1_bytes + 4096, true));
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory->l1);
    memory->l1_address = address >> 32 ? 0x10000u : static_cast<uint32_t>(address);
    memory->dst = static_cast<float*>(map_memory(MAXIMUM_DST_TILES * TILE_ELEMENTS * sizeof(float), false));
    memory->written.resize(machine.total_pages);
    memory->pushed_at.resize(machine.total_pages);
    memory->popped_at.resize(machine.total_pages);
    core->memory = memory;
    load_shards(core);
    return memory;
}

// ---- scheduling

static bool ready(const Kernel& kernel) {
    const Core& core = *kernel.core;
    const Buffer& buffer = core.buffers[kernel.wait_object % MAXIMUM_BUFFERS];
    switch (kernel.wait) {
        case Wait::Nothing: return true;
        case Wait::Reserve: return machine.buffers[kernel.wait_object].pages - buffer.available >= kernel.wait_amount;
        case Wait::Front: return buffer.available >= kernel.wait_amount;
        case Wait::Semaphore: return core.semaphores[kernel.wait_object] == kernel.wait_amount;
        case Wait::SemaphoreMinimum: return core.semaphores[kernel.wait_object] >= kernel.wait_amount;
    }
    return true;
}

void block_until(Wait wait, uint32_t object, uint32_t amount) {
    Kernel* self = running;
    self->wait = wait;
    self->wait_object = object;
    self->wait_amount = amount;
    fiber_suspend();
    self->wait = Wait::Nothing;
}

static void check_finished(const Kernel& kernel) {
    if (kernel.outstanding_reads) {
        kernel_fault("B012",
                     format_text("the kernel ends with %u NoC reads in flight", kernel.outstanding_reads),
                     "call noc.async_read_barrier() after the last read");
    }
    if (kernel.unlanded_writes) {
        kernel_fault("B012",
                     format_text("the kernel ends with %u NoC writes in flight", kernel.unlanded_writes),
                     "call noc.async_write_barrier() at the end of the kernel");
    }
    if (kernel.outstanding_atomics) {
        kernel_fault("B012",
                     format_text("the kernel ends with %u remote semaphore increments in flight", kernel.outstanding_atomics),
                     "call noc.async_atomic_barrier() or async_full_barrier() at the end of the kernel");
    }
    const ComputeState& compute = kernel.core->compute;
    if (kernel.role == COMPUTE && compute.section != ComputeState::Free) {
        kernel_fault("B013",
                     format_text("the kernel ends with DST in use (since line %u)", compute.section_line),
                     "end the section: commit, wait, pack, tile_regs_release()");
    }
    if (kernel.role == COMPUTE && compute.bcast_pending) {
        kernel_fault("B014",
                     "the kernel ends after unary_bcast without unary_bcast_uninit: the next program on the core would "
                     "run with its settings",
                     "call unary_bcast_uninit<...>(cb) when the broadcasts are done");
    }
    if (kernel.role == COMPUTE && compute.rows_pending != Fpu_none) {
        const bool tilizes = compute.rows_pending == Fpu_tilize;
        kernel_fault("B014",
                     format_text("the kernel ends after %s without %s: the next program on the core would run with its "
                                 "settings", tilizes ? "tilize_init" : "pack_untilize_init",
                                 tilizes ? "tilize_uninit" : "pack_untilize_uninit"),
                     "undo it after the last block of rows");
    }
}

static void kernel_fiber() {
    running->entry();
    check_finished(*running);
    record(Event_finish, 0, 0);
    running->finished = true;
    fiber_suspend();
}

static void start_kernel(Kernel& kernel) {
    void* stack = nullptr;
    if (!free_stacks.empty()) {
        stack = free_stacks.back();
        free_stacks.pop_back();
    }
    kernel.fiber = fiber_create(kernel_fiber, stack);
    kernel.started = true;
}

static void finish_core(Core& core) {
    for (uint32_t id = 0; id < MAXIMUM_BUFFERS; ++id) {
        if (core.buffers[id].available) {
            fault("B010",
                  format_text("core (%u, %u) ends with %u tiles left in %s", core.x, core.y, core.buffers[id].available,
                              buffer_name(id).c_str()),
                  "balance pushes and pops on every core: pop what was waited for, push what is used");
        }
    }
    core.finished = true;
    keep_shards(&core);
    free_memories.push_back(core.memory);
    core.memory = nullptr;
}

// Runs the core's kernels until each is finished or blocked. True if any ran.
static bool run_core(Core& core) {
    bool progress = false, ran = true;
    while (ran) {
        ran = false;
        for (Kernel& kernel : core.kernels) {
            if (kernel.finished || !ready(kernel)) {
                continue;
            }
            memory_of(&core);
            if (!kernel.started) {
                start_kernel(kernel);
            }
            running = &kernel;
            fiber_resume(kernel.fiber);
            running = nullptr;
            if (kernel.finished) {
                free_stacks.push_back(fiber_stack(kernel.fiber));
                fiber_destroy(kernel.fiber);
            }
            ran = progress = true;
        }
    }
    bool finished = true;
    for (const Kernel& kernel : core.kernels) {
        finished = finished && kernel.finished;
    }
    if (finished) {
        finish_core(core);
    }
    return progress;
}

static std::string kernel_state(const Core& core, int role) {
    if (role < 0) {
        return "no kernel so far";
    }
    const Kernel& kernel = core.kernels[role];
    return std::string(KERNEL_NAMES[role]) + (kernel.finished ? ", which has finished" : ", which waits itself");
}

static void explain_deadlock() {
    std::string message, hint, core_index, waits;
    uint32_t blocked = 0;
    for (const Core& core : machine.cores) {
        if (core.finished) {
            continue;
        }
        const bool told = ++blocked == 1;
        if (told) {
            message = format_text("deadlock: no kernel can proceed. On core (%u, %u):", core.x, core.y);
            core_index = format_text("%u", core.index);
        }
        for (const Kernel& kernel : core.kernels) {
            const char* name = KERNEL_NAMES[kernel.role];
            if (kernel.finished) {
                message += told ? format_text("\n  %s has finished", name) : "";
                continue;
            }
            const uint32_t id = kernel.wait_object, amount = kernel.wait_amount;
            const std::string where = format_text("%s.cpp line %u", name, kernel.line);
            const Buffer& buffer = core.buffers[id % MAXIMUM_BUFFERS];
            std::string what, freed;
            const bool semaphore = kernel.wait != Wait::Front && kernel.wait != Wait::Reserve;
            const uint32_t capacity = semaphore ? 0 : machine.buffers[id].pages;
            const uint32_t there = semaphore ? core.semaphores[id]
                                             : kernel.wait == Wait::Front ? buffer.available : capacity - buffer.available;
            if (kernel.wait == Wait::Front) {
                what = format_text("wait_front(%u) on %s, which has %u of %u tiles", amount, buffer_name(id).c_str(), there, capacity);
                freed = format_text("%u more tiles pushed to %s (its producer: %s)", amount - there, buffer_name(id).c_str(),
                                    kernel_state(core, buffer.producer).c_str());
            } else if (kernel.wait == Wait::Reserve) {
                what = format_text("reserve_back(%u) on %s, which has %u of %u tiles free", amount, buffer_name(id).c_str(), there,
                                   capacity);
                freed = format_text("%u more tiles popped from %s (its consumer: %s)", amount - there, buffer_name(id).c_str(),
                                    kernel_state(core, buffer.consumer).c_str());
            } else {
                what = format_text("semaphore %u waits for %u, it is %u", id, amount, there);
                freed = format_text("semaphore %u raised to %u", id, amount);
            }
            if (told) {
                message += format_text("\n  %s (%s): %s", name, where.c_str(), what.c_str());
                hint += (hint.empty() ? "to continue: " : "; or ") + freed;
            }
            // Read by backend.py: core, kernel, what it waits for, its number, needed, there, capacity, line, in words.
            waits += format_text("%u %s %s %u %u %u %u %u %s\n", core.index, name,
                                 semaphore ? "semaphore" : kernel.wait == Wait::Front ? "wait_front" : "reserve_back", id,
                                 amount, there, capacity, kernel.line, what.c_str());
        }
    }
    message += format_text("\n  %u of %zu cores are blocked", blocked, machine.cores.size());
    save_events();
    const std::string text = "deadlock" + (SEPARATOR + message) + SEPARATOR + hint + SEPARATOR + core_index + SEPARATOR +
                             event_counts() + SEPARATOR + waits;
    write_result(text.data(), text.size());
    _exit(0);
}

static void run_all_cores() {
    size_t finished = 0;
    while (finished < machine.cores.size()) {
        bool progress = false;
        finished = 0;
        for (Core& core : machine.cores) {
            if (!core.finished) {
                progress = run_core(core) || progress;
            }
            finished += core.finished;
        }
        if (!progress && finished < machine.cores.size()) {
            explain_deadlock();
        }
    }
}

// ---- the job

static std::vector<uint32_t> read_words(std::istringstream& line) {
    size_t count = 0;
    line >> count;
    std::vector<uint32_t> words(count);
    for (uint32_t& word : words) {
        line >> word;
    }
    return words;
}

static void load_kernel(uint32_t role, const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = library ? dlsym(library, "_Z11kernel_mainv") : nullptr;
    if (!entry) {
        fault("B019",
              format_text("the %s kernel cannot be loaded: %s", KERNEL_NAMES[role], dlerror()),
              "define void kernel_main() in its text");
    }
    machine.entries[role] = reinterpret_cast<void (*)()>(entry);
}

static uint32_t repeats = 1;

// One declaration per line:
//   compute WIDE_DST DST_TILES FIDELITY EXACT WORMHOLE   events LIMIT CORE MOVES   repeat COUNT
//   tensor NAME ADDRESS PAGE_BYTES PAGES IS_OUTPUT IS_INT32 INPUT_FILE|- OUTPUT_FILE|-
//   buffer ID PAGES PAGE_BYTES FORMAT UNPACK_TO_DEST LIES_THERE NAME
//   kernel ROLE PATH   common ROLE COUNT WORDS   core X Y   arguments ROLE COUNT WORDS (of the last core)
//   shard BUFFER TENSOR IS_OUTPUT COUNT PAGES (of the last core)
static void read_job(const char* path) {
    std::ifstream file(path);
    std::string text;
    while (std::getline(file, text)) {
        std::istringstream line(text);
        std::string word;
        line >> word;
        if (word == "compute") {
            line >> machine.wide_dst >> machine.dst_tiles >> machine.fidelity >> machine.exact >> machine.wormhole;
        } else if (word == "events") {
            line >> machine.event_limit >> machine.event_core >> machine.move_limit;
        } else if (word == "repeat") {
            line >> repeats;
        } else if (word == "tensor") {
            Tensor tensor;
            line >> tensor.name >> tensor.address >> tensor.page_bytes >> tensor.pages >> tensor.output >>
                tensor.integers >> tensor.input_file >> tensor.output_file;
            machine.tensors.push_back(tensor);
        } else if (word == "buffer") {
            uint32_t id = 0, format = 0;
            BufferConfig config;
            line >> id >> config.pages >> config.page_bytes >> format >> config.unpack_to_dest >> config.lies_there >>
                config.name;
            if (id >= MAXIMUM_BUFFERS || format > static_cast<uint32_t>(Format::Bfp8)) {
                broken_job(text);
            }
            config.used = true;
            config.format = static_cast<Format>(format);
            config.l1_offset = machine.l1_bytes;
            config.first_page = machine.total_pages;
            machine.l1_bytes += config.pages * config.page_bytes;
            machine.total_pages += config.pages;
            machine.buffers[id] = config;
        } else if (word == "kernel") {
            uint32_t role = 0;
            std::string library;
            line >> role;
            std::getline(line >> std::ws, library);
            load_kernel(role, library);
        } else if (word == "common") {
            uint32_t role = 0;
            line >> role;
            machine.common_arguments[role % KERNELS] = read_words(line);
        } else if (word == "core") {
            Core core;
            line >> core.x >> core.y;
            core.index = static_cast<uint32_t>(machine.cores.size());
            machine.cores.push_back(core);
        } else if (word == "shard") {
            Shard shard;
            uint32_t count = 0;
            line >> shard.buffer >> shard.tensor >> shard.output >> count;
            shard.pages.resize(count);
            for (int32_t& page : shard.pages) {
                line >> page;
            }
            if (line.fail() || shard.buffer >= MAXIMUM_BUFFERS || shard.tensor >= machine.tensors.size()) {
                broken_job(text);
            }
            machine.cores.back().shards.push_back(shard);
        } else if (word == "arguments") {
            uint32_t role = 0;
            line >> role;
            machine.cores.back().kernels[role % KERNELS].arguments = read_words(line);
        } else {
            broken_job(text);
        }
        if (line.fail()) {
            broken_job(text);
        }
    }
    if (machine.dst_tiles > MAXIMUM_DST_TILES) {
        broken_job("too many DST tiles");
    }
}

static void load_tensors() {
    for (Tensor& tensor : machine.tensors) {
        const size_t bytes = static_cast<size_t>(tensor.page_bytes) * tensor.pages;
        if (!tensor.memory) {
            tensor.memory = static_cast<uint8_t*>(aligned_alloc(64, (bytes + 63) / 64 * 64));
        }
        tensor.written.assign(tensor.pages, 0);
        // NaN where nothing is written, so that a missing write shows; of integers, the number that stands for it.
        if (tensor.integers) {
            std::fill_n(reinterpret_cast<uint32_t*>(tensor.memory), bytes / sizeof(uint32_t), UNWRITTEN_INTEGER);
        } else {
            memset(tensor.memory, 0xFF, bytes);
        }
        if (tensor.input_file != "-") {
            std::ifstream file(tensor.input_file, std::ios::binary);
            if (!file.read(reinterpret_cast<char*>(tensor.memory), static_cast<std::streamsize>(bytes))) {
                broken_job("tensor file " + tensor.input_file);
            }
        }
    }
}

static void reset_cores(const std::vector<Core>& pristine) {
    machine.cores = pristine;
    for (Core& core : machine.cores) {
        core.recorded = machine.event_limit > 0;
        for (uint32_t role = 0; role < KERNELS; ++role) {
            Kernel& kernel = core.kernels[role];
            kernel.core = &core;
            kernel.role = role;
            kernel.entry = machine.entries[role];
            kernel.finished = kernel.entry == nullptr;
        }
    }
    machine.unpacked.assign(machine.total_pages, {});
    machine.event_cursor = machine.events;
    machine.event_count = machine.events_cut = 0;
    machine.event_stride = 1;
    machine.move_cursor = machine.moves;
    machine.operation = 0;
}

// The chip has no denormal numbers.
static void flush_denormals() {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | 1ull << 24));
#endif
}

// Of the processor, so that other processes do not count.
static double now_seconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// ---- the end of all processes

static pid_t watched;

static void end_group(int) {
    kill(0, SIGKILL);
}

static void hand_on(int signal) {
    kill(watched, signal);
}

static void end_with_parent(int signal) {
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, signal);
#else
    (void)signal;
#endif
}

// Returns in a second process, which runs the program. The first one waits for it, out of reach of what the program does
// to its signals and its memory. Nobody waits for the result once the parent has ended, however that ended: then all
// processes of the group end, also those that the program has started. Where the system does not tell, the time limit
// ends them.
static void watch(pid_t parent, unsigned limit) {
    setpgid(0, 0);
    signal(SIGHUP, end_group);
    signal(SIGALRM, end_group);
    end_with_parent(SIGHUP);
    if (getppid() != parent) {
        _exit(3);
    }
    sigset_t requests, before;
    sigemptyset(&requests);
    sigaddset(&requests, SIGTERM);
    sigprocmask(SIG_BLOCK, &requests, &before);
    const pid_t watcher = getpid();
    watched = fork();
    if (watched < 0) {
        perror("fork");
        _exit(4);
    }
    if (watched == 0) {
        signal(SIGHUP, SIG_DFL);
        end_with_parent(SIGKILL);
        if (getppid() != watcher) {
            _exit(3);
        }
        sigprocmask(SIG_SETMASK, &before, nullptr);
        return;
    }
    signal(SIGTERM, hand_on);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    alarm(limit + 2);
    int status;
    while (waitpid(watched, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

int main(int count, char** arguments) {
    if (count != 4) {
        return 2;
    }
    const unsigned limit = static_cast<unsigned>(atol(arguments[2]));
    watch(static_cast<pid_t>(atol(arguments[3])), limit);
    catch_signals();
    alarm(limit);
    read_job(arguments[1]);
    const std::vector<Core> pristine = machine.cores;
    machine.events = static_cast<Event*>(map_memory(machine.event_limit * sizeof(Event) + 16, false));
    machine.event_end = machine.events + machine.event_limit;
    if (machine.move_limit) {
        machine.moves = static_cast<Move*>(map_memory(machine.move_limit * sizeof(Move), false));
        machine.move_end = machine.moves + machine.move_limit;
    }
    const size_t pages = machine.total_pages + 1;
    machine.sources = static_cast<float*>(map_memory(pages * TILE_ELEMENTS * sizeof(float), false));
    machine.operands = static_cast<MatmulOperand*>(map_memory(pages * 2 * sizeof(MatmulOperand), false));
    flush_denormals();
    std::string seconds;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
        reset_cores(pristine);
        load_tensors();
        misnormalised_sums = 0;
        const double start = now_seconds();
        run_all_cores();
        seconds += format_text(repeat ? " %.9f" : "%.9f", now_seconds() - start);
    }
    std::string unwritten;
    for (const Tensor& tensor : machine.tensors) {
        if (tensor.output) {
            uint32_t missing = 0;
            for (uint16_t written : tensor.written) {
                missing += !written;
            }
            unwritten += format_text("%s%s %u", unwritten.empty() ? "" : "\n", tensor.name.c_str(), missing);
            save(tensor.output_file, tensor.memory, static_cast<size_t>(tensor.page_bytes) * tensor.pages);
        }
    }
    save_events();
    const std::string result = "ok" + (SEPARATOR + seconds) + SEPARATOR + event_counts() + SEPARATOR + unwritten +
                               format_text("%c%llu", SEPARATOR, static_cast<unsigned long long>(misnormalised_sums));
    write_result(result.data(), result.size());
    return 0;
}
