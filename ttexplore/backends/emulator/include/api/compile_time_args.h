// Compile-time arguments: -DKERNEL_COMPILE_TIME_ARGS=1,2,3 and -DKERNEL_COMPILE_TIME_ARG_MAP={"name",value},...
#pragma once
#include "emulator/interface.h"

#ifndef KERNEL_COMPILE_TIME_ARGS
#define KERNEL_COMPILE_TIME_ARGS
#endif

template <class... Values>
struct EmulatorArguments {
    // One entry more than there are arguments: an array of none is not allowed.
    uint32_t values[sizeof...(Values) + 1];
    static constexpr uint32_t count = sizeof...(Values);
};

template <class... Values>
constexpr EmulatorArguments<Values...> emulator_make_arguments(Values... values) {
    return {{static_cast<uint32_t>(values)..., 0}};
}

constexpr auto kernel_compile_time_args = emulator_make_arguments(KERNEL_COMPILE_TIME_ARGS);

template <uint32_t Idx>
constexpr uint32_t get_ct_arg() {
    static_assert(Idx < decltype(kernel_compile_time_args)::count, "Index out of range");
    return kernel_compile_time_args.values[Idx];
}

#define get_compile_time_arg_val(arg_idx) get_ct_arg<arg_idx>()

#ifdef KERNEL_COMPILE_TIME_ARG_MAP
struct EmulatorNamedArgument {
    const char* name;
    uint32_t value;
};
constexpr EmulatorNamedArgument emulator_named_args[] = {KERNEL_COMPILE_TIME_ARG_MAP};

constexpr bool emulator_same_name(const char* a, const char* b) {
    while (*a && *a == *b) {
        ++a;
        ++b;
    }
    return *a == *b;
}

constexpr uint32_t get_named_compile_time_arg_val(const char* name) {
    for (const auto& argument : emulator_named_args) {
        if (emulator_same_name(argument.name, name)) {
            return argument.value;
        }
    }
    __builtin_unreachable();  // in a constant expression: "this name is no compile-time argument"
}
#endif
