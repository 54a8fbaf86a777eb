// Runs one launch of a translated kernel: the job comes from standard input, the arrays or a fault go to standard output.
//
// The source is foreign: before any of its code runs, even what a loader would run, this process gives up every system
// call but those that it needs for the job, where the system can do that (Linux), and sets its limits.

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "fiber.cpp"
#include "machine.h"

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#endif

static constexpr char SEPARATOR = '\x1e';
static constexpr size_t GUARD = 16 << 20;
static constexpr size_t ALIGNMENT = 16;
static constexpr int MOST_THREADS = 1024, MOST_ARGUMENTS = 256;
static constexpr uint64_t MOST_STATIC_BYTES = 48 << 10;
static constexpr rlim_t MOST_MEMORY = 6ull << 30;
// As a number of 16, 32 or 64 bits it is no number, or a large one. Each array has another one around it, so that what
// is read behind one shows where it is written behind another.
static constexpr uint16_t PATTERN = 0x7fff;
static constexpr int PATTERNS = 32;

// ---- the result ----

static void put(const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes) {
        const ssize_t count = write(1, at, bytes);
        if (count <= 0) {
            _exit(3);
        }
        at += count;
        bytes -= static_cast<size_t>(count);
    }
}

[[noreturn]] static void fault(const char* kind, int line, uintptr_t code_address, const char* text) {
    char message[1024];
    const int length = snprintf(
        message, sizeof message, "F%c%s%c%d%c%llx%c%s", SEPARATOR, kind, SEPARATOR, line, SEPARATOR,
        static_cast<unsigned long long>(code_address), SEPARATOR, text);
    put(message, static_cast<size_t>(length) < sizeof message ? static_cast<size_t>(length) : sizeof message - 1);
    _exit(0);
}

// ---- the job ----

struct Header {
    uint32_t blocks[3], threads[3];
    uint64_t shared_bytes;
    uint32_t descending, arguments;
};

struct Argument {
    uint32_t form;  // 0: an array, 1: no array, 2: a number
    uint32_t kind;  // of the elements; of a number, whether it is whole
    uint64_t bytes;
    int64_t whole;
    double number;
};

struct Region {
    char *pages, *start;
    size_t mapped, bytes;
    uint16_t pattern;
};

static Header job;
static Argument arguments[MOST_ARGUMENTS];
static Region regions[MOST_ARGUMENTS], dynamic_region;

static void get(void* data, size_t bytes) {
    char* at = static_cast<char*>(data);
    while (bytes) {
        const ssize_t count = read(0, at, bytes);
        if (count <= 0) {
            fault("job", 0, 0, "the job is cut off");
        }
        at += count;
        bytes -= static_cast<size_t>(count);
    }
}

static void fill(char* from, const char* to, uint16_t pattern) {
    for (char* at = from; at < to; ++at) {
        *at = reinterpret_cast<const char*>(&pattern)[reinterpret_cast<uintptr_t>(at) & 1];
    }
}

static const char* unfilled(const char* from, const char* to, uint16_t pattern) {
    for (const char* at = from; at < to; ++at) {
        if (*at != reinterpret_cast<const char*>(&pattern)[reinterpret_cast<uintptr_t>(at) & 1]) {
            return at;
        }
    }
    return nullptr;
}

// Memory between pages that nothing may touch: it starts, or (descending) ends, where they do.
static Region region_of(size_t bytes, uint16_t pattern) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (bytes + page - 1) / page * page;
    void* all = mmap(nullptr, room + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        fault("memory", 0, 0, "there is not enough memory for its arrays");
    }
    char* pages = static_cast<char*>(all) + GUARD;
    if (room && mprotect(pages, room, PROT_READ | PROT_WRITE)) {
        fault("memory", 0, 0, "there is not enough memory for its arrays");
    }
    fill(pages, pages + room, pattern);
    return {pages, job.descending ? pages : pages + (room - bytes) / ALIGNMENT * ALIGNMENT, room, bytes, pattern};
}

// ---- the machine ----

namespace ttx_machine {
uint3 thread, block, threads, blocks;
unsigned lane;
char* dynamic_shared;
unsigned long long clock;
}  // namespace ttx_machine

enum State : uint8_t { READY, IN_BLOCK, IN_WARP, RETURNED };

