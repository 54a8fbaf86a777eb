"""The faults: what is planted, where, and who is expected to find it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from tvm.ir import Call, Range
from tvm.tirx import (
    EQ,
    GE,
    LE,
    LT,
    AllocBuffer,
    Bind,
    BufferRegion,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    const,
    if_then_else,
)

import ttexplore as ttx
from tests.faults.kernels import (
    asked,
    biased,
    branched,
    causal,
    chained,
    chosen_rows,
    difference,
    found,
    handed_on,
    joined_in_rows,
    limited,
    listed,
    masked,
    one_head,
    other_third_block,
    product,
    product_of_bytes,
    quantized,
    rearranged,
    reduced,
    rows,
    running_maxima,
    running_sums,
    scaled,
    scattered,
    sent_by_writer,
    shared_factor,
    stored_by_rows,
    stored_in_another_order,
    streamed,
    summed,
    summed_where_told,
    taken_in_turns,
    told,
    uneven,
    upper,
    with_turns,
)
from tests.faults.plant import (
    Edit,
    buffer,
    doubled,
    dropped,
    edited,
    everywhere,
    exchanged,
    given,
    inserted,
    one_of,
    planned,
    renamed,
    swapped,
)
from tests.rewriting import placed, rewrite
from ttexplore.ir import adapter
from ttexplore.ir.branches import branch, branch_condition
from ttexplore.ir.build import (
    allocation,
    arguments,
    attribute,
    bind,
    buffer_of,
    loop,
    op,
    op_name,
    operands,
    statements,
    text_attribute,
    variable,
    when,
    with_body,
    with_function_body,
)
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk
from ttexplore.plan import CoreRange, Multicast, SharedInput

Finder = Literal["verifier", "interpreter", "emulator"]


@dataclass(frozen=True)
class Fault:
    """A fault in a sound program. `step` is the pass after which it is planted; the passes after it are run."""

    name: str
    kernel: Callable[[], Any]
    edit: Edit
    finder: Finder = "verifier"
    step: str = "E1"


@dataclass(frozen=True)
class TextFault:
    """A fault in the emitted C++ of one kernel: `old` is replaced by `new` where it stands first."""

    name: str
    kernel: Callable[[], Any]
    role: str
    old: str
    new: str


def both(*edits: Edit) -> Edit:
    def edit(program: TirProgram) -> TirProgram:
        for one in edits:
            program = one(program)
        return program

    return edit


def loop_around(role: str, operation: str, turns: Any) -> Edit:
    """Another length for the loop that directly holds an operation."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            inner = statements(statement.body) if isinstance(statement, For) else []
            if any(op_name(one) == f"tt.{operation}" for one in inner):
                return [loop(statement.loop_var, turns, inner, span=statement.span)]
            return None

        functions = {**program.functions, role: rewrite(program.functions[role], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def unguarded(role: str, operation: str) -> Edit:
    """The branches around an operation taken in any case."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            inner = statements(statement.then_case) if isinstance(statement, IfThenElse) else []
            return inner if any(op_name(one) == f"tt.{operation}" for one in inner) else None

        functions = {**program.functions, role: rewrite(program.functions[role], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def may_make_no_turn(role: str, name: str) -> Edit:
    """One turn less for the loops of a kernel over a variable of this name."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            if isinstance(statement, For) and str(statement.loop_var.name) == name:
                return [loop(statement.loop_var, statement.extent - 1, statements(statement.body), span=statement.span)]
            return None

        functions = {**program.functions, role: rewrite(program.functions[role], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def bound(name: str, value: int) -> Edit:
    """Another value for a name of the kernel, before the split."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            if isinstance(statement, Bind) and str(statement.var.name) == name:
                return [bind(statement.var, value, statement.span)]
            return None

        return dataclasses.replace(program, functions={"kernel": rewrite(program.kernel, rule)})

    return edit


def in_kernel(role: str, change: Callable[[Any], list[Any] | None]) -> Edit:
    """The statements of a kernel replaced for which `change` gives others. One must be there."""

    def edit(program: TirProgram) -> TirProgram:
        made: list[Any] = []

        def rule(statement: Any) -> list[Any] | None:
            found = change(statement)
            made.extend(found or [])
            return found

        functions = {**program.functions, role: rewrite(program.functions[role], rule)}
        assert made, f"the {role} has no such statement"
        return dataclasses.replace(program, functions=functions)

    return edit


def copied_wider(axis: int, extent: int) -> Edit:
    """Copies from a tensor that take more of it along one of four axes."""

    def change(statement: Any) -> list[Any] | None:
        if op_name(statement) != "tl.copy":
            return None
        source, target = cast(list[Any], arguments(statement))
        if len(source.region) != 4:
            return None
        ranges = list(source.region)
        ranges[axis] = Range.from_min_extent(const(0, "int32"), const(extent, "int32"))
        return [evaluated(statement, [BufferRegion(source.source, ranges), target])]

    return in_kernel("kernel", change)


def named(role: str, name: str, value: Callable[[Any], Any], nth: int = 0) -> Edit:
    """Another value for the `nth` name of one kernel that is called so: a function of the old value."""

    def edit(program: TirProgram) -> TirProgram:
        found = [one for one in walk(program.functions[role].body) if isinstance(one, Bind) and one.var.name == name]
        chosen = found[nth]

        def change(statement: Any) -> list[Any] | None:
            own = statement.same_as(chosen)
            return [bind(statement.var, value(statement.value), statement.span)] if own else None

        return in_kernel(role, change)(program)

    return edit


def read_from(role: str, tensor: str, page: Any, offset: Any) -> Edit:
    """Numbers of a tensor read from another place."""

    def change(statement: Any) -> list[Any] | None:
        value = statement.value if isinstance(statement, Bind) else None
        if not isinstance(value, Call) or not str(value.op.name).endswith("noc_read_number"):
            return None
        values = adapter.elements(value.args)
        if buffer_of(values[0]).name != tensor:
            return None
        values[1:3] = [page, offset]
        return [bind(statement.var, adapter.call("tt.noc_read_number", values, dtype="int32"), statement.span)]

    return in_kernel(role, change)


def started_with(value: float) -> Edit:
    """Another number in a scan before its first element."""

    def change(statement: Any) -> list[Any] | None:
        found = op_name(statement) == "tl.fill"
        return [evaluated(statement, [arguments(statement)[0], const(value, "float32")])] if found else None

    return in_kernel("kernel", change)


def fewer_turns(name: str) -> Edit:
    """Loops over a variable without their last turn."""

    def change(statement: Any) -> list[Any] | None:
        if not isinstance(statement, For) or str(statement.loop_var.name) != name:
            return None
        return [loop(statement.loop_var, statement.extent - 1, statements(statement.body), span=statement.span)]

    return in_kernel("kernel", change)


def reduced_as(kind: str, other: str) -> Edit:
    """Another kind in place of one of a reduction."""

    def change(statement: Any) -> list[Any] | None:
        if op_name(statement) != "tl.reduce" or text_attribute(statement, "kind") != kind:
            return None
        attrs = {"kind": other, "dim": attribute(statement, "dim"), "clear": attribute(statement, "clear")}
        return [Evaluate(adapter.call("tl.reduce", arguments(statement), attrs), statement.span)]

    return in_kernel("kernel", change)


def asked_beyond(program: TirProgram) -> TirProgram:
    """The reader looks at elements of a page that is not there."""

    def change(statement: Any) -> list[Any] | None:
        value = statement.value if isinstance(statement, Bind) else None
        if not isinstance(value, Call) or not str(value.op.name).endswith("noc_read_number"):
            return None
        values = adapter.elements(value.args)
        values[1] = const(7, "int32")
        return [bind(statement.var, adapter.call("tt.noc_read_number", values, dtype="bool"), statement.span)]

    return in_kernel("reader", change)(program)


def second_place_first(statement: Any) -> list[Any] | None:
    """A loop over places without its first turn."""
    if not isinstance(statement, For) or str(statement.loop_var.name) != "place":
        return None
    one = const(1, "int32")
    return [For(statement.loop_var, one, statement.extent - 1, statement.kind, statement.body, span=statement.span)]


def stored_instead(name: str, value: Callable[[Any], Any]) -> Edit:
    """Another value in stores to a block, before the split."""

    def change(statement: Any) -> list[Any] | None:
        if not isinstance(statement, BufferStore) or str(statement.buffer.name) != name:
            return None
        new = value(statement.value)
        made = BufferStore(statement.buffer, new, list(statement.indices), statement.span)
        return None if new.same_as(statement.value) else [made]

    return in_kernel("kernel", change)


def with_condition(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A choice with another condition."""

    def value(e: Any) -> Any:
        if not isinstance(e, Call):
            return e
        condition, one, other = adapter.elements(e.args)
        return if_then_else(change(condition), one, other)

    return value


def branches(change: Callable[[Any], list[Any]]) -> Edit:
    """The branches of the compute kernel replaced."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            return change(statement) if isinstance(statement, IfThenElse) else None

        functions = {**program.functions, "compute": rewrite(program.functions["compute"], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def _of_buffer(name: str, operation: str) -> Edit:
    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            found = op_name(statement) == f"tt.{operation}" and buffer_of(arguments(statement)[0]).name == name
            return [] if found else None

        functions = {**program.functions, "compute": rewrite(program.functions["compute"], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def waits_dropped(name: str) -> Edit:
    return _of_buffer(name, "cb_wait_front")


def pops_dropped(name: str) -> Edit:
    return _of_buffer(name, "cb_pop_front")


def decided_otherwise(role: str) -> Edit:
    """The branches of one kernel taken in fewer turns than in the others."""

    def edit(program: TirProgram) -> TirProgram:
        def rule(statement: Any) -> list[Any] | None:
            condition = branch_condition(statement) if isinstance(statement, For) else None
            if not isinstance(condition, LE):
                return None
            return [branch(condition.a < condition.b, statements(statement.body), statement.span)]

        functions = {**program.functions, role: rewrite(program.functions[role], rule)}
        return dataclasses.replace(program, functions=functions)

    return edit


def taken_once_more(program: TirProgram) -> TirProgram:
    """The branches of all kernels taken in one turn more."""

    def rule(statement: Any) -> list[Any] | None:
        condition = branch_condition(statement) if isinstance(statement, For) else None
        if not isinstance(condition, LT):
            return None
        return [branch(condition.a <= condition.b, statements(statement.body), statement.span)]

    functions = {role: rewrite(function, rule) for role, function in program.functions.items()}
    return dataclasses.replace(program, functions=functions)


def always(branch: Any) -> list[Any]:
    """The branch taken in the first turn, too."""
    return [when(branch.condition.a >= 0, statements(branch.then_case), branch.span)]


def one_operand_first(program: TirProgram) -> TirProgram:
    """The reader loads all of A before it loads B."""

    def rule(statement: Any) -> list[Any] | None:
        if not (isinstance(statement, For) and any(op_name(s) == "tt.noc_read_barrier" for s in walk(statement.body))):
            return None
        inner = statements(statement.body)
        if not any(op_name(one) == "tt.noc_read_barrier" for one in inner):
            return None
        barrier = next(one for one in inner if op_name(one) == "tt.noc_read_barrier")
        parts: list[list[Any]] = [[], []]
        for one in inner:
            if one.same_as(barrier):
                continue
            name = next(buffer_of(operands(s)["cb"]).name for s in walk(one) if op_name(s))
            parts[name == "b"].append(one)
        return [with_body(statement, [*part[:-1], barrier, part[-1]]) for part in parts]

    reader = rewrite(program.functions["reader"], rule)
    return dataclasses.replace(program, functions={**program.functions, "reader": reader})


def work(core: int, **values: int) -> Callable[[Any], Any]:
    """Other values for one core of the partition."""

    def change(partition: Any) -> Any:
        cores = list(partition.cores)
        cores[core] = dataclasses.replace(cores[core], values={**cores[core].values, **values})
        return dataclasses.replace(partition, cores=tuple(cores))

    return change


def without_value(partition: Any) -> Any:
    values = {"work_start": partition.cores[1].values["work_start"]}
    return dataclasses.replace(
        partition, cores=(partition.cores[0], dataclasses.replace(partition.cores[1], values=values))
    )


def reader_arguments(**changes: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Edit:
    def change(signature: Any) -> Any:
        return tuple(
            dataclasses.replace(one, **{name: made(getattr(one, name)) for name, made in changes.items()})
            if one.kernel == "reader"
            else one
            for one in signature
        )

    return planned(signature=change)


def call(name: str, *values: Any) -> Callable[[TirProgram], Any]:
    """A new operation of the compute kernel; texts are the names of its buffers."""
    return lambda program: op(name, *[buffer(program, "compute", v) if isinstance(v, str) else v for v in values])


def followed_by(name: str, *values: Any) -> Callable[[Any], list[Any]]:
    """The statement and then a call whose operands are those of the statement, in this order."""
    return lambda s: [s, op(name, *[arguments(s)[v] for v in values], span=s.span)]


def row_broadcast(name: str, *values: int) -> Callable[[Any], list[Any]]:
    """A row broadcast, or its init, with some of the statement's operands."""
    return lambda s: [op(name, *[arguments(s)[v] for v in values], span=s.span)]


def instead(name: str) -> Callable[[Any], list[Any]]:
    return lambda s: [op(name, *arguments(s), span=s.span)]


def without_line(program: TirProgram) -> TirProgram:
    """A statement that nobody stamped, at the end of the writer."""
    return _ended(program, "writer", [op("noc_write_barrier")])


def ended(role: str, *makes: Callable[[TirProgram], Any]) -> Edit:
    """New statements at the end of a kernel."""

    def edit(program: TirProgram) -> TirProgram:
        made = [make(program) for make in makes]
        for statement in made:
            placed(statement, walk(program.functions[role].body)[-1])
        return _ended(program, role, made)

    return edit


def _ended(program: TirProgram, role: str, made: list[Any]) -> TirProgram:
    function = program.functions[role]
    longer = with_function_body(function, [*statements(function.body), *made])
    return dataclasses.replace(program, functions={**program.functions, role: longer})


def sometimes(statement: Any) -> list[Any]:
    """The statement where something holds that nobody knows."""
    return [when(variable("somewhere") > 0, [statement], statement.span)]


def around(statement: Any) -> list[Any]:
    """The statement in a loop of two turns."""
    return [loop(variable("turn"), 2, [statement], span=statement.span)]


def evaluated(statement: Any, values: list[Any]) -> Any:
    """The operation of a statement with other operands, however many."""
    return Evaluate(adapter.call(op_name(statement), values), statement.span)


def turns_sometimes(program: TirProgram) -> TirProgram:
    """The reader loads the operands of a turn where something holds that nobody knows."""

    def rule(statement: Any) -> list[Any] | None:
        inner = statements(statement.body) if isinstance(statement, For) else []
        if any(op_name(one) == "tt.cb_reserve_back" for one in inner):
            return [with_body(statement, [when(variable("somewhere") > 0, inner, statement.span)])]
        return None

    functions = {**program.functions, "reader": rewrite(program.functions["reader"], rule)}
    return dataclasses.replace(program, functions=functions)


def another_value(program: TirProgram) -> TirProgram:
    """The writer reads a core value that no core has."""

    def rule(statement: Any) -> list[Any] | None:
        if isinstance(statement, Bind) and str(statement.var.name) == "work_start":
            return [bind(statement.var, adapter.call("tt.core_value", ["work_begin"], dtype="int32"), statement.span)]
        return None

    functions = {**program.functions, "writer": rewrite(program.functions["writer"], rule)}
    return dataclasses.replace(program, functions=functions)


def one_more_read(program: TirProgram) -> TirProgram:
    """The reader ends with another tile under way."""
    into, tensor = buffer(program, "reader", "a"), program.functions["reader"].params[0]
    return ended("reader", lambda _: op("cb_reserve_back", into, 2), lambda _: op("noc_read_tile", tensor, 0, into, 0))(
        program
    )


def without_owners(program: TirProgram) -> TirProgram:
    """Work items that update the same elements become blocks of the launch grid again, each for itself."""

    def rule(statement: Any) -> list[Any] | None:
        inner = statements(statement.body) if isinstance(statement, For) else []
        shared = inner[-1] if inner else None
        if not isinstance(shared, For) or str(shared.loop_var.name) != "by":
            return None
        axis = adapter.for_of(shared.loop_var, shared.min, shared.extent, statement, shared.body)
        return [with_body(statement, [with_body(axis, [*inner[:-1], *statements(shared.body)])])]

    return dataclasses.replace(program, functions={"kernel": rewrite(program.kernel, rule)})


def zeros(statement: Any) -> list[Any]:
    """Zeros instead of the tile that is read."""
    return [op("noc_write_zeros", *arguments(statement)[2:], span=statement.span)]


def read_back(program: TirProgram) -> TirProgram:
    """The reader takes its first operand from the tensor that the writer writes."""
    output = program.functions["writer"].params[0]
    program = given("reader", "noc_read_tile", 0, output)(program)
    reader = program.functions["reader"]
    reader = with_function_body(reader, statements(reader.body), [output, reader.params[1]])

    def named(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return (dataclasses.replace(arguments[0], of="C"), *arguments[1:])

    program = dataclasses.replace(program, functions={**program.functions, "reader": reader})
    return reader_arguments(compile_time=named, common_runtime=named)(program)


# A block of partial sums of one tile: room, the tile, the push.
PARTIAL_SUM = (
    call("cb_reserve_back", "c_partials", 1), call("pack_tile", "dst", 0, "c_partials", 0),
    call("cb_push_back", "c_partials", 1),
)  # fmt: skip


def sent_where_nobody_needs_it(shared: Any) -> Any:
    """Plans another input that cores do not share as if they did."""
    return (dataclasses.replace(shared[0], tensor="B", buffer="b"),)


def shared_by_two(program: TirProgram) -> TirProgram:
    """The plan of :func:`other_third_block` with its input shared by both cores."""
    both = SharedInput("A", "a_in", "row", 0, 1, (Multicast((0, 0), CoreRange((0, 0), (1, 0))),), 6 * 2048, 3 * 2048)
    return planned(shared=lambda _: (both,), partition=lambda p: p.with_values(both.core_values))(program)


def not_sent(program: TirProgram) -> TirProgram:
    """The reader as it is where cores share nothing."""
    alone = ttx.explore(shared_factor(), options={"cores": (2, 1), "multicast": "off"}).steps["D3"].after
    return dataclasses.replace(program, functions=program.functions | {"reader": alone.functions["reader"]})


def stored_first(program: TirProgram) -> TirProgram:
    """The writer stores the results of a work item, and then loads what they are made of."""

    def rule(statement: Any) -> list[Any] | None:
        inner = statements(statement.body) if isinstance(statement, For) else []
        loads = [one for one in inner if isinstance(one, For)]
        if not loads or "tt.cb_wait_front" not in map(op_name, inner):
            return None
        return [with_body(statement, [*(one for one in inner if one is not loads[0]), loads[0]])]

    functions = {**program.functions, "writer": rewrite(program.functions["writer"], rule)}
    return dataclasses.replace(program, functions=functions)


def chains(*cores: tuple[tuple[int, int], ...], values: bool = False) -> Edit:
    """Other chains of cores in the plan of :func:`handed_on`; with `values`, the cores know of them."""

    def edit(program: TirProgram) -> TirProgram:
        (sums,) = program.plan.partials
        made = dataclasses.replace(sums, chains=cores)
        partition = program.plan.partition
        assert partition is not None
        if values:
            partition = partition.with_values(made.core_values)
        return program.with_plan(partials=(made,), partition=partition)

    return edit


# The cores of the kernels that need more than two.
CORES: dict[Callable[[], Any], tuple[int, int]] = {handed_on: (6, 1)}


def not_handed_on(program: TirProgram) -> TirProgram:
    """The writer as it is where one core adds up all sums."""
    alone = ttx.explore(handed_on(), options={"cores": (6, 1), "partials": "dram"}).steps["D3"].after
    return dataclasses.replace(program, functions=program.functions | {"writer": alone.functions["writer"]})


def branch_in_nest() -> Edit:
    """A store of a T.Parallel in a branch."""

    def change(statement: Any) -> list[Any] | None:
        if not isinstance(statement, BufferStore):
            return None
        return [when(EQ(statement.indices[0], const(0, "int32")), [statement], statement.span)]

    return in_kernel("kernel", change)


def deep_block() -> Edit:
    """A block of three dimensions beside each other one."""

    def change(statement: Any) -> list[Any] | None:
        if not isinstance(statement, AllocBuffer):
            return None
        return [statement, allocation("deep", (2, 32, 32), "float32", "shared.dyn", statement.span)]

    return in_kernel("kernel", change)


FAULTS: tuple[Fault, ...] = (
    # what steps rely on
    Fault("a part puts a branch back into a T.Parallel", difference, branch_in_nest(), step="A0.15"),
    Fault("a part leaves a block of three dimensions", difference, deep_block(), step="A0.13"),
    # cores that hand on partial sums
    Fault("a core does not wait for room at the next one", handed_on, dropped("writer", "semaphore_wait")),
    Fault("a core waits for twice the room", handed_on, given("writer", "semaphore_wait", 1, 2)),
    Fault("the sign that there is room is not reset", handed_on, dropped("writer", "semaphore_set", 1)),
    Fault("the sign that a partial sum has arrived is not reset", handed_on, dropped("writer", "semaphore_set", 0)),
    Fault("a core does not say that it has room", handed_on, dropped("writer", "semaphore_up")),
    Fault("a core does not say that it has sent a partial sum", handed_on, dropped("writer", "semaphore_up", 1)),
    Fault("a core does not wait for a partial sum", handed_on, dropped("writer", "receive_sent")),
    Fault("a core waits for a partial sum by the sign of room", handed_on, given("writer", "receive_sent", 0, 0)),
    Fault("a partial sum is not sent", handed_on, dropped("writer", "noc_send_block")),
    Fault("a core is told of a partial sum before it is sent", handed_on, swapped(
        "writer", "noc_send_block", "semaphore_up", (0, 1))),
    Fault("a core is told of a partial sum that is on its way", handed_on, dropped("writer", "noc_write_barrier")),
    Fault("half of a partial sum is sent", handed_on, given("writer", "noc_send_block", 1, 1)),
    Fault("more tiles of a partial sum are sent than there are", handed_on, given("writer", "noc_send_block", 1, 4)),
    Fault("a partial sum is sent to another core", handed_on, given("writer", "noc_send_block", 3, 5)),
    Fault("a partial sum is sent to a core without work", handed_on, given("writer", "noc_send_block", 4, 7)),
    Fault("a core tells the core before of what it sent", handed_on, given(
        "writer", "semaphore_up", 1, lambda x: x - 4, 1)),
    Fault("a core is given another next one", handed_on, planned(partition=work(0, C_next_x=4))),
    Fault("the first core of a chain waits for a partial sum", handed_on, planned(partition=work(0, C_receives=1))),
    Fault("the last core of a chain sends", handed_on, planned(partition=work(5, C_sends=1))),
    Fault("the writer ends before what it told others has arrived", handed_on, edited(
        "writer", "noc_full_barrier", lambda one: [op("noc_write_barrier", span=one.span)])),
    Fault("the next partial sum has another address on each core", handed_on, planned(
        buffers=one_of("C_block", stages=2))),
    Fault("a core is in two chains", handed_on, chains(
        ((0, 0), (2, 0), (4, 0)), ((1, 0), (3, 0), (5, 0), (0, 0)))),
    Fault("a core is in no chain", handed_on, chains(((0, 0), (2, 0), (4, 0)), ((1, 0), (3, 0)))),
    Fault("a chain has a core without work", handed_on, chains(
        ((0, 0), (2, 0), (4, 0)), ((1, 0), (3, 0), (5, 0), (6, 0)))),
    Fault("a chain goes on to a core of other blocks", handed_on, chains(
        ((0, 0), (2, 0), (5, 0)), ((1, 0), (3, 0), (4, 0)), values=True)),
    Fault("two chains add to the same blocks", handed_on, both(
        chains(((0, 0), (2, 0)), ((4, 0),), ((1, 0), (3, 0), (5, 0)), values=True),
        planned(partials=one_of("C", steps=(2, 2, 2))))),
    Fault("a partial sum is stored where the next one belongs", handed_on, given(
        "writer", "noc_write_tile", 3, lambda page: page + 2)),
    Fault("a page of a partial sum is used at each step", handed_on, both(
        given("writer", "noc_read_tile", 1, lambda page: page // 4 * 4 + page % 2),
        given("writer", "noc_write_tile", 3, lambda page: page // 4 * 4 + page % 2))),
    Fault("one core adds up all sums, but others hand them on", handed_on, not_handed_on, step="D3"),
    Fault("a chain has more steps than its cores", handed_on, planned(partials=one_of("C", steps=(3, 3)))),
    # cores that share an input
    Fault("a sender waits for no receiver", shared_factor, given("reader", "semaphore_wait", 1, 0)),
    Fault("a sender waits for one receiver too many", shared_factor, given("reader", "semaphore_wait", 1, 2)),
    Fault("the count of receivers is not reset", shared_factor, dropped("reader", "semaphore_set", 1)),
    Fault("a receiver does not reset its semaphore", shared_factor, dropped("reader", "semaphore_set", 0)),
    Fault("a receiver does not say that it has room", shared_factor, dropped("reader", "semaphore_up")),
    Fault("a receiver does not wait for a block", shared_factor, dropped("reader", "receive_sent")),
    Fault("a receiver waits for another semaphore", shared_factor, given("reader", "receive_sent", 0, 0)),
    Fault("a block is not sent", shared_factor, dropped("reader", "noc_multicast")),
    Fault("nobody says that a block was sent", shared_factor, dropped("reader", "semaphore_multicast")),
    Fault("the semaphore is sent before it is set", shared_factor, dropped("reader", "semaphore_set", 2)),
    Fault("a block is sent before it has arrived", shared_factor, dropped("reader", "noc_read_barrier")),
    Fault("the reader ends before its block has left", shared_factor, dropped("reader", "noc_full_barrier")),
    Fault("the reader ends before a semaphore has changed", shared_factor, edited(
        "reader", "noc_full_barrier", lambda one: [op("noc_write_barrier", span=one.span)])),
    Fault("a multicast reaches its sender", shared_factor, given("reader", "noc_multicast", 2, 0)),
    Fault("the corners of a multicast are swapped", shared_factor, given("reader", "noc_multicast", 4, 0)),
    Fault("a multicast names too many receivers", shared_factor, given("reader", "noc_multicast", 6, lambda n: n + 1)),
    Fault("a core has the rectangle of fewer cores", shared_factor, planned(partition=work(0, A_last_x=0))),
    Fault("a core is told of a receiver too many", shared_factor, planned(partition=work(0, A_receivers=2))),
    Fault("more tiles are sent than are reserved", shared_factor, given("reader", "noc_multicast", 1, 2)),
    Fault("more tiles are received than are reserved", shared_factor, given("reader", "receive_sent", 2, 2)),
    Fault("a tile of a block is sent that was not read", shared_factor, dropped("reader", "noc_read_tile")),
    Fault("a core without work receives", shared_factor, planned(shared=one_of("A", multicasts=(
        Multicast((0, 0), CoreRange((0, 0), (2, 0))),)))),
    Fault("a core has two senders", shared_factor, planned(shared=one_of("A", multicasts=(
        Multicast((0, 0), CoreRange((0, 0), (1, 0))), Multicast((1, 0), CoreRange((1, 0), (1, 0))))))),
    Fault("a core has no sender", shared_factor, planned(shared=one_of("A", multicasts=(
        Multicast((0, 0), CoreRange((0, 0), (0, 0))),)))),
    Fault("a row is planned as a column", shared_factor, planned(shared=one_of("A", topology="column"))),
    Fault("the reader of a shared input sends nothing", shared_factor, not_sent, step="D3"),
    Fault("two semaphores have one number", shared_factor, planned(shared=one_of("A", valid=0))),
    Fault("there are not so many semaphores", shared_factor, planned(shared=one_of("A", ready=16))),
    Fault("an input is shared that cores need other blocks of", shared_factor,
          planned(shared=sent_where_nobody_needs_it, partition=lambda p: p.with_values({
              (x, 0): {name.replace("A_", "B_"): value for name, value in p.cores[x].values.items() if name[0] == "A"}
              for x in range(2)})), step="B1"),
    Fault("an input is shared that cores need other blocks of for their third work item", other_third_block,
          shared_by_two, step="B1"),
    Fault("the plan shares an input that every core reads", shared_factor, planned(shared=lambda one: (
        *one, dataclasses.replace(one[0], tensor="B", buffer="b", ready=2, valid=3))), step="E1"),
    # a writer that loads
    Fault("the corners of a multicast are those of the other NoC", sent_by_writer,
          exchanged("writer", "noc_multicast_to_all", 2, 4)),
    Fault("the corners of a flag are those of the other NoC", sent_by_writer,
          exchanged("writer", "semaphore_multicast_to_all", 1, 3)),
    Fault("the writer waits for results before it loads what they need", sent_by_writer, stored_first),
    Fault("a sender waits for the receivers of the other kernel's input", sent_by_writer,
          given("writer", "semaphore_wait", 0, 1)),
    Fault("the writer ends before its block has left", sent_by_writer, dropped("writer", "noc_full_barrier")),
    Fault("the writer ends before a semaphore has changed", sent_by_writer, edited(
        "writer", "noc_full_barrier", lambda one: [op("noc_write_barrier", span=one.span)])),
    Fault("the writer pushes before its reads have arrived", sent_by_writer, dropped("writer", "noc_read_barrier")),
    Fault("the plan names the other kernel for what the writer loads", sent_by_writer,
          planned(buffers=one_of("a", producer="reader")), step="E1"),
    # circular buffers
    Fault("a pop is dropped", difference, dropped("compute", "cb_pop_front")),
    Fault("a pop is doubled", difference, doubled("writer", "cb_pop_front")),
    Fault("a push is dropped", difference, dropped("reader", "cb_push_back")),
    Fault("a push is doubled", difference, doubled("reader", "cb_push_back")),
    Fault("a push has one tile too few", difference, given("reader", "cb_push_back", 1, 1)),
    Fault("a wait is dropped", difference, dropped("compute", "cb_wait_front")),
    Fault("a wait is for one tile too few", difference, given("compute", "cb_wait_front", 1, 1)),
    Fault("a reserve is dropped", difference, dropped("compute", "cb_reserve_back")),
    Fault("a reserve is for no tiles", difference, given("compute", "cb_reserve_back", 1, 0)),
    Fault("A is read into the buffer of B", difference, renamed("reader", "noc_read_tile", 2, "b")),
    Fault(
        "A and B are read into each other's buffers", difference,
        both(renamed("reader", "noc_read_tile", 2, "b"), renamed("reader", "noc_read_tile", 2, "a", 1)), "interpreter",
    ),
    Fault("the partial sums have half of their pages", product, planned(buffers=one_of("c_partials", block_pages=3))),
    Fault("blocks straddle the end of a buffer", difference, planned(buffers=one_of("a", block_pages=3, stages=1))),
    Fault("a block is larger than its buffer", difference, planned(buffers=one_of("a", block_pages=1, stages=1))),
    Fault("one operand is loaded ahead of the other", product, one_operand_first),
    Fault(
        "a buffer has a second producer", difference,
        inserted("compute", "tile_regs_commit", call("cb_reserve_back", "a", 2)),
    ),
    Fault("the consumer is not the planned kernel", difference, planned(buffers=one_of("c", consumer="compute"))),
    Fault("a tile is packed beyond the reserved ones", difference, given("compute", "pack_tile", 3, lambda i: i + 1)),
    Fault("a tile is sent beyond those that were waited for", difference,
          given("writer", "noc_write_tile", 1, lambda i: i + 1)),
    Fault("a pack is dropped", difference, dropped("compute", "pack_tile")),
    Fault("a read is dropped", difference, dropped("reader", "noc_read_tile")),
    Fault("a loop over the tiles of a block ends early", difference, loop_around("reader", "noc_read_tile", 1)),
    Fault("the loop over K ends early in one kernel", product, loop_around("reader", "noc_read_barrier", 2)),
    Fault("a loop that must run once may run zero times", causal, may_make_no_turn("compute", "k")),
    Fault("a branch is taken in which no turn leaves a sum", with_turns, taken_once_more),
    Fault("a spill is not reloaded", product, branches(lambda _: [])),
    Fault("partial sums are loaded before they exist", product, branches(always)),
    Fault("only one branch pushes", difference, edited("reader", "cb_push_back", sometimes)),
    Fault("the reader decides otherwise than the compute kernel", branched, decided_otherwise("reader")),
    Fault("the compute kernel decides otherwise than the reader", branched, decided_otherwise("compute"), step="D3"),
    Fault("a number is not handed on", masked, dropped("reader", "send_number"), step="D1"),
    Fault("a number is taken before it has arrived", masked, waits_dropped("numbers_for_compute")),
    Fault("a number is not taken from the buffer", masked, pops_dropped("numbers_for_compute")),
    Fault("another number is handed on", masked, given("reader", "write_number", 2, 0), "interpreter"),
    Fault("the number of iterations is unknown", product, turns_sometimes),
    Fault("a tile index is unknown", difference,
          given("compute", "pack_tile", 3, lambda i: i + variable("somewhere"))),
    Fault("space is reserved and never filled", difference, ended("compute", call("cb_reserve_back", "c", 2))),
    Fault("there is no barrier after the last read", difference, one_more_read),
    Fault("partial sums are never consumed", product, ended("compute", *PARTIAL_SUM)),
    Fault("partial sums of each work item are never consumed", product,
          both(*[inserted("compute", "cb_push_back", make, 1) for make in PARTIAL_SUM])),
    Fault("the writer uses an operand's buffer", difference, lambda program: given(
        "writer", "noc_write_tile", 0, buffer(program, "reader", "a"))(program)),
    Fault("a buffer is not in the plan", difference,
          planned(buffers=lambda buffers: tuple(one for one in buffers if one.name != "a"))),
    Fault("two buffers have the same number", difference, planned(buffers=one_of("b", index=0))),
    Fault("two blocks that are there together share a number", chained, planned(buffers=one_of("e_2", index=24))),
    Fault("blocks share a number that are stored in another order", stored_in_another_order,
          planned(buffers=one_of("second", index=16))),
    Fault("blocks of two formats share a number", chained, planned(buffers=one_of("c_partials", index=24))),
    Fault("a block is read that gave its buffer away", chained,
          both(planned(buffers=one_of("e_3", index=24)), renamed("compute", "matmul_block", 0, "e", 3))),
    Fault("a buffer number does not exist on the chip", difference, planned(buffers=one_of("b", index=77))),
    # NoC
    Fault("the read barrier is missing", difference, dropped("reader", "noc_read_barrier")),
    Fault("the write flush is missing", difference, dropped("writer", "noc_writes_flushed")),
    Fault("the final write barrier is missing", difference, dropped("writer", "noc_write_barrier")),
    Fault("a page is outside the tensor", difference, given("reader", "noc_read_tile", 1, lambda p: p + 1)),
    Fault("a page number is negative", difference, given("reader", "noc_read_tile", 1, lambda p: p - 1)),
    Fault("a page stride is wrong", difference, given("writer", "noc_write_tile", 3, lambda p: p // 2 * 2)),
    Fault("the first page is wrong", difference, given("writer", "noc_write_tile", 3, lambda p: (p + 2) % 16 % 8),
          "interpreter"),
    Fault("a page number is unknown to the cores", difference,
          given("reader", "noc_read_tile", 1, lambda p: p + variable("somewhere"))),
    Fault("the number of pages is unknown", difference,
          both(given("writer", "noc_write_tile", 1, 0),
               loop_around("writer", "noc_write_tile", variable("somewhere")))),
    Fault("pages are written that the kernel leaves out", upper, edited("writer", "noc_write_tile", lambda s: [
        s, op("noc_write_tile", *arguments(s)[:3], arguments(s)[3] + 4, span=s.span)])),
    Fault("a core reads a page that another one writes", summed,
          given("writer", "noc_read_tile", 1, lambda p: (p + 4) % 8)),
    Fault("the reader reads a tensor that the writer writes", difference, read_back),
    Fault("sums are read before the last ones have arrived", summed, edited(
        "writer", "noc_write_barrier", lambda s: [op("noc_writes_flushed", span=s.span)])),
    Fault("what a tensor held counts as zero", summed, edited("writer", "noc_read_tile", zeros), "interpreter"),
    Fault("a sum is that of another block", summed, given("writer", "noc_read_tile", 1, lambda p: p // 4 * 4 + p % 2),
          "interpreter"),
    Fault("a sum is loaded after it is stored", summed, swapped("kernel", "read_block", "write_block", (1, 0)),
          step="C2"),
    Fault("a sum has two owners", summed, without_owners, step="A0"),
    Fault("a `while` takes a turn less", taken_in_turns, named("kernel", "turns", lambda e: e - 1), "interpreter",
          "A0"),
    Fault("a turn of a `while` begins with what is for the next", taken_in_turns,
          named("kernel", "tile_2", lambda e: e + 2), "interpreter", "A0"),
    Fault("a turn of stream-K begins before its share", streamed,
          named("kernel", "start_2", lambda e: e.b), "interpreter", "A0"),
    Fault("a sum whose place a tensor decides has two owners", summed_where_told, without_owners, step="A0"),
    Fault("two cores write the same pages", difference, given("writer", "noc_write_tile", 3, lambda p: p % 4)),
    Fault(
        "the reader reads the wrong tensor", difference,
        lambda program: given("reader", "noc_read_tile", 0, program.functions["reader"].params[1])(program),
        "interpreter",
    ),
    # work
    Fault("two cores run the same work item", difference, planned(partition=work(1, work_start=1)), step="B1"),
    Fault("a work item is missing", difference, planned(partition=work(1, work_count=1)), step="B1"),
    Fault("a core's work items are off by one", difference, planned(partition=work(1, work_start=3)), step="B1"),
    Fault("a core has no work count", difference, planned(partition=without_value), step="B1"),
    Fault("a core is outside the chip", difference,
          planned(partition=lambda p: dataclasses.replace(p, cores=tuple(dataclasses.replace(c, x=c.x + 8)
                                                                         for c in p.cores))), step="B1"),
    Fault("a block index is not computed", difference, bound("bx", 0), step="B2"),
    Fault("a copy takes all heads for the rows of one", one_head, copied_wider(2, 2), step="A0"),
    Fault("a copy takes half of a row", one_head, copied_wider(3, 16), step="B2"),
    Fault("a block is stored with its rows as columns", product, exchanged("kernel", "write_block", 3, 4), step="C2"),
    Fault("a block is loaded without its last row", one_head, given("kernel", "read_strips", 8, 31), step="C2"),
    Fault("an operand is not loaded", difference, dropped("kernel", "read_block"), step="C2"),
    Fault("operands are swapped before the split", difference, exchanged("kernel", "sub_tiles", 0, 1), "interpreter",
          "C2"),
    Fault("a block is stored twice", difference, doubled("kernel", "write_block"), step="C2"),
    Fault("a core is listed twice", difference,
          planned(partition=lambda p: dataclasses.replace(p, cores=(*p.cores, p.cores[0]))), step="B1"),
    # arguments
    Fault("a kernel has no signature", difference, planned(signature=lambda s: s[:2])),
    Fault("there is an extra accessor", difference,
          reader_arguments(compile_time=lambda a: (*a, dataclasses.replace(a[0], of="C")))),
    Fault("the list of work items is not last", listed, reader_arguments(runtime=lambda a: a[::-1])),
    Fault("a core lacks a value that a kernel reads", difference, another_value),
    Fault("an operand is missing", difference,
          edited("compute", "sub_tiles", lambda s: [evaluated(s, arguments(s)[:-1])])),
    Fault("a buffer is passed as a number", difference, lambda program: given(
        "compute", "sub_tiles", 2, buffer(program, "compute", "a"))(program)),
    Fault("addresses and accessors are in different orders", difference,
          reader_arguments(common_runtime=lambda a: a[::-1])),
    Fault("an argument is missing", difference, reader_arguments(runtime=lambda a: a[:1])),
    Fault("there is an extra argument", difference, reader_arguments(common_runtime=lambda a: (*a, a[0]))),
    Fault("operands are in the wrong order", difference, exchanged("compute", "sub_tiles", 1, 2)),
    # DST
    Fault("DST is never acquired", difference, dropped("compute", "tile_regs_acquire")),
    Fault("commit and wait are swapped", difference, swapped("compute", "tile_regs_commit", "tile_regs_wait")),
    Fault("the commit is missing", difference, dropped("compute", "tile_regs_commit")),
    Fault("DST is released twice", difference, doubled("compute", "tile_regs_release")),
    Fault("DST is never released", difference, dropped("compute", "tile_regs_release")),
    Fault("a tile is packed before the commit", difference,
          both(dropped("compute", "tile_regs_commit"), dropped("compute", "tile_regs_wait"))),
    Fault("a slot is beyond the end of DST", difference, given("compute", "sub_tiles", 5, lambda i: i + 7)),
    Fault("a sub-block is larger than DST", product, given("compute", "matmul_block", 5, 2)),
    Fault("the packed slot was never written", difference, given("compute", "pack_tile", 1, lambda i: i + 2)),
    Fault("the wrong slot is packed", biased, given("compute", "pack_tile", 1, lambda i: i + 2), "interpreter"),
    Fault("a product is added to a used slot", difference,
          edited("compute", "sub_tiles", followed_by("mul_tiles", *range(6)))),
    Fault("an operand is not copied to DST", biased, dropped("compute", "copy_tile")),
    Fault("the last section is never ended", difference, ended("compute", call("tile_regs_acquire"))),
    Fault("only one branch releases DST", difference, edited("compute", "tile_regs_release", sometimes)),
    Fault("a DST slot is unknown", difference,
          given("compute", "pack_tile", 1, lambda i: i + variable("somewhere"))),
    Fault("a loop uses more slots than DST has", difference,
          both(given("compute", "sub_tiles", 2, 0), given("compute", "sub_tiles", 3, 0),
               loop_around("compute", "sub_tiles", 1000))),
    # the engine
    Fault("the start-up is in a loop", difference, edited("compute", "compute_startup", around)),
    Fault("a reconfiguration names the wrong old buffer", product, renamed("compute", "reconfig_pack", 0, "a")),
    Fault("a broadcast is undone twice", biased, doubled("compute", "unary_bcast_row_uninit")),
    Fault("the init is missing", difference, dropped("compute", "sub_tiles_init")),
    Fault("the init is that of another operation", difference,
          edited("compute", "sub_tiles_init", instead("add_tiles_init"))),
    Fault("the init precedes the change of format", product,
          swapped("compute", "reconfig_source_a", "matmul_block_init", (1, 1))),
    Fault("the init after another SFPU operation is missing", biased, dropped("compute", "exp_tile_init")),
    Fault("the init after loading partial sums is missing", product, dropped("compute", "matmul_block_init", 1)),
    Fault("the packer's data format is not changed", product, dropped("compute", "reconfig_pack")),
    Fault("the unpacker's data format is not changed back", product, dropped("compute", "reconfig_source_a", 1)),
    Fault("a broadcast is not undone", biased, dropped("compute", "unary_bcast_row_uninit")),
    Fault("the start-up is missing", difference, dropped("compute", "compute_startup")),
    Fault("there are two start-ups", difference, doubled("compute", "compute_startup")),
    Fault("an init precedes the start-up", difference, swapped("compute", "compute_startup", "sub_tiles_init")),
    Fault("only the call transposes, not its init", product, given("compute", "matmul_block", 6, 1)),
    Fault(
        "the product is transposed", product,
        both(everywhere("compute", "matmul_block", 6, 1), everywhere("compute", "matmul_block_init", 2, 1)),
        "interpreter",
    ),
    Fault(
        "an operation is wrong in this DST mode", difference,
        both(
            planned(compute=lambda c: dataclasses.replace(c, fp32_dest_acc_en=True, dst_tiles=4)),
            edited("compute", "sub_tiles_init", row_broadcast("unary_bcast_row_init", 0)),
            edited("compute", "sub_tiles", row_broadcast("unary_bcast_row", 0, 2, 4, 5)),
        ),
    ),
    Fault("the packer keeps accumulating in L1", product,
          inserted("compute", "cb_reserve_back", call("pack_l1_accumulate", 1), 1)),
    # rows
    Fault("rows are used as tiles", rows,
          inserted("compute", "tilize_block", call("copy_tile", "a_rows", 0, "dst", 0))),
    Fault("rows are untilized, not tilized", rows, edited("compute", "tilize_block", instead("pack_untilize_block"))),
    Fault("rows have the wrong width", rows, given("compute", "pack_untilize_block", 2, 1)),
    Fault("a row extends beyond its buffer", rows, loop_around("reader", "noc_read_part", 33)),
    Fault("the length of a row is unknown", rows,
          given("reader", "noc_read_part", 6, lambda count: count + variable("somewhere"))),
    Fault("a row of each block is not read", rows, loop_around("reader", "noc_read_part", 31), "interpreter"),
    Fault("rows are sent from the wrong place", rows, given("writer", "noc_write_part", 2, 0), "interpreter"),
    Fault("tilize is not undone", rows, dropped("compute", "tilize_block_uninit")),
    Fault("untilize is not undone", rows, dropped("compute", "pack_untilize_block_uninit")),
    Fault("rows are made while DST is acquired", rows, dropped("compute", "tile_regs_release")),
    Fault("more tiles are untilized at once than half of DST holds", stored_by_rows,
          planned(compute=lambda c: dataclasses.replace(c, fp32_dest_acc_en=True, dst_tiles=4))),
    # elements
    Fault("an element is stored in the place of its neighbour", scattered,
          given("writer", "noc_write_element", 7, lambda offset: offset + 4)),
    Fault("an element is stored in the row above", scattered,
          given("writer", "noc_write_element", 7, lambda offset: offset - 64)),
    Fault("all elements are stored in one place", scattered, given("writer", "noc_write_element", 7, 4)),
    Fault("the last element of each block is not stored", scattered, may_make_no_turn("writer", "c")),
    Fault("an element is sent from the wrong place", scattered, given("writer", "noc_write_element", 2, 0),
          "interpreter"),
    Fault("elements outside of the tensor are stored", scattered, unguarded("writer", "noc_write_element")),
    Fault("elements outside of the tensor are read", scattered, unguarded("reader", "noc_read_element")),
    Fault("an element is read from the place of its neighbour", scattered,
          given("reader", "noc_read_element", 2, lambda offset: offset + 4), "interpreter"),
    Fault("an element is not waited for", scattered, dropped("writer", "noc_writes_flushed")),
    Fault("two cores have the same elements", scattered, planned(partition=work(1, work_start=0))),
    # numbers that are known when the kernel runs
    Fault("a row more is stored than a number says", limited, named("writer", "stored", lambda count: count + 1),
          "interpreter"),
    Fault("a row less is stored than a number says", limited, named("writer", "stored", lambda count: count - 1),
          "interpreter"),
    Fault("a column more is stored than a number says", limited, named("writer", "stored", lambda count: count + 1, 1),
          "interpreter"),
    Fault("as many rows are stored as in the first block", limited, read_from("reader", "Rows", 0, 0), "interpreter"),
    Fault("rows and columns that no number allows are stored", limited, unguarded("writer", "noc_write_element"),
          "interpreter"),
    Fault("a variable ends with what it was before", found, named("kernel", "count_2", lambda one: one - 1),
          "interpreter", "A0"),
    Fault("a kernel makes a turn less than the others", found, named("compute", "count_2", lambda one: one - 1)),
    # rows that an index tensor chooses
    Fault("all rows are the first chosen one", chosen_rows, read_from("reader", "Index", 0, 0), "interpreter"),
    Fault("a chosen row goes to the row after its own", chosen_rows, stored_instead(
        "a", with_condition(lambda one: EQ(one.a, one.b + 1))), "interpreter", "A0"),
    Fault("rows outside of the tensor are not zero", chosen_rows, stored_instead(
        "a_row", lambda e: const(1.0, "float32") if isinstance(e, FloatImm) else e), "interpreter", "A0"),
    # scans
    Fault("a running sum starts with 1", running_sums, started_with(1.0), "interpreter", "A0"),
    Fault("running maxima start with 0", running_maxima, started_with(0.0), "interpreter", "A0"),
    Fault("a running sum starts at the end", running_sums, stored_instead(
        "a_scan", with_condition(lambda one: LE(one.a, one.b))), "interpreter", "A0"),
    Fault("running maxima start at the other end", running_maxima, stored_instead(
        "a_scan", with_condition(lambda one: GE(one.a, one.b))), "interpreter", "A0"),
    Fault("a running sum is without the first element", running_sums, in_kernel("kernel", second_place_first),
          "interpreter", "A0"),
    Fault("a running sum is without the element at its place", running_sums, stored_instead(
        "a_scan", with_condition(lambda one: GE(one.a, one.b + 1))), "interpreter", "A0"),
    # bits, and masks that decide
    Fault("the sign is left out of joined bits", joined_in_rows, fewer_turns("bit"), "interpreter", "A0"),
    Fault("bits that one element of a row has count as those of all", joined_in_rows, reduced_as("min", "max"),
          "interpreter", "A0"),
    Fault("bits count that an even number of elements has", joined_in_rows, reduced_as("sum", "max"),
          "interpreter", "A0"),
    Fault("no element makes T.any_of true", asked, named("kernel", "Mask_any", lambda _: const(0, "int32")),
          "interpreter", "A0"),
    Fault("no element makes T.all_of false", asked, named("kernel", "Mask_all", lambda _: const(1, "int32")),
          "interpreter", "A0"),
    Fault("an element that decides does not change the answer", asked,
          given("reader", "write_number", 2, lambda n: 1 - n, 1), "interpreter"),
    Fault("the answer is not there yet", asked, dropped("reader", "write_number")),
    Fault("an element past the tensor is looked at", asked, asked_beyond),
    # rearranged blocks
    Fault("a block is rearranged before it is there", rearranged, dropped("writer", "cb_wait_front")),
    Fault("a block is rearranged into room that is not reserved", rearranged, dropped("writer", "cb_reserve_back")),
    Fault("a rearranged block stays in its buffer", rearranged, dropped("writer", "cb_pop_front")),
    Fault("a rearranged block is not handed on", rearranged, dropped("writer", "cb_push_back")),
    Fault("the zeros around a rearranged block are not waited for", rearranged, dropped("writer", "noc_read_barrier")),
    Fault("the last tile of a rearranged block is left out", rearranged,
          both(dropped("writer", "noc_write_zeros"), loop_around("writer", "move_element", 64))),
    Fault("elements of a block are taken from the tile after it", rearranged,
          given("writer", "move_element", 1, lambda slot: slot + 2)),
    Fault("elements of a block go to the tile after theirs", rearranged,
          given("writer", "move_element", 4, lambda slot: slot + 2)),
    Fault("elements of a block are those of the neighbour", rearranged,
          given("writer", "move_element", 2, lambda offset: offset + 4), "interpreter"),
    Fault("elements of a block go to one place", rearranged, given("writer", "move_element", 5, 0), "interpreter"),
    Fault("elements of a block are taken from its first tile", rearranged, given("writer", "move_element", 1, 0),
          "interpreter"),
    # the plan
    Fault("a page size is wrong", difference, planned(accessors=one_of("A", page_bytes=1024)), step="A3"),
    Fault("the number of pages is wrong", difference, planned(accessors=one_of("A", pages=9)), step="A3"),
    Fault("a tensor's strides are wrong", difference, planned(accessors=one_of("A", page_strides=(2, 1))), step="A3"),
    Fault("a data format is wrong", biased, planned(buffers=one_of("a", data_format="Float16_b"))),
    Fault("the buffers need more L1 than there is", difference, planned(buffers=one_of("a", stages=2000)), step="A2"),
    Fault("a buffer is never used", difference, lambda program: program.with_plan(
        buffers=(*program.plan.buffers, dataclasses.replace(program.plan.buffers[0], name="left_over", index=5)))),
    Fault("the plan has more DST tiles than the chip", difference,
          planned(compute=lambda c: dataclasses.replace(c, dst_tiles=16))),
    Fault("a statement has no kernel line", difference, without_line),
    # values
    Fault("operands of a difference are swapped", difference, exchanged("compute", "sub_tiles", 0, 1), "interpreter"),
    Fault("a tile index is wrong", product, given("compute", "matmul_block", 3, 0), "interpreter"),
    Fault("a scalar is wrong", biased, given("compute", "mul_unary_tile", 2, 0.25), "interpreter"),
    Fault("a product is computed twice", product, doubled("compute", "matmul_block"), "interpreter"),
    Fault("partial sums are popped unread", product, dropped("compute", "copy_tile"), "interpreter"),
    Fault("an operation is missing", biased, dropped("compute", "mul_unary_tile"), "interpreter"),
    Fault("a cast to 8 bits does not saturate", quantized, dropped("compute", "clamp_tile"), "interpreter"),
    Fault("a cast to 8 bits does not round", quantized,
          both(dropped("compute", "add_binary_tile"), dropped("compute", "sub_binary_tile")), "interpreter"),
    Fault("a cast to 8 bits rounds to a bit less", quantized,
          given("compute", "mul_unary_tile", 2, 1.5 * 2.0**21, 2), "interpreter"),
    Fault("a cast to 8 bits rounds to a bit more", quantized,
          given("compute", "mul_unary_tile", 2, 1.5 * 2.0**19, 2), "interpreter"),
    Fault("small numbers of 8 bits are rounded as normal ones are", quantized,
          dropped("compute", "unary_max_tile"), "interpreter"),
    Fault("the high part of bytes counts too little", product_of_bytes,
          given("compute", "fill_int_tile", 2, 3, 1), "interpreter"),
    Fault("the parts of bytes do not fit together", product_of_bytes, edited(
        "compute", "floor_tile", lambda one: [op("trunc_tile", *arguments(one), span=one.span)]), "interpreter"),
    # reductions
    Fault("the scaler of a reduction is not 1", reduced, given("compute", "fill_tile", 2, 0.5), "interpreter"),
    Fault("a reduction is not undone", reduced, dropped("compute", "reduce_max_row_uninit")),
    Fault("the init of a reduction is missing", reduced, dropped("compute", "reduce_sum_row_init")),
    Fault("the init of a reduction is that of another one", reduced,
          edited("compute", "reduce_sum_row_init", instead("reduce_max_row_init"))),
    Fault("padding counts as 0 for a maximum", reduced, given("compute", "fill_tile", 2, 0.0, 1), "interpreter"),
    Fault("padding counts as 1 for a sum", reduced, given("compute", "fill_tile", 2, 1.0, 2), "interpreter"),
    Fault("a mask of padding ends one element late", reduced,
          given("compute", "unary_lt_tile", 2, lambda end: end + 1, 1), "interpreter"),
    Fault("a mask of padding ends one element early", reduced,
          given("compute", "unary_lt_tile", 2, lambda end: end - 1, 1), "interpreter"),
    Fault("a tile of a row is left out of its sum", reduced,
          dropped("compute", "reduce_sum_row", 1), "interpreter"),
)  # fmt: skip

# A sum with a large number rounds to the nearest, cutting the bits of the fraction off towards zero.
TO_NEAREST = """add_binary_tile(0, 1, 0);
            sub_binary_tile_init();
            sub_binary_tile(0, 1, 0);"""
TOWARDS_ZERO = "bitwise_and_tile<DataFormat::Int32>(0, 0xfff00000u);"

TEXT_FAULTS: tuple[TextFault, ...] = (
    TextFault("a core does not say that it has room", handed_on, "writer",
              "C_room.up(noc, C_previous_x, C_previous_y, 1);", ""),
    TextFault("a core does not wait for a partial sum", handed_on, "writer", "C_arrived.wait(1);", ""),
    TextFault("a partial sum is sent before there is room", handed_on, "writer", "C_room.wait(1);", ""),
    TextFault("the writer ends before what it told others has arrived", handed_on, "writer",
              "noc.async_full_barrier();", ""),
    TextFault("a receiver does not say that it has room", shared_factor, "reader",
              "A_ready.up(noc, A_sender_x, A_sender_y, 1);", ""),
    TextFault("a multicast names too many receivers", shared_factor, "reader", "A_receivers, {.offset_bytes",
              "A_receivers + 1, {.offset_bytes"),
    TextFault("the corners of a multicast are swapped", shared_factor, "reader", ".noc_x_start = A_first_x",
              ".noc_x_start = A_last_x + 1"),
    TextFault("the corners of a multicast are those of the other NoC", sent_by_writer, "writer",
              "{.noc_x_start = A_last_x, .noc_y_start = A_last_y, .noc_x_end = A_first_x",
              "{.noc_x_start = A_first_x, .noc_y_start = A_last_y, .noc_x_end = A_last_x"),
    TextFault("the writer ends before its block has left", sent_by_writer, "writer", "noc.async_full_barrier();", ""),
    TextFault("the reader ends before its block has left", shared_factor, "reader", "noc.async_full_barrier();", ""),
    TextFault("a pop is dropped", difference, "compute", "a_buffer.pop_front(2);", ""),
    TextFault("a wait is dropped", difference, "writer", "c_buffer.wait_front(2);", ""),
    TextFault("the read barrier is missing", difference, "reader", "noc.async_read_barrier();", ""),
    TextFault("the numbers of circular buffers are swapped", difference, "compute", "cb_a = 0", "cb_a = 1"),
    TextFault("a page is outside the tensor", difference, "reader", "bx * 2 + c}", "bx * 2 + c + 1}"),
    TextFault("two cores write the same pages", difference, "writer", "{.page_id = by * 4", "{.page_id = 0 * by"),
    TextFault("sums are read before the last ones have arrived", summed, "writer", "noc.async_write_barrier",
              "noc.async_writes_flushed"),
    TextFault("a page size is wrong", difference, "writer", "page_bytes = 2048", "page_bytes = 1024"),
    TextFault("arguments are in the wrong order", difference, "writer", "get_arg_val<uint32_t>(0)",
              "get_arg_val<uint32_t>(1)"),
    TextFault("an address is that of another tensor", difference, "reader", "get_common_arg_val<uint32_t>(0)",
              "get_common_arg_val<uint32_t>(1)"),
    TextFault("the init is missing", difference, "compute", "sub_init(cb_a, cb_b);", ""),
    TextFault("the start-up is missing", difference, "compute", "compute_kernel_hw_startup(cb_a, cb_b, cb_c);", ""),
    TextFault("an operation has another one's init", difference, "compute", "sub_tiles(cb_a", "add_tiles(cb_a"),
    TextFault("DST is never released", difference, "compute", "tile_regs_release();", ""),
    TextFault("the packer is not reconfigured", product, "compute",
              "pack_reconfig_data_format(cb_c_partials, cb_c_out);", ""),
    TextFault("the loop over K ends early", product, "compute", "k < 2", "k < 1"),
    TextFault("a number is taken before it has arrived", masked, "compute",
              "numbers_for_compute_buffer.wait_front(1);", ""),
    TextFault("another number is handed on", told, "reader", ".get_write_ptr() + 0) = static_cast<uint32_t>(count)",
              ".get_write_ptr() + 0) = static_cast<uint32_t>(count) + 1"),
    TextFault("a kernel decides otherwise than the others", branched, "compute", "k <= bx", "k < bx"),
    TextFault("partial sums are loaded before they exist", product, "compute", "k > 0", "k + 1 > 0"),
    TextFault("a broadcast is not undone", biased, "compute", "unary_bcast_uninit<BroadcastType::ROW>(cb_v);", ""),
    TextFault("the init of tilize is missing", rows, "compute", "tilize_init(cb_a_rows, 8, cb_a);", ""),
    TextFault("a reduction is not undone", reduced, "compute",
              "reduce_uninit(cb_buffer_2_masked_2);\n        reconfig_data_format_srca", "reconfig_data_format_srca"),
    TextFault("tilize is not undone", rows, "compute", "tilize_uninit(cb_b_rows, cb_b);", ""),
    TextFault("fewer tiles are untilized than the init was for", rows, "compute", "pack_untilize_block<8>",
              "pack_untilize_block<4>"),
    TextFault("the distance between rows is wrong", rows, "reader", "r * 512", "r * 256"),
    TextFault("an element is written from where its address does not fit", scattered, "writer", "aligned + offset % 16",
              "aligned"),
    TextFault("an element is stored in the place of its neighbour", scattered, "writer", "* 64 + 4", "* 64 + 8"),
    TextFault("a scalar is wrong", biased, "compute", "0x3f000000u", "0x3e800000u"),
    TextFault("a negative number loses its sign", scaled, "compute", "float_bits(int32_t number)",
              "float_bits(int64_t number)"),
    TextFault("a scalar is another element", scaled, "reader", "bx % 8 * 8", "bx % 8 * 4"),
    TextFault("a scalar is a column", scaled, "compute", "unary_bcast<BroadcastType::SCALAR>(cb_scale",
              "unary_bcast<BroadcastType::COL>(cb_scale"),
    TextFault("a scalar is not the last one", scaled, "compute", "rate_buffer.wait_front(1);", ""),
    TextFault("the half with small values is zero", uneven, "compute", "0x3a83126fu", "0x00000000u"),
    TextFault("the half with small values is negated", uneven, "compute", "0x3a83126fu", "0xba83126fu"),
    TextFault("a cast to 8 bits rounds towards zero", quantized, "compute", TO_NEAREST, TOWARDS_ZERO),
    TextFault("all values except one large one are garbage", uneven, "compute", "0x3f000000u", "0x40a00000u"),
)  # fmt: skip
