"""Running a program at any step: the tensors that go in and come out, and what decides how it is run."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from ttexplore.control import FREE, Control
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.arithmetic.sizes import bound_shape
from ttexplore.ir.arithmetic.uncertain import Elements, Uncertain, value_of
from ttexplore.ir.build import dtype_of, op_name
from ttexplore.ir.interpreter import scheduling
from ttexplore.ir.interpreter.arrays import (
    Array,
    error_in_format,
    held,
    in_format,
    in_tiles,
    is_whole,
    rounded,
    storage,
    unrounded,
    unwritten,
)
from ttexplore.ir.interpreter.machine import Core, Mode, Numbers, SharedState
from ttexplore.ir.interpreter.tiles import tilize, untilize
from ttexplore.ir.interpreter.translation import translate
from ttexplore.ir.interpreter.where import Limits
from ttexplore.ir.operations.groups import projected
from ttexplore.ir.program import KERNEL, TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.ops.op import CORE_VALUE, UNWRITTEN
from ttexplore.ops.protocol import CB_POP_FRONT, CB_PUSH_BACK
from ttexplore.ops.small import is_small, on_host
from ttexplore.plan import BLOCK_FLOAT, CoreWork, Plan


@dataclass(frozen=True)
class Interpretation:
    """What a run gave: the output tensors in parameter order, in storage dtype, and the seconds it took; and how far
    rounding may move each element, below and above, and which numbers the operations of each core gave, by its logical
    coordinates, if that was asked for."""

    outputs: tuple[Array, ...]
    seconds: float
    errors: tuple[NDArray[np.float32], ...] = ()
    numbers: Mapping[tuple[int, int], Numbers] = field(default_factory=dict[tuple[int, int], Numbers])


def interpret(
    functions: Mapping[str, tirx.PrimFunc], plan: Plan, inputs: Sequence[Array], roles: dict[str, str], *,
    turn_limit: int | None = None, control: Control = FREE, unit: float | None = None,
    errors: Mapping[str, Array] | None = None, rounds: bool = True, numbers: bool = False,
) -> Interpretation:  # fmt: skip
    """Run a program. `inputs` are the input tensors in parameter order, `roles` says which tensors are which.

    With a `unit` of rounding, the error of each operation relative to its result, the errors of the outputs are found
    as well; only a program that has no tiles yet has them. `errors` are those that inputs have already, by name. Such a
    program can also run in float64: if it does not `round`, neither inputs nor outputs nor anything between them is
    rounded to its floating-point dtype, and errors are those of operations that would round by the unit. Asked for
    `numbers`, it tells those that operations gave, of a program with the protocol of its circular buffers.

    `turn_limit` bounds the turns that the kernels of one core get; `control` ends the run before the next statement.
    Raises KernelError for reads and writes outside of buffers, VerifyError for protocol faults and deadlocks, with the
    kernel's line, BackendError at the time limit, and Cancelled.
    """
    start = time.perf_counter()
    tensors = _tensors(functions, plan)
    names = sorted(tensors, key=lambda name: _position(name, plan, functions))
    # A tensor that no output depends on has left the functions, and keeps its place among the inputs.
    read = [name for name, role in roles.items() if role in ("input", "inout")]
    input_of = dict(zip(sorted(read, key=lambda name: _position(name, plan, functions)), inputs, strict=True))
    tiled, mode = _is_tiled(functions), _mode(functions)
    assert not tiled or (unit is None and rounds), "a kernel before its lowering has errors, and may round nothing"
    pages: dict[str, Array] = {}
    arrays: dict[str, Elements] = {}
    for name in names:
        dtype, shape = tensors[name]
        if rounds:
            array = _stored(name, input_of.get(name), dtype, shape, plan)
        else:
            array = _unrounded(input_of.get(name), dtype, shape)
        if roles[name] == "inout":
            # The kernel writes to it, and other runs are given the same.
            array = array.copy()
        if tiled:
            # Nobody may lean on what lies in the padding of an output.
            padding = 0 if roles[name] == "input" else UNWRITTEN[held(dtype)]
            by_rows = plan.layout(name).page == "row"
            array = array.reshape(-1, array.shape[-1]) if by_rows else tilize(array, padding)
        pages[name] = array
        error = (errors or {}).get(name)
        if unit is None:
            arrays[name] = array
        else:
            # In float64 no engine cuts what it reads.
            stored = Uncertain.stored if rounds else Uncertain.exact
            arrays[name] = stored(array, unit, error, whole=is_whole(dtype))
    if KERNEL in functions:
        functions = projected(functions[KERNEL])
    programs = {role: translate(role, function, mode, rounds=rounds) for role, function in functions.items()}
    partition = plan.partition
    works: Sequence[CoreWork | None] = [None]
    if partition is not None and _has_core_values(functions):
        # A sender, the upper left corner of its rectangle, starts before its receivers.
        cores_in_rows = sorted(partition.cores, key=lambda core: (core.y, core.x))
        works = cores_in_rows
    limits = Limits(control, start if control.start is None else control.start, len(works))
    dtypes = {name: dtype for name, (dtype, _) in tensors.items()}
    if tiled or not rounds:
        dtypes = {name: (in_tiles if tiled else unrounded)(dtype) for name, dtype in dtypes.items()}
    # From D5 on the values share one DST buffer, which is used in sections.
    managed = any(name.startswith("tt.tile_regs_") for name in _names(functions))
    assert mode == "queues" or not numbers, "numbers are those of kernels as they run on the chip"
    one_run = SharedState(
        plan, arrays, pages if tiled else {}, dtypes, mode, managed, tiled, limits, unit, rounds,
        numbers={} if numbers else None,
    )  # fmt: skip

    def cores() -> Iterator[tuple[Core, dict[str, scheduling.Kernel]]]:
        for work in works:
            core = Core(one_run, work)
            yield core, {role: started(core) for role, started in programs.items()}

    # Infinities and NaN are results like any other.
    with np.errstate(all="ignore"):
        scheduling.run(cores(), turn_limit)
    written = [name for name in names if roles[name] in ("output", "inout")]
    output_errors = tuple(
        error_in_format(array, _data_format(name, plan))
        for name in written
        if isinstance(array := arrays[name], Uncertain)
    )
    if rounds:
        outputs = tuple(_output(name, value_of(arrays[name]), *tensors[name], tiled, plan) for name in written)
    else:
        outputs = tuple(value_of(arrays[name]) for name in written)
    given_numbers = one_run.numbers or {}
    told: dict[tuple[int, int], Numbers] = {}
    for core in partition.cores if given_numbers and partition is not None else ():
        told[core.x, core.y] = given_numbers.get(None if works == [None] else (core.x, core.y), {})
    return Interpretation(outputs, time.perf_counter() - start, output_errors, told)


def _stored(
    name: str, values: Array | None, dtype: str, shape: tuple[int, ...], plan: Plan
) -> Array:  # fmt: skip
    """What a tensor holds at first: what is given for it, as its format holds that."""
    if values is None:
        return unwritten(shape, dtype)
    return in_format(rounded(values, dtype).reshape(shape), _data_format(name, plan))


def _unrounded(values: Array | None, dtype: str, shape: tuple[int, ...]) -> Array:
    return unwritten(shape, unrounded(dtype)) if values is None else rounded(values, unrounded(dtype)).reshape(shape)


def _output(
    name: str, array: Array, dtype: str, shape: tuple[int, ...], tiled: bool, plan: Plan
) -> Array:  # fmt: skip
    """What a tensor holds in the end, in storage dtype."""
    tiles = tiled and plan.layout(name).page == "tile"
    data_format = _data_format(name, plan)
    array = in_format(untilize(array, shape) if tiles else array.reshape(shape), data_format)
    if is_small(dtype):
        return on_host(array, dtype)
    return array.astype(ml_dtypes.bfloat16 if data_format == BLOCK_FLOAT else storage(dtype))


def _data_format(name: str, plan: Plan) -> str | None:
    """The tile format of a tensor, once it is decided."""
    return next((layout.data_format for layout in plan.layouts if layout.name == name), None)


def runs_alike(program: TirProgram, candidate: TirProgram) -> bool:
    """Whether running both is the same run: the same functions, and the same facts of the plan, of those that a run
    looks at. Most passes that decide facts leave it so."""
    facts = (_facts(program.functions, variant.plan) for variant in (program, candidate))
    return program.shares_functions(candidate) and next(facts) == next(facts)


def _facts(functions: Mapping[str, tirx.PrimFunc], plan: Plan) -> tuple[object, ...]:
    positions = {name: _position(name, plan, functions) for name in _tensors(functions, plan)}
    core_values = plan.partition if _has_core_values(functions) else None
    # Before there are tiles and kernels nothing else is looked at.
    machine = (plan.layouts, plan.buffers, plan.compute) if len(functions) > 1 or _is_tiled(functions) else ()
    formats = [layout.name for layout in plan.layouts if layout.data_format == BLOCK_FLOAT]
    return positions, plan.size_values, core_values, machine, formats


def _tensors(functions: Mapping[str, tirx.PrimFunc], plan: Plan) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtypes and shapes of the tensors by name: those of the functions, and those that keep what they hold, because
    no store to them happens."""
    inout = {layout.name: (layout.dtype, layout.shape) for layout in plan.layouts if layout.role == "inout"}
    return inout | {
        str(p.name): (dtype_of(p), bound_shape(p, plan.size_values))
        for function in functions.values()
        for p in function.params
        if is_buffer(p)
    }


