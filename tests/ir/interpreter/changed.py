"""Programs that were right, with a change to one of their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ttexplore as ttx
from tests.rewriting import rewrite
from ttexplore.ir.build import arguments, op, op_name
from ttexplore.ir.interpreter import interpret
from ttexplore.ir.program import TirProgram
from ttexplore.passes.launches.tensor_roles import tensor_roles

Change = Callable[[Any], "list[Any] | None"]


def run_changed(
    kernel: Any, role: str, change: Change, cores: tuple[int, int] = (1, 1), **plan_changes: Any
) -> None:  # fmt: skip
    exploration = ttx.explore(kernel, options={"cores": cores})
    program: TirProgram = exploration.steps["E1"].after
    functions = {**program.functions, role: rewrite(program.functions[role], change)}
    plan = program.plan.replace(**plan_changes)
    interpret(functions, plan, exploration.inputs(), dict(tensor_roles(exploration.kernel.function)), turn_limit=10_000)


def dropped(name: str) -> Change:
    return lambda statement: [] if op_name(statement) == f"tt.{name}" else None


def renamed(old: str, new: str) -> Change:
    def change(statement: Any) -> list[Any] | None:
        return [op(new, *arguments(statement))] if op_name(statement) == f"tt.{old}" else None

    return change


def replaced(name: str, position: int, value: int) -> Change:
    def change(statement: Any) -> list[Any] | None:
        if op_name(statement) != f"tt.{name}":
            return None
        values: list[Any] = arguments(statement)
        values[position] = value
        return [op(name, *values)]

    return change
