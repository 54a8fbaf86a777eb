"""The value that flows through the pipeline: functions and plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx

from ttexplore.ir.operations.storage import Staging, TensorMove
from ttexplore.ir.operations.work import ItemWork
from ttexplore.ir.rewrite import Firing, Firings
from ttexplore.notes import Note
from ttexplore.options import DEFAULTS, Options
from ttexplore.plan import Choice, Plan
from ttexplore.record import Listing, replaced

KERNEL = "kernel"


@dataclass(frozen=True)
class TirProgram:
    """A kernel being lowered.

    `functions` is ``{"kernel": f}`` until the split and then reader, compute and writer; each is a tirx.PrimFunc.
    `options` are those of all passes; the plan has them in JSON form. `firings` say what the pass that came last made
    of the functions before it. `staging` is the storage of the kernel's values, from A2, which decides it, to C1, which
    carries it out; `moves` says how copies move regions of tensors, from the first part of A2 to its last one. `works`
    are what predicted times are computed from, from B1 on, by math fidelity: programs that differ in nothing else have
    the same. None if it is known only when the kernel runs, or no option is ``auto``.
    """

    functions: dict[str, tirx.PrimFunc]
    plan: Plan
    source: Listing
    options: Options = DEFAULTS
    firings: tuple[Firing, ...] = ()
    staging: Staging | None = None
    moves: Mapping[tirx.Stmt, TensorMove] | None = None
    works: Mapping[str, ItemWork] | None = None

    @property
    def work(self) -> ItemWork | None:
        """What predicted times are computed from, from B1 on; None if it is known only when the kernel runs."""
        compute = self.plan.compute
        return None if self.works is None or compute is None else self.works[compute.math_fidelity]

    @property
    def kernel(self) -> tirx.PrimFunc:
        """The one function before the split. Raises KeyError after it."""
        return self.functions[KERNEL]

    @property
    def is_split(self) -> bool:
        return KERNEL not in self.functions

    def shares_functions(self, other: TirProgram) -> bool:
        """Whether both have the very same functions, and not only equal ones."""
        same = self.functions.keys() == other.functions.keys()
        return same and all(function.same_as(other.functions[role]) for role, function in self.functions.items())

    def with_plan(self, **changes: object) -> TirProgram:
        return replaced(self, plan=self.plan.replace(**changes))

    def with_choice(self, choice: Choice, why: Note) -> TirProgram:
        """The program whose plan says what was chosen, and why, also as a note."""
        return self.with_plan(choices=(*self.plan.choices, choice), notes=(*self.plan.notes, why))

    def with_kernel(self, function: tirx.PrimFunc, firings: Firings) -> TirProgram:
        return self.with_functions({KERNEL: function}, firings)

    def with_functions(self, functions: Mapping[str, tirx.PrimFunc], firings: Firings) -> TirProgram:
        """The program with other functions, made by the rules that fired."""
        return replaced(self, functions={**functions}, firings=tuple(firings.all))