def _position(name: str, plan: Plan, functions: Mapping[str, tirx.PrimFunc]) -> int:
    for layout in plan.layouts:
        if layout.name == name:
            return layout.position
    return [str(p.name) for p in next(iter(functions.values())).params].index(name)


def _names(functions: Mapping[str, tirx.PrimFunc]) -> frozenset[str]:
    return frozenset[str]().union(*map(_names_in, functions.values()))


# A check asks several times about the functions of each step.
@functools.lru_cache(maxsize=16)
def _names_in(function: tirx.PrimFunc) -> frozenset[str]:
    return frozenset(op_name(s) for s in walk(function.body))


def _is_tiled(functions: Mapping[str, tirx.PrimFunc]) -> bool:
    return any(name.startswith("tt.") for name in _names(functions))


def _has_core_values(functions: Mapping[str, tirx.PrimFunc]) -> bool:
    return any(map(_reads_core_values, functions.values()))


@functools.lru_cache(maxsize=16)
def _reads_core_values(function: tirx.PrimFunc) -> bool:
    return any(
        isinstance(s, tirx.Bind) and isinstance(s.value, ir.Call) and str(s.value.op.name) == CORE_VALUE
        for s in walk(function.body)
    )


def _mode(functions: Mapping[str, tirx.PrimFunc]) -> Mode:
    if len(functions) == 1:
        return "sequential"
    return "queues" if {CB_PUSH_BACK.ir_name, CB_POP_FRONT.ir_name} & _names(functions) else "channels"