struct Thread {
    void* fiber;
    State state;
    bool predicate;
    int line;
    unsigned mask;
    void* slot;
    ttx_machine::Combine combine;
};

static Thread threads[MOST_THREADS];
static void* stacks[MOST_THREADS];
static int count, running;
static unsigned holding, meeting;

static void where(char* text, size_t size) {
    snprintf(
        text, size, "thread (%u, %u, %u) of block (%u, %u, %u)", ttx_machine::thread.x, ttx_machine::thread.y,
        ttx_machine::thread.z, ttx_machine::block.x, ttx_machine::block.y, ttx_machine::block.z);
}

static void select(int index) {
    running = index;
    const unsigned number = static_cast<unsigned>(index);
    ttx_machine::thread = {
        number % ttx_machine::threads.x, number / ttx_machine::threads.x % ttx_machine::threads.y,
        number / ttx_machine::threads.x / ttx_machine::threads.y};
    ttx_machine::lane = number % ttx_machine::WARP;
}

namespace ttx_machine {

unsigned block_meets(int line, bool predicate, unsigned* present) {
    Thread& own = ::threads[running];
    own.state = IN_BLOCK;
    own.line = line;
    own.predicate = predicate;
    fiber_suspend();
    if (present) {
        *present = meeting;
    }
    return holding;
}

unsigned lanes_there() {
    const int first = running / WARP * WARP;
    unsigned there = 0;
    for (int index = first; index < first + WARP && index < count; ++index) {
        there |= ::threads[index].state != RETURNED ? 1u << (index - first) : 0;
    }
    return there;
}

[[noreturn]] void refuse(int line, const char* what) { fault("fault", line, 0, what); }

void* pointer_argument(int index, unsigned kind, unsigned bytes) {
    const Argument& argument = arguments[index];
    char text[128];
    if (argument.form == 1) {
        return nullptr;
    }
    if (argument.form != 0) {
        snprintf(text, sizeof text, "%d", index);
        fault("pointer", 0, 0, text);
    }
    if (kind != ANY && argument.kind != kind) {
        snprintf(text, sizeof text, "%d,%u,%u", index, kind, bytes);
        fault("kind", 0, 0, text);
    }
    return regions[index].start;
}

static const Argument& number_argument(int index) {
    if (arguments[index].form != 2) {
        char text[32];
        snprintf(text, sizeof text, "%d", index);
        fault("number", 0, 0, text);
    }
    return arguments[index];
}

double float_argument(int index) { return number_argument(index).number; }
long long integer_argument(int index) {
    const Argument& argument = number_argument(index);
    if (!argument.kind) {
        char text[32];
        snprintf(text, sizeof text, "%d", index);
        fault("whole", 0, 0, text);
    }
    return argument.whole;
}

}  // namespace ttx_machine

// Lets the lanes go on that meet with this thread, if all of them are there.
static void meet_lanes(int index) {
    const int first = index / ttx_machine::WARP * ttx_machine::WARP;
    const Thread& last = threads[index];
    void* lanes[ttx_machine::WARP] = {};
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        const int peer = first + lane;
        if (!(last.mask >> lane & 1) || peer >= count || threads[peer].state == RETURNED) {
            continue;
        }
        if (threads[peer].state != IN_WARP || threads[peer].mask != last.mask) {
            return;
        }
        lanes[lane] = threads[peer].slot;
    }
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (lanes[lane] && (threads[first + lane].line != last.line || threads[first + lane].combine != last.combine)) {
            char text[256];
            snprintf(
                text, sizeof text, "lanes of a warp meet in different calls, at line %d and at line %d",
                threads[first + lane].line, last.line);
            fault("divergent", last.line, 0, text);
        }
    }
    const unsigned before = ttx_machine::lane;
    ttx_machine::lane = static_cast<unsigned>(index % ttx_machine::WARP);
    last.combine(lanes);
    ttx_machine::lane = before;
    for (int lane = 0; lane < ttx_machine::WARP; ++lane) {
        if (lanes[lane]) {
            threads[first + lane].state = READY;
        }
    }
}

void ttx_machine::lanes_meet(unsigned mask, int line, void* mine, Combine combine) {
    Thread& own = ::threads[running];
    if (!(mask >> lane & 1)) {
        refuse(line, "a lane calls for lanes among which it is not");
    }
    own.state = IN_WARP;
    own.line = line;
    own.mask = mask;
    own.slot = mine;
    own.combine = combine;
    meet_lanes(running);
    if (own.state != READY) {
        fiber_suspend();
    }
}

