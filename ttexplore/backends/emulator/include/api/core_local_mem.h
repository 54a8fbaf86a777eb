#pragma once
#include <stddef.h>
#include "api/dataflow/noc.h"

// Memory of this core's L1 by address.
template <typename T, typename AddressType = uintptr_t>
class CoreLocalMem {
public:
    CoreLocalMem(AddressType address) : address_(address) {}
    CoreLocalMem(T* pointer) : address_(reinterpret_cast<AddressType>(pointer)) {}
    T* get_unsafe_ptr() const { return reinterpret_cast<T*>(address_); }
    AddressType get_address() const { return address_; }
    T& operator[](uint32_t index) const { return get_unsafe_ptr()[index]; }
    T& operator*() const { return get_unsafe_ptr()[0]; }
    T* operator->() const { return get_unsafe_ptr(); }
    CoreLocalMem& operator+=(ptrdiff_t offset) {
        address_ += offset * sizeof(T);
        return *this;
    }
    CoreLocalMem operator+(ptrdiff_t offset) const { return CoreLocalMem(address_ + offset * sizeof(T)); }
    CoreLocalMem operator-(ptrdiff_t offset) const { return CoreLocalMem(address_ - offset * sizeof(T)); }

private:
    AddressType address_;
};

template <typename T, typename AddressType>
struct noc_traits_t<CoreLocalMem<T, AddressType>> {
    struct src_args_type {
        uint32_t offset_bytes{};
    };
    using dst_args_type = src_args_type;
    static NocLocation source(const CoreLocalMem<T, AddressType>& memory, const src_args_type& args, uint32_t) {
        return {NocLocation::Local, static_cast<uint32_t>(memory.get_address()), 0, 0, args.offset_bytes, 0, 0};
    }
    static NocLocation target(const CoreLocalMem<T, AddressType>& memory, const dst_args_type& args, uint32_t line) {
        return source(memory, args, line);
    }
};
