"""The description of a device operation: one value that interpreter, printer, init pass and verifier all read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ttexplore.plan import KernelRole, OperationKind
from ttexplore.record import Work

# Names in the IR that are those of no operation: the scope of a circular buffer, and that of values in DST; a value of
# a core by its name, and the number of its work item.
CB_SCOPE, DST_SCOPE = "tt.cb", "tt.dst"
CORE_VALUE, CORE_ITEM = "tt.core_value", "tt.core_item"

Tile = NDArray[Any]

# The content of a DST tile: floating-point numbers, or two's complement integers.
TileKind = Literal["float32", "int32"]

# What a place holds that nothing was written to: integers have no NaN.
UNWRITTEN: dict[TileKind, float] = {"float32": np.nan, "int32": -0x21524111}

OperandKind = Literal["cb", "tile", "slot", "dst", "int", "flag", "condition", "float", "tensor", "page", "semaphore"]
Engine = Literal["fpu", "sfpu", "pack", "block", "sync", "noc", "riscv", "config", "whole block"]
Phase = Literal["", "init", "uninit"]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a device operation.

    `cb`: a circular buffer (an IR buffer of scope tt.cb); `tile`: a tile index in the CB operand `of`, relative to the
    first waited-for tile (for packing, to the first reserved tile); `slot`: the same index, as a byte offset in C++;
    `dst`: a DST tile (in the IR two arguments, the tt.dst buffer and the index in it; in C++ one index); `int`: a
    count; `flag`: a bool; `condition`: a bool of the kernel's own numbers; `float`: a scalar; `tensor`: a kernel
    parameter; `page`: a page index of the tensor operand; `semaphore`: its number. `access` says how a cb or dst
    operand is used. `optional` operands come last, and can be omitted.
    """

    name: str
    kind: OperandKind
    access: Literal["", "read", "write", "update"] = ""
    of: str = ""
    optional: bool = False


Value = TypeVar("Value")


