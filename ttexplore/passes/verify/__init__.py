"""Verify the program after each pass: one module for each property.

The checks look at the program without running it, over all paths: loops of any length, both arms of branches. Whatever
a pass did not change was checked before and is not checked again.

Cores wait for each other, and write to the memory of another one, only where they share an input or hand on partial
sums: `sharing` follows the kernels of all cores that do that. The other modules look at one core at a time; they take
what a core receives as written by itself. `dst` and `engine` need not even that, because no other core can reach the
engine of a core.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping

from tvm import tirx

from ttexplore.errors import VerifyError
from ttexplore.ir.arithmetic.index import Key, Range
from ttexplore.ir.build import scope_of
from ttexplore.ir.kernel import Allocation, Call, FunctionReader, Kernel, Statement, alike, kernel_name
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk as walk_nodes
from ttexplore.ops import OPS
from ttexplore.passes.verify.balance import check_balance
from ttexplore.passes.verify.dst import check_dst
from ttexplore.passes.verify.engine import check_engine
from ttexplore.passes.verify.handshake import check_handshake
from ttexplore.passes.verify.pages import Pages, check_pages, stored_pages
from ttexplore.passes.verify.partial_sums import check_partials
from ttexplore.passes.verify.predicates import Contracts
from ttexplore.passes.verify.protocol import check_protocol
from ttexplore.passes.verify.ranges import core_ranges
from ttexplore.passes.verify.resources import check_arguments, check_formats, check_partition, check_plan
from ttexplore.passes.verify.shapes import MOVES, check_shapes
from ttexplore.passes.verify.sharing import check_multicasts, check_shared
from ttexplore.passes.verify.users import check_users
from ttexplore.plan import CircularBuffer, ComputeConfig, PartialSums, Partition, SharedInput
from ttexplore.target import Target


def verify(program: TirProgram, target: Target) -> None:
    """Check all properties that can be checked without running. Raises VerifyError, or ResourceError for L1."""
    Verifier(target).check(program)


class Verifier:
    """Checks the programs of one lowering, one after another."""

    def __init__(self, target: Target) -> None:
        self.target = target
        # What steps require and establish.
        self.contracts = Contracts()
        self.reader = FunctionReader()
        self.functions: dict[str, tirx.PrimFunc] = {}
        self.kernels: dict[str, Kernel] = {}
        self.facts: tuple[tuple[CircularBuffer, ...], ComputeConfig | None] = ((), None)
        self.ends: dict[str, tuple[CircularBuffer, ...]] = {}
        # What the check of the plan alone looks at.
        self.planned: tuple[object, ...] = ()
        self.partition: Partition | None = None
        self.shared: tuple[tuple[SharedInput, ...], tuple[PartialSums, ...], Partition | None] = ((), (), None)
        self.given: dict[Key, Range] = {}
        # The shapes of the circular buffers, in elements, from before they are allocated by their pages.
        self.shapes: Mapping[str, tuple[int, ...]] = {}
        # The kernel in the normal form that A0 brings it into: it defines what is stored.
        self.first: tirx.PrimFunc | None = None
        self.stored: Callable[[frozenset[str]], Mapping[str, Pages]] | None = None

    def copy(self) -> Verifier:
        """A verifier that has checked the same programs, and goes on by itself."""
        verifier = copy.copy(self)
        verifier.reader, verifier.ends = self.reader.copy(), dict(self.ends)
        return verifier

    def with_contracts(self, contracts: Contracts) -> Verifier:
        """The same verifier, with other predicates that hold."""
        verifier = copy.copy(self)
        verifier.contracts = contracts
        return verifier

    def check(self, program: TirProgram) -> None:
        """Raises VerifyError, or ResourceError for L1."""
        plan = program.plan
        self.reader.sizes = {size.core_value: size.value for size in plan.sizes}
        changed = {
            role for role, function in program.functions.items()
            if self.functions.get(role) is not function
        }  # fmt: skip
        self.functions, before = program.functions, self.kernels
        if program.is_split:
            self.kernels = {
                role: self.reader.read(role, function) if role in changed else self.kernels[role]
                for role, function in program.functions.items()
            }
            for role, kernel in self.kernels.items():
                if kernel.unplaced is not None:
                    raise _no_line(role, kernel.unplaced)
        elif changed:
            _check_spans(program.kernel)
        for role in changed:
            # Until D3 moves single pages, and copies are no more.
            if not program.is_split or self.kernels[role].names & MOVES:
                self.shapes = check_shapes(program.functions[role], self.shapes)
        planned = plan.buffers, plan.layouts, plan.accessors, plan.compute, plan.partition is None, bool(plan.signature)
        if planned != self.planned:
            check_plan(program, self.target)
            self.planned = planned
        shared = plan.shared, plan.partials, plan.partition
        if reshared := shared != self.shared:
            check_shared(plan, self.target)
            self.shared = shared
        check_partials(plan)
        if plan.partition is not None and plan.partition is not self.partition:
            check_partition(plan.partition, self.target)
            self.partition, self.given = plan.partition, core_ranges(plan.partition)
        if not program.is_split:
            if not plan.layouts or self.first is None:
                self.first = program.kernel
            if self.stored is None and plan.partition is not None:
                read = self.reader.read("kernel", self.first)
                self.stored = functools.cache(functools.partial(stored_pages, read, plan))
            return
        check_arguments(self.kernels, plan)
        facts, (buffers, configured) = (plan.buffers, plan.compute), self.facts
        if not changed and facts == self.facts and not reshared:
            return
        self.facts = facts
        # What sets the engine up moves no tiles.
        moved = {
            role for role in changed
            if role not in before or not alike(before[role].body, self.kernels[role].body, _moves_tiles)
        }  # fmt: skip
        check_users(self.kernels, plan)
        check_formats(self.kernels, plan)
        if any("tt.cb_" in name for kernel in self.kernels.values() for name in kernel.names):
            for role, kernel in self.kernels.items():
                ends = tuple(buffer for buffer in plan.buffers if role in (buffer.producer, buffer.consumer))
                if role in moved or self.ends.get(role) != ends:
                    check_protocol(kernel, plan, self.given)
                    self.ends[role] = ends
            if moved or plan.buffers != buffers:
                check_balance(self.kernels, plan)
                check_handshake(self.kernels, plan)
            if reshared or moved & {"reader", "writer"}:
                check_multicasts(self.kernels, plan)
            if plan.partition is not None and (reshared or moved & {"reader", "writer"}):
                check_pages(self.kernels, plan, self.stored or _nothing_known)
        compute = self.kernels["compute"]
        if _has_sections(compute) and ("compute" in moved or plan.compute != configured):
            assert plan.compute is not None
            check_dst(compute, plan.compute, plan.partition)
        if any(name.startswith("tt.compute_startup") or name.endswith("_init") for name in compute.names):
            check_engine(compute, plan)


def _nothing_known(single: frozenset[str]) -> Mapping[str, Pages]:
    return {}


def _moves_tiles(statement: Statement) -> bool:
    """Whether a statement has to do with what circular buffers hold: not what sets the engine up, nor allocations."""
    if isinstance(statement, Call):
        return not statement.phase and statement.op.engine != "config"
    return not isinstance(statement, Allocation)


def _has_sections(compute: Kernel) -> bool:
    """Whether the DST sections exist: from D5 on, or because no operation needs any."""
    operations = [OPS[name] for name in compute.names if name in OPS]
    if any(op.name.startswith("tile_regs_") for op in operations):
        return True
    return any(op.engine == "block" for op in operations) and not any(
        o.kind == "dst" for op in operations for o in op.operands
    )


def _check_spans(function: tirx.PrimFunc) -> None:
    """Law 4, for a kernel before the split: each statement has a kernel line. After it, the reader of kernels
    checks."""
    for statement in walk_nodes(function.body):
        if statement.span is None and not (
            isinstance(statement, tirx.AllocBuffer) and scope_of(statement.buffer).startswith("tt.")
        ):
            raise _no_line("kernel", statement)


def _no_line(role: str, statement: object) -> VerifyError:
    return VerifyError(
        "V050",
        f"a statement of {kernel_name(role)} has no kernel line: {statement}",
        hint="make new statements with a rule, which gives them the span of the statements that they replace",
    )


__all__ = ["Verifier", "verify"]