static void thread_main() {
    ttx_thread();
    threads[running].state = RETURNED;
    fiber_suspend();
}

// Threads wait for others that wait elsewhere.
[[noreturn]] static void stuck() {
    int of_line = 0, of_others = 0, returned = 0;
    const Thread *first = nullptr, *second = nullptr;
    for (int index = 0; index < count; ++index) {
        const Thread& thread = threads[index];
        if (thread.state == RETURNED) {
            ++returned;
        } else if (!first || (thread.line == first->line && thread.state == first->state)) {
            first = first ? first : &thread;
            ++of_line;
        } else {
            second = second ? second : &thread;
            ++of_others;
        }
    }
    char text[400];
    int length = snprintf(
        text, sizeof text, "threads wait for each other for ever: %d at line %d%s", of_line, first->line,
        first->state == IN_WARP ? ", for lanes of their warp" : "");
    if (second) {
        length += snprintf(
            text + length, sizeof text - static_cast<size_t>(length), "; %d at line %d", of_others, second->line);
    }
    if (returned) {
        snprintf(text + length, sizeof text - static_cast<size_t>(length), "; %d have returned", returned);
    }
    fault("divergent", first->line, 0, text);
}

// Whether all threads that are there wait for the block, at the same line; they go on.
static bool meet_block() {
    int line = 0;
    unsigned predicates = 0, there = 0;
    for (int index = 0; index < count; ++index) {
        const Thread& thread = threads[index];
        if (thread.state == RETURNED) {
            continue;
        }
        if (thread.state != IN_BLOCK || (there && thread.line != line)) {
            return false;
        }
        line = thread.line;
        ++there;
        predicates += thread.predicate;
    }
    holding = predicates;
    meeting = there;
    for (int index = 0; index < count; ++index) {
        threads[index].state = threads[index].state == IN_BLOCK ? READY : RETURNED;
    }
    return true;
}

static void run_block() {
    for (int index = 0; index < count; ++index) {
        threads[index] = {fiber_create(thread_main, stacks[index]), READY, false, 0, 0, nullptr, nullptr};
        stacks[index] = fiber_stack(threads[index].fiber);
    }
    for (int returned = 0; returned < count;) {
        bool moved = false;
        for (int step = 0; step < count; ++step) {
            const int index = job.descending ? count - 1 - step : step;
            if (threads[index].state != READY) {
                continue;
            }
            moved = true;
            select(index);
            fiber_resume(threads[index].fiber);
            if (threads[index].state == RETURNED) {
                ++returned;
                // Those of its warp may have waited only for it.
                const int first = index / ttx_machine::WARP * ttx_machine::WARP;
                for (int peer = first; peer < first + ttx_machine::WARP && peer < count; ++peer) {
                    if (threads[peer].state == IN_WARP) {
                        meet_lanes(peer);
                    }
                }
            }
        }
        if (!moved && !meet_block()) {
            stuck();
        }
    }
    for (int index = 0; index < count; ++index) {
        fiber_destroy(threads[index].fiber);
    }
}

#ifdef __APPLE__
extern char shared_start __asm("section$start$__DATA$ttx_shared");
extern char shared_stop __asm("section$end$__DATA$ttx_shared");
#else
extern char shared_start __asm("__start_ttx_shared") __attribute__((weak));
extern char shared_stop __asm("__stop_ttx_shared") __attribute__((weak));
#endif

static void run_grid() {
    ttx_machine::blocks = {job.blocks[0], job.blocks[1], job.blocks[2]};
    ttx_machine::threads = {job.threads[0], job.threads[1], job.threads[2]};
    const uint64_t all = static_cast<uint64_t>(job.blocks[0]) * job.blocks[1] * job.blocks[2];
    for (uint64_t step = 0; step < all; ++step) {
        const uint64_t index = job.descending ? all - 1 - step : step;
        ttx_machine::block = {
            static_cast<unsigned>(index % job.blocks[0]), static_cast<unsigned>(index / job.blocks[0] % job.blocks[1]),
            static_cast<unsigned>(index / job.blocks[0] / job.blocks[1])};
        fill(&shared_start, &shared_stop, PATTERN);
        fill(dynamic_region.pages, dynamic_region.pages + dynamic_region.mapped, PATTERN);
        run_block();
    }
}

