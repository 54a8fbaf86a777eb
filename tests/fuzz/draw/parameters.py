"""Parameters that nothing uses, and names that mean something to C++, the SDK, Python or the passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.description import Allocate, Kernel, Loop, Parallel, Tensor, renamed, statements
from tests.fuzz.draw.draft import DTYPES, Draft

HOSTILE = (
    # C++
    "auto", "char", "const", "delete", "do", "double", "float", "int", "long", "namespace", "new", "operator",
    "register", "short", "signed", "static", "struct", "template", "this", "typename", "union", "unsigned", "void",
    "std", "size_t", "uint32_t", "int8_t", "NULL", "INT32_MIN", "main", "argc", "argv", "asm", "linux", "unix", "errno",
    # the SDK and its headers
    "kernel_main", "noc", "dst", "cb", "get_arg_val", "get_compile_time_arg_val", "copy_tile", "pack_tile", "Noc",
    "TensorAccessor", "DataflowBuffer", "MATH", "PACK", "ALWI", "my_x", "tt", "ckernel", "tile_regs_acquire", "api",
    "device", "program", "queue", "workload", "DataFormat", "BufferType", "CreateKernel", "tt_metal", "experimental",
    # what the emitter and the passes call their own
    "work", "work_start", "work_count", "item", "page", "page_bytes", "place", "zeros", "tiles", "words", "inputs",
    "outputs", "reader", "writer", "compute", "elements", "rows", "columns", "float_bits", "floor_div", "lesser", "t",
    "stream", "options", "Options", "read", "write", "value", "values", "v", "s", "r", "c_out", "cb_a", "cb_a_2", "t_2",
    # Python and NumPy
    "print", "list", "np", "ttnn", "torch", "ttexplore", "os", "self", "match", "type", "exit", "open", "_",
    "__", "_private", "__class__", "l", "O", "größe", "Ω", "名前", "longer_than_any_line_of_a_program_" * 4,
)  # fmt: skip
# Made from the name of another tensor or buffer.
_DERIVED = (
    "{}_out", "{}_out_2", "{}_value", "{}_partials", "{}_masked", "{}_operand", "{}_2", "{}_", "cb_{}", "{}_buffer",
    "{}_args", "{}_tiles", "{}_place", "{}_page_bytes", "{}_t", "_{}",
)  # fmt: skip
NAMES_OF_KERNELS = (
    "main",
    "kernel_main",
    "int",
    "void",
    "reader",
    "compute",
    "host",
    "T_",
    "_",
    "größe",
    "run",
    "test",
)


def unused(draft: Draft) -> None:
    """Up to two tensors that the kernel does not use, anywhere among its parameters."""
    for _ in range(draft.number(1, 2)):
        shapes = [one.shape for one in draft.tensors]
        shape = draft.one([*shapes, (1,), (7,), (33, 1), (2, 3, 40), (1, 2, 3, 4)])
        dtype = draft.one([*DTYPES, "int32", "uint8"])
        values: Any = {"int32": "whole", "uint8": "bytes"}.get(dtype, "coarse")
        draft.tensors.insert(draft.number(0, len(draft.tensors)), Tensor(draft.name("U"), shape, dtype, values))


def hostile(draft: Draft, kernel: Kernel) -> Kernel:
    """The kernel with other names for some of what has one; the name of another thing may be part of them."""
    names: dict[str, str] = {}
    for old in _names(kernel):
        if draft.chance(2):
            other = draft.one([*(one.name for one in kernel.tensors), *_names(kernel)])
            new = draft.one([*HOSTILE, *(form.format(names.get(other, other)) for form in _DERIVED)])
            if new not in names.values():
                names[old] = new
    made: Kernel = renamed(kernel, names)
    return replace(made, name=draft.one(NAMES_OF_KERNELS)) if draft.chance(2) else made


def _names(kernel: Kernel) -> Iterator[str]:
    """Those of tensors, buffers and variables, each once."""
    found = [one.name for one in kernel.tensors]
    for one in statements(kernel.body):
        match one:
            case Allocate(name):
                found.append(name)
            case Loop(variable):
                found.append(variable)
            case Parallel(variables):
                found += variables
            case _:
                pass
    yield from dict.fromkeys(found)
