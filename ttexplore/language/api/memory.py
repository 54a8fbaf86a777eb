"""Tensors and on-chip memory: annotations, outputs, allocations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, SupportsIndex

from tvm import ir, tirx

from ttexplore.errors import KernelError, shown
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import allocation, dtype_of, scope_of
from ttexplore.ir.dataflow import is_on_chip
from ttexplore.ir.operations.groups import VIEW_OF
from ttexplore.language.tracer.builder import (
    AllocationRequest,
    Builder,
    TensorSpec,
    current,
    described,
    shape_of,
    unsupported,
)
from ttexplore.language.tracer.containers import is_tuple
from ttexplore.language.tracer.dtypes import DTYPES, dtype_name


class TensorAnnotation:
    """The type of a tensor: ``T.Tensor((M, N), dtype)``, ``T.Tensor[(M, N), dtype]`` or ``T.Tensor[M, N, dtype]``."""

    def __call__(
        self, shape: object, dtype: object = "float32", data: object = None, **_options: object
    ) -> TensorSpec | tirx.Buffer:
        return TensorSpec(shape, dtype) if data is None else _view(shape, dtype, data)

    def __getitem__(self, arguments: object) -> TensorSpec | tirx.Buffer:
        *shape, last = arguments if is_tuple(arguments) and arguments else (arguments,)
        if not shape or _is_extent(last):
            return self(arguments if shape else last)
        # (n) and (n,) are the same shape.
        return self(shape[0] if len(shape) == 1 else shape, last)


def _view(shape: object, dtype: object, data: object) -> tirx.Buffer:
    """``T.Tensor(shape, dtype, A.data)``: the memory of a tensor as one of another shape."""
    builder = current("T.Tensor over the memory of another tensor")
    base = data.args[0] if isinstance(data, ir.Call) and data.args else data
    if not is_buffer(base) or is_on_chip(base):
        raise unsupported(
            f"T.Tensor over the memory of {described(data)}",
            "pass the memory of a tensor: T.Tensor(shape, dtype, A.data)",
        )
    return _viewed(builder, base, shape_of(shape, "T.Tensor"), dtype_name(dtype))


def _viewed(builder: Builder, base: tirx.Buffer, shape: tuple[int, ...], dtype: str) -> tirx.Buffer:
    name = builder.unused(f"{base.name}_view")
    viewed = tirx.decl_buffer(list(shape), dtype, name=name, scope=scope_of(base))
    builder.views.add(viewed, base)
    return viewed


def reshape(src: object, shape: object) -> tirx.Buffer | AllocationRequest:
    """A block, or tensor, of another shape over the memory of `src`: what is stored to one is read from the other.

    Raises KernelError where the numbers of elements differ, Unsupported for variables and reducers.
    """
    return _over("T.reshape", src, shape, None)


def view(src: object, shape: object = None, dtype: object = None) -> tirx.Buffer | AllocationRequest:
    """:func:`reshape`, with the shape and dtype of `src` where none is given. In another dtype it is a block of its
    own: a kernel may not read through it what it stored to `src`. Raises Unsupported for tensors in another dtype."""
    return _over("T.view", src, shape, dtype)


@dataclass(frozen=True)
class _ViewInDtype(AllocationRequest):
    """A block over the memory of another one in another dtype."""

    base: str = ""

    def make(self, builder: Builder, name: str) -> tirx.Buffer:
        name, span = builder.unused(name), builder.tvm_span()
        statement = allocation(name, self.shape, self.dtype, self.scope, span, {VIEW_OF: self.base})
        builder.emit(statement)
        return statement.buffer


def _over(callee: str, src: object, shape: object, dtype: object) -> tirx.Buffer | AllocationRequest:
    builder = current(callee)
    if not is_buffer(src):
        raise KernelError(
            "K008", f"{callee} takes a buffer or a tensor, not {described(src)}",
            hint=f"write {callee}(block, (rows, columns)), and index the result",
        )  # fmt: skip
    source_dtype = dtype_of(src)
    if scope_of(src) == "local.var" or src in builder.reducers:
        raise unsupported(f"{callee} of {src.name}", "copy it to a block first")
    view_shape = shape_of(extents_of(src) if shape is None else shape, callee)
    name = source_dtype if dtype is None else dtype_name(dtype)
    if name == source_dtype:
        return _viewed(builder, src, view_shape, name)
    base = builder.views.base_of(src)
    if scope_of(base) not in ("shared.dyn", "local.fragment"):
        raise unsupported(
            f"{callee} of {src.name}, which is {source_dtype}, as {name}",
            "read the bits of elements with T.reinterpret, or convert them with T.copy",
        )
    bits = [
        of.bits * math.prod(extents)
        for of, extents in ((DTYPES[source_dtype], extents_of(src)), (DTYPES[name], view_shape))
    ]
    if bits[0] != bits[1]:
        raise KernelError(
            "K002",
            f"{callee} of {src.name}, which has {bits[0]:,} bits, as {view_shape} {name} of {bits[1]:,}",
            hint="give both the same number of bits",
        )
    return _ViewInDtype(view_shape, name, scope_of(base), base=str(base.name))


def _is_extent(value: object) -> bool:
    """Whether this can be the size of a tensor, and so is not a dtype: NumPy's scalar types have __index__, too."""
    return isinstance(value, ir.Expr) or (isinstance(value, SupportsIndex) and not isinstance(value, type))


