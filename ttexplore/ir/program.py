"""The value that flows through the pipeline: functions and plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ttexplore.options import DEFAULTS, Options
from ttexplore.plan import KernelRole, Plan
from ttexplore.record import Listing

KERNEL = "kernel"


@dataclass(frozen=True)
class Program:
    """A kernel being lowered.

    `functions` is ``{"kernel": f}`` until the split and then reader, compute and writer; each is a tirx.PrimFunc.
    `options` are those of all passes; the plan has them in JSON form.
    """

    functions: dict[str, Any]
    plan: Plan
    source: Listing
    options: Options = DEFAULTS

    @property
    def kernel(self) -> Any:
        """The one function before the split. Raises KeyError after it."""
        return self.functions[KERNEL]

    @property
    def is_split(self) -> bool:
        return KERNEL not in self.functions

    def shares_functions(self, other: Program) -> bool:
        """Whether both have the very same functions, and not only equal ones."""
        same = self.functions.keys() == other.functions.keys()
        return same and all(one.same_as(other.functions[role]) for role, one in self.functions.items())

    def with_plan(self, **changes: Any) -> Program:
        return dataclasses.replace(self, plan=self.plan.replace(**changes))

    def with_kernel(self, function: Any) -> Program:
        return dataclasses.replace(self, functions={KERNEL: function})

    def with_function(self, role: KernelRole, function: Any) -> Program:
        return dataclasses.replace(self, functions={**self.functions, role: function})