// ---- faults ----

static bool is_in_stack(uintptr_t address) {
    for (int index = 0; index < count; ++index) {
        const uintptr_t stack = reinterpret_cast<uintptr_t>(stacks[index]);
        if (stack && address >= stack && address < stack + GUARD_BYTES) {
            return true;
        }
    }
    return false;
}

static void on_signal(int number, siginfo_t* info, void* context) {
    uintptr_t code = 0;
    const char* access = "touches";
#if defined(__linux__) && defined(__x86_64__)
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    code = static_cast<uintptr_t>(registers[REG_RIP]);
    access = number == SIGSEGV ? (registers[REG_ERR] & 2 ? "writes" : "reads") : access;
#elif defined(__linux__) && defined(__aarch64__)
    code = static_cast<ucontext_t*>(context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    char thread[96], text[300];
    where(thread, sizeof thread);
    if (number == SIGALRM || number == SIGXCPU) {
        fault("time", 0, code, thread);
    }
    if (number == SIGFPE) {
        snprintf(text, sizeof text, "%s divides a whole number by 0", thread);
        fault("fault", 0, code, text);
    }
    if (number != SIGSEGV && number != SIGBUS) {
        snprintf(text, sizeof text, "%s ends by signal %d", thread, number);
        fault("fault", 0, code, text);
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
    if (is_in_stack(address)) {
        snprintf(text, sizeof text, "the local memory of %s overflows: %zu KiB are here", thread, STACK_BYTES >> 10);
        fault("fault", 0, code, text);
    }
    if (code == address) {
        snprintf(text, sizeof text, "%s calls what is no function", thread);
        fault("fault", 0, 0, text);
    }
    for (uint32_t index = 0; index <= job.arguments; ++index) {
        const bool dynamic = index == job.arguments;
        const Region& region = dynamic ? dynamic_region : regions[index];
        const uintptr_t pages = reinterpret_cast<uintptr_t>(region.pages);
        if (region.pages && address >= pages - GUARD && address < pages + region.mapped + GUARD) {
            snprintf(
                text, sizeof text, "%d,%s,%lld,%zu,%s", dynamic ? -1 : static_cast<int>(index), access,
                static_cast<long long>(address) - static_cast<long long>(reinterpret_cast<uintptr_t>(region.start)),
                region.bytes, thread);
            fault("outside", 0, code, text);
        }
    }
    snprintf(text, sizeof text, "%s %s memory that no argument has", thread, access);
    fault("fault", 0, code, text);
}

// ---- what the compiler's checks call: the place of the check stands first in their data ----

struct Place {
    const char* file;
    uint32_t line, column;
};

extern "C" void __ubsan_handle_out_of_bounds_abort(const Place* place, uintptr_t index) {
    char thread[96], text[300];
    where(thread, sizeof thread);
    snprintf(
        text, sizeof text, "%s takes element %lld of an array of the kernel, which has fewer", thread,
        static_cast<long long>(index));
    fault("fault", static_cast<int>(place->line), 0, text);
}

extern "C" void __ubsan_handle_type_mismatch_v1_abort(const Place* place, uintptr_t pointer) {
    char thread[96], text[300];
    where(thread, sizeof thread);
    snprintf(
        text, sizeof text, "%s uses the address %#llx, which is not aligned for its type", thread,
        static_cast<unsigned long long>(pointer));
    fault("fault", static_cast<int>(place->line), 0, text);
}

extern "C" void __ubsan_handle_divrem_overflow_abort(const Place* place, uintptr_t, uintptr_t) {
    char thread[96], text[300];
    where(thread, sizeof thread);
    snprintf(text, sizeof text, "%s divides a whole number by 0", thread);
    fault("fault", static_cast<int>(place->line), 0, text);
}

// ---- confinement ----

static bool confined;

static void limit(int resource, rlim_t most) {
    const struct rlimit values = {most, most};
    setrlimit(static_cast<decltype(RLIMIT_CPU)>(resource), &values);
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
static void give_up_system_calls() {
#ifdef __x86_64__
    constexpr uint32_t architecture = AUDIT_ARCH_X86_64;
#else
    constexpr uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_ALLOW)
// A call whose first argument must be `value`.
#define ALLOW_ON(number, value)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4), LOAD(args[0]),                                       \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)
// Memory that is not executable.
#define ALLOW_DATA(number)                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4), LOAD(args[2]),                                       \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), RETURN(SECCOMP_RET_ALLOW),                   \
        RETURN(SECCOMP_RET_KILL_PROCESS)
    static struct sock_filter program[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        ALLOW(__NR_exit_group),
        ALLOW(__NR_rt_sigreturn),
        ALLOW(__NR_munmap),
        ALLOW(__NR_brk),
        ALLOW(__NR_getrandom),
        ALLOW_ON(__NR_read, 0),
        ALLOW_ON(__NR_write, 1),
        ALLOW_DATA(__NR_mmap),
        ALLOW_DATA(__NR_mprotect),
        RETURN(SECCOMP_RET_KILL_PROCESS),
    };
    static struct sock_fprog filter = {sizeof program / sizeof *program, program};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // Without it, as in some containers, the limits and the reading of the source remain.
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
#else
static void give_up_system_calls() {}
#endif

static void confine(int argument_count, char** words, char**) {
    if (confined || argument_count < 3) {
        return;
    }
    confined = true;
    const int seconds = atoi(words[1]);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != atoi(words[2])) {
        _exit(3);
    }
    static char signal_stack[64 << 10];
    stack_t alternate = {};
    alternate.ss_sp = signal_stack;
    alternate.ss_size = sizeof signal_stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM, SIGXCPU};
    for (int number : numbers) {
        sigaction(number, &action, nullptr);
    }
    const struct itimerval timer = {{0, 0}, {seconds, 0}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    limit(RLIMIT_CPU, static_cast<rlim_t>(seconds) + 1);
    limit(RLIMIT_AS, MOST_MEMORY);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 3);
#ifdef RLIMIT_NPROC
    limit(RLIMIT_NPROC, 0);
#endif
    give_up_system_calls();
}

#ifdef __linux__
// Before the constructors of anything.
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char**, char**) = confine;
#endif