class OperandArgument(NamedTuple, Generic[Value]):
    """The argument of an IR operation for an operand; for a dst operand the buffer, and the slot in it."""

    operand: Operand
    value: Value
    slot: Value | None
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """An operation of the IR: the call of an Op, its set-up of the engine (`init`), or the undoing of that (`uninit`).

    `cpp` is a format template over the names of `operands`, `arities` are the possible numbers of IR arguments,
    `places` the position of each operand among them: a dst operand takes two.
    """

    op: Op
    phase: Phase
    name: str
    operands: tuple[Operand, ...]
    cpp: str
    arities: range
    places: tuple[tuple[Operand, int], ...]

    @property
    def work(self) -> Work:
        """What it does for the kernel's own work, or the set-up, waits and hand-overs that it belongs to."""
        if self.phase or self.op.engine == "config":
            return "init"
        if self.op.engine == "sync":
            return "protocol" if self.operands else "DST"
        if self.op.engine == "noc" and not self.operands:
            return "protocol"
        is_math = self.op.engine in ("fpu", "sfpu")
        if is_math and not (self.op.engine == "fpu" and self.op.gives == "same"):
            return "computes"
        # Barriers touch nothing, markers of a hand-over one buffer.
        touched = sum(bool(operand.access) for operand in self.operands)
        return "moves" if touched > 1 or self.op.has_result or (self.op.engine == "riscv" and touched) else ""

    def check(self, values: Sequence[object]) -> None:
        """Raises TypeError for too few or too many arguments."""
        if len(values) not in self.arities:
            least, most = self.arities[0], self.arities[-1]
            arity = f"{least}" if least == most else f"{least} to {most}"
            raise TypeError(f"{self.name} takes {arity} arguments, not {len(values)}")

    def given(self, values: Sequence[Value]) -> list[OperandArgument[Value]]:
        """Assign the IR's arguments to the operands, in order. Raises TypeError for too few or too many."""
        self.check(values)
        count = len(values)
        return [
            OperandArgument(operand, values[at], values[at + 1] if operand.kind == "dst" else None, at)
            for operand, at in self.places
            if at < count
        ]

    def named(self, values: Sequence[Value]) -> dict[str, Value]:
        """The arguments by operand name; for a dst operand its index. Raises TypeError."""
        self.check(values)
        count = len(values)
        return {
            operand.name: values[at + 1 if operand.kind == "dst" else at] for operand, at in self.places if at < count
        }


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """A device operation, which is only itself: the table has each once.

    `ir_name` is its name in the IR, ``tt.`` + `name`. `cpp`, `init` and `uninit` are format templates over the operand
    names: ``{in0}`` prints a cb as its id, ``{in0.buffer}`` as its DataflowBuffer, ``{in0.page_bytes}`` as its page
    size; a `float` prints as the bits of its float32. `init_operands` are the operands that the init takes, in order:
    the init is the IR operation ``tt.<name>_init`` with these arguments, likewise `uninit` is ``tt.<name>_uninit``.
    An operation must run after its own init, without another init of its engine in between. `header` is the SDK header
    below ``api/``. An operation of the engine `block` unpacks `tiles` tiles from the front of its source, moves them
    through DST and packs them to the next free tiles of its target, in DST sections of its own: it must not be inside
    another section. `source_a` and `source_b` name the cb operands whose data format the unpacker must be set to,
    `packs` the cb operand whose format the packer must be set to.

    `meaning` computes the result tile, of shape (32, 32), from the tiles that are read (cb and dst operands with access
    read or update) and the scalars, in operand order. `takes` is the content of the tiles that it reads, `any` for both
    kinds; `gives` is that of its result, `same` as the last tile read. `accumulates` says that the result is added to
    DST, so its first slot must be untouched in its section. `cycles` is the cost of a call on one core at HiFi4,
    without fixed overhead (metalium.md 4.3: rates of FPU, unpacker and packer); of an operation of the SFPU, that on
    Wormhole (ops/sfpu_cycles.py has all). `dst_bits` is the only width of
    DST with which the operation is correct (32: `fp32_dest_acc_en`). `leaves` is the part of the result that is
    defined, where that is not the whole tile: the chip leaves partial results in the other elements. Nothing may depend
    on them, so `meaning` and the emulator make them `UNWRITTEN`. `disturbs_sfpu` says that its init changes what inits
    of the SFPU set, and these what it sets: nothing of the SFPU may come between its init and its calls, and what comes
    after needs an init. `note` is shown to the user. `defines` are the macros
    that a kernel with the operation must define before it includes `header`. `role` is the kernel to which the split
    into three kernels assigns the operation; `waits` says that it waits until a circular buffer has tiles, or space;
    `has_result` that it gives a whole number, which the IR binds to a name. An operation of the engine `whole block`
    has no C++: D3 replaces it. `function` is the name in TIR of the kernel language's function that the operation
    computes, and `of_elements` computes it in the dtype of its operand: language, lowering and interpreter identify
    the function by these. `multiplies` says that the FPU multiplies elements, once for each phase of the math fidelity;
    `fast` that the result is as far off as `note` says.

    `reach` computes, from the values of the operands, how many tiles the operation touches, starting at the tile or DST
    index; default 1. `wrong_in` lists the settings in which the chip silently computes a wrong result: the data format
    of the source and the width of DST in bits.

    `emulator_ulp` is the bound of the emulator's error: the largest difference, in units in the last place of the
    output format, between the emulator (with exact arithmetic) and the simulated chips (wolfpine's Wormhole and
    Blackhole) for one call on finite normal inputs, in every data format and DST width in which the operation is
    correct on the chip. 0 means bit-equal, except that zeros of either sign are equal. tests/device/test_numerics.py
    measures it and writes docs/numerics.md. `functions` are the names of our own C++ functions (ops/functions.py) that
    `cpp` calls.
    """

    name: str
    operands: tuple[Operand, ...]
    cpp: str
    header: str
    engine: Engine
    init: str = ""
    init_operands: tuple[str, ...] = ()
    uninit: str = ""
    uninit_operands: tuple[str, ...] = ()
    meaning: Callable[..., Tile] | None = None
    takes: TileKind | Literal["any"] = "float32"
    gives: TileKind | Literal["same"] = "float32"
    source_a: str = ""
    source_b: str = ""
    packs: str = ""
    accumulates: bool = False
    cycles: int = 0
    dst_bits: Literal[16, 32] | None = None
    leaves: Literal["", "column 0", "row 0"] = ""
    reach: Callable[[Mapping[str, Any]], dict[str, int]] | None = None
    wrong_in: tuple[tuple[str, int], ...] = ()
    disturbs_sfpu: bool = False
    note: str = ""
    emulator_ulp: int = 0
    functions: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    role: KernelRole = "compute"
    waits: bool = False
    has_result: bool = False
    function: str = ""
    of_elements: Callable[..., Any] | None = None
    multiplies: bool = False
    fast: bool = False
    ir_name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ir_name", f"tt.{self.name}")

    @property
    def kinds(self) -> tuple[OperationKind, ...]:
        """What decides how far its result may lie from the exact one."""
        on_engines = self.role == "compute" and self.engine in ("fpu", "sfpu", "pack", "block", "whole block")
        traits: dict[OperationKind, bool] = {
            "engines": on_engines and self.meaning is not None,
            "product": self.engine == "fpu" and (self.accumulates or self.multiplies),
            "sum": bool(self.leaves),
            "fast": self.fast,
        }
        return tuple(kind for kind, holds in traits.items() if holds)

    @property
    def called(self) -> str:
        """The C++ function or method that its text calls."""
        return self.cpp.partition("(")[0].partition("<")[0].rpartition(".")[2]

    @property
    def forms(self) -> tuple[Form, ...]:
        """Its operations in the IR."""
        by_name = {operand.name: operand for operand in self.operands}
        forms = [_form(self, "", self.operands, self.cpp)]
        phases: tuple[tuple[Phase, str, tuple[str, ...]], ...] = (
            ("init", self.init, self.init_operands), ("uninit", self.uninit, self.uninit_operands)
        )  # fmt: skip
        for phase, cpp, names in phases:
            if cpp:
                forms.append(_form(self, phase, tuple(by_name[name] for name in names), cpp))
        return tuple(forms)


