"""What steps do not declare to read they cannot read, and lowerings that differ only there share what they make."""

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
from ttexplore.options import DEFAULTS
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.step import Applied, Pass
from ttexplore.passes.undeclared import Undeclared, hidden, with_facts
from ttexplore.plan import ComputeConfig, Plan
from ttexplore.target import Target

KERNEL = ttx.explore(gemm(64, 64, 64, 32, 32, 32))
LOW = {"math_fidelity": "LoFi"}


@pytest.mark.parametrize(
    "read",
    [
        lambda one: one == "LoFi", lambda one: one != "LoFi", hash, str, repr, bool, len, list,
        lambda one: f"{one:>5}", lambda one: one in ("HiFi4", "LoFi"), lambda one: {"LoFi": 1}.get(one),
        lambda one: ("HiFi4", "LoFi").index(one), lambda one: one == Undeclared("another"), lambda one: one.kind,
        lambda one: one["match"], lambda one: one.lower(), dict,
    ],
)  # fmt: skip
def test_reading_is_refused(read: Callable[[Any], object]) -> None:
    with pytest.raises(AssertionError, match=r"^notes is read, which is not declared$"):
        read(Undeclared("notes"))


def test_handing_on_is_not_reading() -> None:
    one = Undeclared("notes")
    compute = ComputeConfig("HiFi2", False, False, False, 8, "reload")
    given = dataclasses.replace(compute, math_fidelity=one)  # pyright: ignore[reportArgumentType]
    assert given.math_fidelity is one
    assert given == dataclasses.replace(given, reasons=())
    assert (*(one,), 1) == (one, 1)
    # Tuples and, before Python 3.13, dataclasses see for themselves that it is the same.
    assert one.__eq__(one)
    assert not one.__ne__(one)


def telling(text: str) -> Note:
    return Note("told", {}, text)


def test_facts_are_hidden_and_put_back() -> None:
    compute = ComputeConfig("HiFi2", False, False, False, 8, "reload")
    plan = Plan("k", "t", {"stages": 2}, notes=(telling("one"), telling("two")), compute=compute)
    other = plan.replace(
        compute=dataclasses.replace(compute, math_fidelity="LoFi"), notes=(telling("1"), telling("2")), options={}
    )
    made = hidden(plan)
    made = made.replace(notes=(*made.notes, telling("three")))
    assert with_facts(made, made, other, DEFAULTS) == other.replace(notes=tuple(map(telling, ("1", "2", "three"))))
    assert hidden(plan) == hidden(other)
    assert hidden(plan, ("notes",)) != hidden(other, ("notes",))
    assert hidden(plan, ("notes", "math_fidelity")).compute == compute
    assert hidden(plan) != hidden(plan.replace(kernel="another"))
    with pytest.raises(AssertionError, match="math_fidelity is read"):
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


def reading_an_option(program: TirProgram) -> TirProgram:
    return program.with_plan(notes=(telling(f"the policy is {program.options.policy}"),))


READS: dict[Callable[[TirProgram], TirProgram], tuple[str, ...]] = {
    looking: ("math_fidelity",), choosing: ("math_fidelity",), filtering: ("notes",), filtering_kinds: ("notes",),
    reading_options: ("options",), reading_an_option: ("policy",),
}  # fmt: skip
RAN: list[str] = []


@functools.cache
def steps(*functions: Callable[[TirProgram], TirProgram]) -> tuple[Pass, ...]:
    def step(function: Callable[[TirProgram], TirProgram]) -> Pass:
        def ran(program: TirProgram, target: Target) -> TirProgram:
            RAN.append(function.__name__)
            return function(program)

        return Pass(function.__name__, "partition", ran, reads=READS.get(function, ()))

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
        ([reading_an_option, handing_on], []),
    ],
)  # fmt: skip
def test_only_what_does_not_read_the_difference_is_taken_from_another(
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


@pytest.mark.parametrize("step", [one for one in READS if one not in (choosing,)])
def test_a_step_that_reads_what_it_does_not_declare_fails(
    step: Callable[[TirProgram], TirProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = READS[step]
    steps.cache_clear()
    monkeypatch.delitem(READS, step)
    error = lowered({}, [handing_on, step])[-1].error
    steps.cache_clear()
    assert error is not None
    assert f"{name} is read, which is not declared" in error.message


def test_steps_of_the_pipeline_name_what_there_is() -> None:
    program = KERNEL.steps[0].before
    names = {"notes", "choices", "options", *DEFAULTS.by_name}
    for step in (leaf for one in PIPELINE for leaf in one.leaves):
        assert {*step.inputs(program)} <= names