int main(int argument_count, char** words) {
    confine(argument_count, words, nullptr);
    get(&job, sizeof job);
    const uint64_t block = static_cast<uint64_t>(job.threads[0]) * job.threads[1] * job.threads[2];
    const uint64_t static_bytes = static_cast<uint64_t>(&shared_stop - &shared_start);
    if (static_bytes > MOST_STATIC_BYTES) {
        char text[128];
        snprintf(
            text, sizeof text, "its __shared__ arrays take %llu bytes, and a block has %llu",
            static_cast<unsigned long long>(static_bytes), static_cast<unsigned long long>(MOST_STATIC_BYTES));
        fault("fault", 0, 0, text);
    }
    if (block == 0 || block > MOST_THREADS || job.arguments > MOST_ARGUMENTS) {
        fault("job", 0, 0, "the job has too many threads or arguments");
    }
    count = static_cast<int>(block);
    get(arguments, job.arguments * sizeof *arguments);
    for (uint32_t index = 0; index < job.arguments; ++index) {
        if (arguments[index].form == 0) {
            regions[index] = region_of(arguments[index].bytes, static_cast<uint16_t>(PATTERN - 1 - index % PATTERNS));
            get(regions[index].start, arguments[index].bytes);
        }
    }
    dynamic_region = region_of(job.shared_bytes, PATTERN);
    ttx_machine::dynamic_shared = dynamic_region.start;
    ttx_check();
    run_grid();
    for (uint32_t index = 0; index < job.arguments; ++index) {
        const Region& region = regions[index];
        if (!region.pages) {
            continue;
        }
        const char* written = unfilled(region.pages, region.start, region.pattern);
        written =
            written ? written : unfilled(region.start + region.bytes, region.pages + region.mapped, region.pattern);
        if (written) {
            char text[128];
            snprintf(
                text, sizeof text, "%d,writes,%lld,%zu,a thread", static_cast<int>(index),
                static_cast<long long>(written - region.start), region.bytes);
            fault("outside", 0, 0, text);
        }
    }
    put("K", 1);
    for (uint32_t index = 0; index < job.arguments; ++index) {
        if (regions[index].pages) {
            put(regions[index].start, regions[index].bytes);
        }
    }
    _exit(0);
}