Tensor = TensorAnnotation()


def dynamic(names: str, _dtype: object = "int32") -> Any:
    """Sizes of tensors that are known only when the kernel runs: ``M = T.dynamic("m")``, ``T.dynamic("m, n")``.

    They are 32-bit integers. Raises KernelError for an invalid name.
    """
    variables: list[ir.Var] = []
    for name in names.replace(",", " ").split():
        if not name.isidentifier():
            raise KernelError("K008", f"T.dynamic: {shown(name)} is not a name", hint='write T.dynamic("m")')
        variables.append(tirx.Var(name, "int32"))
    if not variables:
        raise KernelError("K013", "T.dynamic needs a name", hint='write T.dynamic("m")')
    return variables[0] if len(variables) == 1 else tuple(variables)


def empty(shape: object, *more: object, dtype: object = None, **_options: object) -> TensorSpec:
    """An output tensor of an eager kernel: ``T.empty((M, N), dtype)``. It becomes a parameter after the inputs."""
    current("T.empty")
    if more and not isinstance(more[-1], int):
        dtype, more = more[-1], more[:-1]
    extents = (shape, *more) if more else shape
    return TensorSpec(extents, "float32" if dtype is None else dtype, output=True)


def alloc_global(shape: object, dtype: object = "float32", scope: object = "global") -> TensorSpec:
    """Allocate a tensor in DRAM that one launch of the kernel writes and a later one reads. It is no parameter."""
    builder = current("T.alloc_global")
    if builder.blocks:
        raise KernelError(
            "K005",
            "T.alloc_global is inside T.Kernel",
            hint="allocate before `with T.Kernel(...)`: all blocks share the tensor",
        )
    if scope != "global":
        raise KernelError("K008", f"T.alloc_global: unknown scope {shown(scope)}", hint="remove scope=")
    return TensorSpec(shape, dtype, allocated=True)


def _allocate(callee: str, shape: object, dtype: object, scope: object) -> AllocationRequest:
    builder = current(callee)
    if not builder.blocks:
        raise KernelError("K005", f"{callee} is outside T.Kernel", hint="allocate inside `with T.Kernel(...)`")
    if scope == "shared":
        scope = "shared.dyn"
    if scope not in ("shared.dyn", "local.fragment", "local"):
        raise KernelError("K008", f"{callee}: unknown scope {shown(scope)}", hint="remove scope=")
    return AllocationRequest(shape_of(shape, callee), dtype_name(dtype), scope)


def alloc_shared(shape: object, dtype: object = "float32", scope: object = "shared.dyn") -> AllocationRequest:
    """Allocate a block shared by a GPU thread block: on a Tensix core, a circular buffer in L1."""
    return _allocate("T.alloc_shared", shape, dtype, scope)


def alloc_fragment(shape: object, dtype: object = "float32", scope: object = "local.fragment") -> AllocationRequest:
    """Allocate a block in GPU registers: on a Tensix core, DST registers or a circular buffer."""
    return _allocate("T.alloc_fragment", shape, dtype, scope)


def alloc_local(shape: object, dtype: object = "float32", scope: object = "local") -> AllocationRequest:
    """Allocate a block that belongs to one GPU thread."""
    return _allocate("T.alloc_local", shape, dtype, scope)


def alloc_buffer(shape: object, dtype: object = "float32", *, scope: object = "global") -> AllocationRequest:
    """Allocate a block in a memory: ``scope="shared"``, ``"local.fragment"`` or ``"local"``. Raises Unsupported for
    ``"global"``, which no block has to itself."""
    current("T.alloc_buffer")
    if scope == "global":
        raise unsupported("T.alloc_buffer in the memory of all blocks", "allocate a tensor with T.alloc_global")
    return _allocate("T.alloc_buffer", shape, dtype, scope)


def alloc_var(dtype: object, *arguments: object, init: object = None, **_options: object) -> AllocationRequest:
    """Allocate a scalar variable: assigning to its name again stores to it."""
    current("T.alloc_var")
    if arguments and not isinstance(arguments[0], str):
        init = arguments[0]
    return AllocationRequest((1,), dtype_name(dtype), "local.var", init)