def _form(op: Op, phase: Phase, operands: tuple[Operand, ...], cpp: str) -> Form:
    positions: list[tuple[Operand, int]] = []
    most = 0
    for operand in operands:
        positions.append((operand, most))
        most += 2 if operand.kind == "dst" else 1
    arities = range(most - sum(operand.optional for operand in operands), most + 1)
    name = f"{op.ir_name}_{phase}" if phase else op.ir_name
    return Form(op, phase, name, operands, cpp, arities, tuple(positions))


def circular_buffer(name: str, access: Literal["read", "write", "update"] = "read") -> Operand:
    return Operand(name, "cb", access)


def tile(name: str, of: str) -> Operand:
    return Operand(name, "tile", of=of)


def slot(name: str, of: str) -> Operand:
    return Operand(name, "slot", of=of)


def dst(name: str, access: Literal["read", "write", "update"] = "write") -> Operand:
    return Operand(name, "dst", access)


def integer(name: str) -> Operand:
    return Operand(name, "int")


def condition(name: str) -> Operand:
    return Operand(name, "condition")


def flag(name: str) -> Operand:
    return Operand(name, "flag")


def scalar(name: str) -> Operand:
    return Operand(name, "float")


def tensor(name: str, access: Literal["read", "write"]) -> Operand:
    return Operand(name, "tensor", access)


def page(name: str, of: str) -> Operand:
    return Operand(name, "page", of=of)


def quiet(function: Callable[..., Tile]) -> Callable[..., Tile]:
    """`function` in float32, with infinities and NaN, as on the chip, and without warnings."""

    @functools.wraps(function)
    def meaning(*values: Tile) -> Tile:
        with np.errstate(all="ignore"):
            return np.asarray(function(*values), np.float32)

    return meaning


def integers(function: Callable[..., Tile]) -> Callable[..., Tile]:
    """`function` in int32, which wraps around, as on the chip, and without warnings."""

    @functools.wraps(function)
    def meaning(*values: Tile) -> Tile:
        with np.errstate(all="ignore"):
            return np.asarray(function(*values), np.int32)

    return meaning
