"""Planting faults: edits of a program's statements, of its plan and of its emitted text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tests.rewriting import placed, rewrite
from ttexplore.ir.adapter import is_buffer
from ttexplore.ir.build import arguments, op, op_name
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import walk

Change = Callable[[Any], list[Any]]
Edit = Callable[[TirProgram], TirProgram]


def edited(role: str, operation: str, change: Change, nth: int = 0) -> Edit:
    """Replace the `nth` statement of a kernel that runs an operation."""

    def edit(program: TirProgram) -> TirProgram:
        found = _statements(program, role, operation)
        chosen = found[nth]

        def rule(statement: Any) -> list[Any] | None:
            return change(statement) if statement.same_as(chosen) else None

        return _with(program, role, rewrite(program.functions[role], rule))

    return edit


def _statements(program: TirProgram, role: str, operation: str) -> list[Any]:
    found = [s for s in walk(program.functions[role].body) if op_name(s) == f"tt.{operation}"]
    assert found, f"the {role} has no {operation}"
    return found


def _with(program: TirProgram, role: str, function: Any) -> TirProgram:
    return dataclasses.replace(program, functions={**program.functions, role: function})


def dropped(role: str, operation: str, nth: int = 0) -> Edit:
    return edited(role, operation, lambda _: [], nth)


def doubled(role: str, operation: str, nth: int = 0) -> Edit:
    return edited(role, operation, lambda statement: [statement, statement], nth)


def given(role: str, operation: str, position: int, value: Any, nth: int = 0) -> Edit:
    """Another value for one argument: a number, or a function of the old value."""

    def change(statement: Any) -> list[Any]:
        values = arguments(statement)
        values[position] = value(values[position]) if isinstance(value, FunctionType) else value
        return [op(op_name(statement)[3:], *values, span=statement.span)]

    return edited(role, operation, change, nth)


def everywhere(role: str, operation: str, position: int, value: Any) -> Edit:
    """As :func:`given`, for every statement that runs the operation."""

    def edit(program: TirProgram) -> TirProgram:
        for nth in range(len(_statements(program, role, operation))):
            program = given(role, operation, position, value, nth)(program)
        return program

    return edit


def exchanged(role: str, operation: str, first: int, second: int, nth: int = 0) -> Edit:
    """Two arguments swapped."""

    def change(statement: Any) -> list[Any]:
        values = arguments(statement)
        values[first], values[second] = values[second], values[first]
        return [op(op_name(statement)[3:], *values, span=statement.span)]

    return edited(role, operation, change, nth)


def buffer(program: TirProgram, role: str, name: str) -> Any:
    """The circular buffer or DST of a kernel, by name."""
    for statement in walk(program.functions[role].body):
        for value in arguments(statement) if op_name(statement) else []:
            if is_buffer(value) and str(value.name) == name:
                return value
    raise AssertionError(f"the {role} uses no {name}")


def renamed(role: str, operation: str, position: int, name: str, nth: int = 0) -> Edit:
    """Another buffer for one argument."""
    return lambda program: given(role, operation, position, buffer(program, role, name), nth)(program)


def swapped(role: str, first: str, second: str, nths: tuple[int, int] = (0, 0)) -> Edit:
    """Two statements in each other's place."""

    def edit(program: TirProgram) -> TirProgram:
        one, two = (_statements(program, role, name)[nth] for name, nth in zip((first, second), nths, strict=True))

        def rule(statement: Any) -> list[Any] | None:
            if statement.same_as(one):
                return [two]
            return [one] if statement.same_as(two) else None

        return _with(program, role, rewrite(program.functions[role], rule))

    return edit


def inserted(role: str, before: str, make: Callable[[TirProgram], Any], nth: int = 0) -> Edit:
    """A new statement before another one."""

    def edit(program: TirProgram) -> TirProgram:
        def change(statement: Any) -> list[Any]:
            return [placed(make(program), statement), statement]

        return edited(role, before, change, nth)(program)

    return edit


def planned(**changes: Callable[[Any], Any]) -> Edit:
    """Fields of the plan changed by functions of their old values."""
    return lambda program: program.with_plan(
        **{name: change(getattr(program.plan, name)) for name, change in changes.items()}
    )


def one_of(name: str, **changes: Any) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function that changes the plan value called `name` among several."""

    def change(values: tuple[Any, ...]) -> tuple[Any, ...]:
        named = [next(str(getattr(v, key)) for key in ("name", "tensor", "kernel") if hasattr(v, key)) for v in values]
        assert name in named, f"{name} is not among {named}"
        return tuple(dataclasses.replace(v, **changes) if n == name else v for v, n in zip(values, named, strict=True))

    return change
