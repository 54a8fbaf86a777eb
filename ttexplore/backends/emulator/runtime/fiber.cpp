#include "fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__) || defined(__APPLE__)
#include <ucontext.h>
#define EMULATOR_UCONTEXT
#endif

static constexpr size_t STACK_BYTES = 256 * 1024;
static constexpr size_t GUARD_BYTES = 16 * 1024;

struct Fiber {
    void* stack;
    void (*entry)();
#ifdef EMULATOR_UCONTEXT
    ucontext_t context;
#else
    void* stack_pointer;
#endif
};

static Fiber* current;

static void* stack_create() {
    void* stack = mmap(nullptr, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) {
        abort();
    }
    mprotect(stack, GUARD_BYTES, PROT_NONE);  // an overflow is a crash of this process, not silent damage
    return stack;
}

void* fiber_stack(void* fiber) { return static_cast<Fiber*>(fiber)->stack; }
void fiber_destroy(void* fiber) { delete static_cast<Fiber*>(fiber); }

static void fiber_main() {
    current->entry();
    abort();  // the scheduler never resumes a finished kernel
}

#ifdef EMULATOR_UCONTEXT

static ucontext_t scheduler;

void* fiber_create(void (*entry)(), void* reused_stack) {
    Fiber* fiber = new Fiber{reused_stack ? reused_stack : stack_create(), entry, {}};
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = static_cast<char*>(fiber->stack) + GUARD_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, fiber_main, 0);
    return fiber;
}

void fiber_resume(void* fiber) {
    current = static_cast<Fiber*>(fiber);
    swapcontext(&scheduler, &current->context);
}

void fiber_suspend() { swapcontext(&current->context, &scheduler); }

#else

// Saves the callee-saved registers of the System V ABI on the old stack and takes them from the new one.
extern "C" void emulator_switch_stack(void** save, void* load);
asm(R"(
.text
.globl emulator_switch_stack
.type emulator_switch_stack, @function
emulator_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch_stack, .-emulator_switch_stack
)");

static void* scheduler_stack_pointer;

void* fiber_create(void (*entry)(), void* reused_stack) {
    Fiber* fiber = new Fiber{reused_stack ? reused_stack : stack_create(), entry, nullptr};
    void** top = reinterpret_cast<void**>(static_cast<char*>(fiber->stack) + GUARD_BYTES + STACK_BYTES);
    *--top = nullptr;  // the ABI wants the stack pointer 8 bytes off 16-byte alignment at a function's entry
    *--top = reinterpret_cast<void*>(fiber_main);
    for (int saved = 0; saved < 6; ++saved) {
        *--top = nullptr;
    }
    fiber->stack_pointer = top;
    return fiber;
}

void fiber_resume(void* fiber) {
    current = static_cast<Fiber*>(fiber);
    emulator_switch_stack(&scheduler_stack_pointer, current->stack_pointer);
}

void fiber_suspend() { emulator_switch_stack(&current->stack_pointer, scheduler_stack_pointer); }

#endif
