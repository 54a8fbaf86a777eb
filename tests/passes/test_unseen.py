"""What passes hand on without looking at it: looking is noticed, and nothing else is taken from another lowering."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

import ttexplore as ttx
from tests.corpus import gemm
from ttexplore.ir.program import TirProgram
from ttexplore.notes import Note
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.step import Applied, Pass
from ttexplore.passes.unseen import Facts, Unseen, hidden
from ttexplore.plan import ComputeConfig, Plan
from ttexplore.target import Target

KERNEL = ttx.explore(gemm(64, 64, 64, 32, 32, 32))
LOW = {"math_fidelity": "LoFi"}


@dataclasses.dataclass(frozen=True)
class Holder:
    held: object


@pytest.mark.parametrize(
    "look",
    [
        lambda one: one == "LoFi", lambda one: one != "LoFi", hash, str, repr, bool, lambda one: f"{one:>5}",
        lambda one: f"{one!r}", lambda one: one in ("HiFi4", "LoFi"), lambda one: {"LoFi": 1}.get(one),
        lambda one: ("HiFi4", "LoFi").index(one), lambda one: Holder(one) == Holder("LoFi"),
        lambda one: one == Unseen("another", "LoFi", lambda *_: None),
    ],
)  # fmt: skip
def test_looking_gives_the_value_and_is_noticed(look: Callable[[object], object]) -> None:
    seen: list[tuple[str, object]] = []
    found = look(Unseen("here", "LoFi", lambda *what: seen.append(what)))
    assert found == look("LoFi")
    assert {*seen} == {("here", "LoFi")}


def test_handing_on_is_not_looking() -> None:
    one = Unseen("here", "LoFi", lambda *_: pytest.fail("nobody looks"))
    held = dataclasses.replace(Holder(0), held=one)
    assert held.held is one
    assert held == Holder(one)
    assert (*(one,), 1) == (one, 1)
    # Tuples and, before Python 3.13, dataclasses see for themselves that it is the same.
    assert one.__eq__(one)
    assert not one.__ne__(one)


@pytest.mark.parametrize("use", [len, iter, lambda one: one < "HiFi4", lambda one: one.lower(), lambda one: one + ""])
def test_nothing_else_can_be_done_with_it(use: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        use(Unseen("here", "LoFi", lambda *_: None))


def telling(text: str) -> Note:
    return Note("told", {}, text)


def test_facts_are_found_and_put_back() -> None:
    compute = ComputeConfig("HiFi2", False, False, False, 8, "reload")
    plan = Plan("k", "t", {"stages": 2}, notes=(telling("one"), telling("two")), compute=compute)
    unseen = Facts.of(plan).unseen(lambda *_: pytest.fail("nobody looks"))
    other = plan.replace(
        compute=dataclasses.replace(compute, math_fidelity="LoFi"), notes=(telling("1"), telling("2")), options={}
    )
    made = (
        dataclasses.replace(unseen, notes=(*unseen.notes, telling("three")))
        .known(Facts.of(other).by_place)
        .put_into(plan)
    )
    assert made == other.replace(notes=tuple(map(telling, ("1", "2", "three"))))
    assert hidden(plan) == hidden(other)
    assert hidden(plan) != hidden(plan.replace(kernel="another"))
    with pytest.raises(AssertionError, match="a check looks at math_fidelity"):
        assert hidden(plan).compute == compute


# Steps after A2, in place of B1: with what they do, whether one that ran with HiFi4 is taken for LoFi, and the notes.


def handing_on(program: TirProgram) -> TirProgram:
    return program.with_plan(notes=(*program.plan.notes, telling("handed on")))


def looking(program: TirProgram) -> TirProgram:
    assert program.plan.compute is not None
    return program.with_plan(notes=(telling(f"looked at {program.plan.compute.math_fidelity}"),))


def choosing(program: TirProgram) -> TirProgram:
    """The choice is the same, but another might have been."""
    assert program.plan.compute is not None
    return handing_on(program) if program.plan.compute.math_fidelity in ("LoFi", "HiFi4") else program


def setting(program: TirProgram) -> TirProgram:
    """A fact of its own, which is not the one before."""
    assert program.plan.compute is not None
    return program.with_plan(compute=dataclasses.replace(program.plan.compute, math_fidelity="HiFi3"))


def filtering(program: TirProgram) -> TirProgram:
    return program.with_plan(notes=tuple(note for note in program.plan.notes if note != telling("looked at LoFi")))


def filtering_kinds(program: TirProgram) -> TirProgram:
    return program.with_plan(notes=tuple(note for note in program.plan.notes if note.kind != "told"))


def reading_options(program: TirProgram) -> TirProgram:
    return program.with_plan(notes=(telling(str(program.plan.options)),))


RAN: list[str] = []


@functools.cache
def steps(*functions: Callable[[TirProgram], TirProgram]) -> tuple[Pass, ...]:
    def step(function: Callable[[TirProgram], TirProgram]) -> Pass:
        def ran(program: TirProgram, target: Target) -> TirProgram:
            RAN.append(function.__name__)
            return function(program)

        return Pass(function.__name__, "partition", ran)

    return (*PIPELINE[:3], *map(step, functions))


def lowered(
    options: dict[str, Any], passes: list[Callable[[TirProgram], TirProgram]], *like: list[Applied]
) -> list[Applied]:
    del RAN[:]
    return list(lower(KERNEL.steps[0].before, KERNEL.target, options, steps(*passes), like))


@pytest.mark.parametrize(
    ("passes", "again"),
    [
        ([handing_on], []), ([looking], ["looking"]), ([choosing, handing_on], ["choosing"]),
        ([setting, looking], []), ([looking, handing_on], ["looking"]),
        ([looking, filtering], ["looking", "filtering"]), ([reading_options], ["reading_options"]),
        ([handing_on, filtering], []), ([looking, filtering_kinds], ["looking", "filtering_kinds"]),
    ],
)  # fmt: skip
def test_only_what_was_not_looked_at_is_taken_from_another(
    passes: list[Callable[[TirProgram], TirProgram]], again: list[str]
) -> None:
    first = lowered({}, passes)
    alone = lowered(LOW, passes)
    assert [one.error for one in (*first, *alone)] == [None] * (6 + 2 * len(passes))
    like = lowered(LOW, passes, first)
    assert again == RAN
    assert [one.after.plan for one in like] == [one.after.plan for one in alone]
    assert [repr(one.after.plan) for one in like] == [repr(one.after.plan) for one in alone]
    assert [one.before.plan for one in like] == [one.before.plan for one in alone]
    # What is taken can be taken again, and what was changed comes back.
    assert [one.after.plan for one in lowered({}, passes, like)] == [one.after.plan for one in first]
    assert again == RAN


def test_other_numbers_of_notes_are_told_apart() -> None:
    def more(program: TirProgram) -> TirProgram:
        assert program.plan.compute is not None
        return handing_on(program) if program.plan.compute.math_fidelity == "LoFi" else program

    def counting(program: TirProgram) -> TirProgram:
        return program.with_plan(notes=(*program.plan.notes, telling(f"{len(program.plan.notes)} notes")))

    passes = [more, counting]
    first, alone = lowered({}, passes), lowered(LOW, passes)
    assert lowered(LOW, passes, first)[-1].after.plan == alone[-1].after.plan
    assert RAN == ["more", "counting"]
