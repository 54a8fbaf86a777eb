#pragma once

// Cooperative fibers: a kernel runs on its own stack until it blocks.
void* fiber_create(void (*entry)(), void* reused_stack);  // `reused_stack` of a finished fiber, or null
void* fiber_stack(void* fiber);
void fiber_destroy(void* fiber);    // keeps its stack
void fiber_resume(void* fiber);     // from the scheduler
void fiber_suspend();               // from a fiber, back to the scheduler
