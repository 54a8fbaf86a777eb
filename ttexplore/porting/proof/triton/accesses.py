"""Loads, stores, atomics and block pointers of Triton's language."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ttexplore.porting.proof.triton.blocks import Block, BlockPointer, Pointer, Unrunnable
from ttexplore.porting.proof.triton.calls import Called, ProgramInstance, block_shape, chosen_elements, integers


def load(program: ProgramInstance, call: Called) -> Block:
    pointer, mask, beyond = call["pointer"], chosen_elements(call.get("mask")), call.get("other")
    if isinstance(pointer, BlockPointer):
        if mask is not None or beyond is not None:
            raise Unrunnable("a mask of a block pointer")
        checked = integers(call.get("boundary_check", ()))
        padding = call.get("padding_option", "")
        if padding not in ("", "zero", "nan"):
            raise Unrunnable(f"the padding {padding}")
        addresses, inside = _addresses(pointer, checked)
        fill = math.nan if padding == "nan" else 0.0 if padding == "zero" or pointer.is_descriptor else None
        return program.memory.load(addresses, inside, fill, call.line)
    if not isinstance(pointer, Pointer):
        raise Unrunnable("a load from what is no address")
    return program.memory.load(pointer, mask, beyond, call.line)


def store(program: ProgramInstance, call: Called) -> None:
    pointer, mask = call["pointer"], chosen_elements(call.get("mask"))
    elements = program.arithmetic.block(call["value"])
    if isinstance(pointer, BlockPointer):
        if mask is not None:
            raise Unrunnable("a mask of a block pointer")
        addresses, inside = _addresses(pointer, integers(call.get("boundary_check", ())))
        program.memory.store(addresses, elements, inside, call.line)
    elif isinstance(pointer, Pointer):
        _refuse_larger(pointer, elements, mask)
        program.memory.store(pointer, elements, mask, call.line)
    else:
        raise Unrunnable("a store to what is no address")


def _refuse_larger(pointer: Pointer, elements: Block, mask: Block | None) -> None:
    """Refuse a store to a block of addresses that is smaller than its elements or its mask."""
    shape = pointer.offsets.shape
    if mask is not None and mask.shape != shape and np.broadcast_shapes(mask.shape, shape) != shape:
        raise Unrunnable("a mask that is larger than the block of addresses")
    if np.broadcast_shapes(elements.shape, shape) != shape:
        raise Unrunnable("a block that is stored to a smaller one")


def atomic(program: ProgramInstance, call: Called) -> Block:
    pointer = call["pointer"]
    if not isinstance(pointer, Pointer):
        raise Unrunnable("an atomic operation on what is no address")
    elements = program.arithmetic.block(call["val"])
    return program.memory.atomic(call.name, pointer, elements, chosen_elements(call.get("mask")), call.line)


def exchange(program: ProgramInstance, call: Called) -> Block:
    pointer = call["pointer"]
    if not isinstance(pointer, Pointer):
        raise Unrunnable("an atomic operation on what is no address")
    block = program.arithmetic.block
    return program.memory.exchange(pointer, block(call["cmp"]), block(call["val"]), call.line)


def made_block_pointer(program: ProgramInstance, call: Called) -> BlockPointer:
    base = call["base"]
    if not isinstance(base, Pointer) or base.offsets.shape:
        raise Unrunnable("a block pointer of what is no address")
    shape, strides, blocks = integers(call["shape"]), integers(call["strides"]), block_shape(call["block_shape"])
    is_descriptor = call.name != "make_block_ptr"
    offsets = (0,) * len(shape) if is_descriptor else integers(call["offsets"])
    if not len(shape) == len(strides) == len(blocks) == len(offsets):
        raise Unrunnable("a block pointer whose shapes have different numbers of axes")
    return BlockPointer(base, shape, strides, offsets, blocks, is_descriptor)


def advanced(program: ProgramInstance, call: Called) -> BlockPointer:
    pointer, by = call["base"], integers(call["offsets"])
    if not isinstance(pointer, BlockPointer) or len(by) != len(pointer.offsets):
        raise Unrunnable("tl.advance of what is no block pointer")
    offsets = tuple(offset + step for offset, step in zip(pointer.offsets, by, strict=True))
    return BlockPointer(pointer.base, pointer.shape, pointer.strides, offsets, pointer.block_shape)


def _addresses(pointer: BlockPointer, checked: Sequence[int]) -> tuple[Pointer, Block]:
    """The addresses of a block, and which of them lie inside of the axes that are checked."""
    rank = len(pointer.shape)
    addresses, inside = pointer.base.offsets, np.ones(pointer.block_shape, bool)
    for axis in range(rank):
        index = pointer.offsets[axis] + np.arange(pointer.block_shape[axis], dtype=np.int64)
        index = index.reshape([-1 if axis == other_axis else 1 for other_axis in range(rank)])
        addresses = addresses + index * pointer.strides[axis]
        if pointer.is_descriptor or axis in checked:
            inside = inside & (index >= 0) & (index < pointer.shape[axis])
    return Pointer(pointer.base.tensor, addresses), inside
