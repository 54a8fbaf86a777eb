"""Parts of steps: each can be opened, says what it relies on and establishes, and explains what it changes."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from tvm import tirx

import ttexplore as ttx
import ttexplore.language as T
from tests.passes.test_parts_golden import KERNELS
from tests.steps import PARTS
from ttexplore.errors import Unsupported, UsageError, VerifyError
from ttexplore.exploration import Exploration
from ttexplore.ir.dataflow import is_parallel
from ttexplore.ir.program import TirProgram
from ttexplore.ir.rewrite import Context, Firings, StatementRule, rewrite
from ttexplore.passes.pipeline import PIPELINE, lower
from ttexplore.passes.step import Pass
from ttexplore.passes.verify.predicates import Contracts

GROUPS = "notebooks/gallery/warp_groups.py::group_that_loads"


@pytest.fixture(scope="module")
def groups() -> Exploration:
    return ttx.explore(GROUPS)


def test_a_part_is_a_step(groups: Exploration) -> None:
    part = groups.steps["A0.4"]
    assert part is not None
    assert part.name == "order_thread_groups"
    assert groups.steps["order_thread_groups"].record == part.record
    assert groups.steps.A0.parts[3].record == part.record
    before, after = part.record.before.lines, part.record.after.lines
    assert [len(before), len(after)] == [28, 17]
    assert [len(groups.steps["A0"].record.before.lines), len(groups.steps["A0"].record.after.lines)] == [28, 17]
    # The step is the sum of its parts.
    assert part.record.firings
    assert groups.steps["A0"].record.firings == part.record.firings
    assert sum(one.seconds for one in groups.steps["A0"].parts) == pytest.approx(groups.steps["A0"].seconds)
    with pytest.raises(UsageError, match=r"no step 'A0\.40'"):
        groups.steps["A0.40"]


def test_parts_hand_on_what_the_one_before_left(groups: Exploration) -> None:
    for step in groups.steps:
        for one, other in itertools.pairwise(step.leaves):
            assert one.after.functions is other.before.functions
            assert one.after.plan == other.before.plan
        assert step.leaves[0].before.functions is step.before.functions
        assert step.leaves[-1].after.functions is step.after.functions
        assert step.leaves[-1].plan == step.plan


def test_parts_are_checked(groups: Exploration) -> None:
    check = groups.check()
    assert len(check.results) == len(PIPELINE)
    assert [one.letter for one in check.results[0].parts] == PARTS["A0"]
    # The first one, and what changes the program.
    assert [one.letter for one in check.results[0].parts if one.executed] == ["A0.1", "A0.4"]


def test_a_part_that_does_something_else_is_found() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                if i < 16:
                    a[i, j] = a[i, j] * 2
            T.copy(a, B)

    sound = ttx.explore(kernel)
    assert sound.check().first_bad is None
    # The loop is there no more, as if a rewriting had lost it.
    lowered = sound._lowered
    steps = lowered.steps
    applied = {part.letter: part.applied for part in steps[0].parts}
    other = _without_loops(applied["A0.7"].after)
    parts = tuple(
        dataclasses.replace(one, after=other) if one.step.letter == "A0.7"
        else dataclasses.replace(one, before=other, after=other) if int(one.step.letter[3:]) > 7 else one
        for one in steps[0].applied.parts
    )  # fmt: skip
    first = dataclasses.replace(steps[0], applied=dataclasses.replace(steps[0].applied, parts=parts))
    broken = dataclasses.replace(lowered, steps=(first, *steps[1:]))
    assert dataclasses.replace(sound, _lowerings=(broken,)).check().first_bad == "flatten_parallel_nests"


def _without_loops(program: TirProgram) -> TirProgram:
    def lose(context: Context, statement: tirx.Stmt) -> list[tirx.Stmt] | None:
        return [] if is_parallel(statement) else None

    firings = Firings()
    rule = StatementRule("lost", "Loses loops.", lose)
    return program.with_kernel(rewrite([rule], Context(program.kernel, firings)), firings)


def swapped(first: str, second: str) -> tuple[Pass, ...]:
    """The pipeline with two parts of a step in each other's places."""
    parts = {one.letter: one for step in PIPELINE for one in step.parts}
    other = {first: parts[second], second: parts[first]}
    return tuple(
        dataclasses.replace(step, parts=tuple(other.get(one.letter, one) for one in step.parts)) for step in PIPELINE
    )


def in_nest() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            for i, j in T.Parallel(32, 32):
                if i >= j:
                    B[i, j] = A[i, j]
                else:
                    B[i, j] = 0.0

    return kernel


def totals() -> Any:
    return KERNELS["A2.3"]


def unused() -> Any:
    return KERNELS["A2.4"]


def double() -> Any:
    return KERNELS["D5.1"]


def decided() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), L: T.Tensor((1,), "int32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.clear(a)
            if L[0] > 3:
                T.copy(A, a)
            T.copy(a, B)

    return kernel


@pytest.mark.parametrize(
    ("kernel", "first", "second", "sentence"),
    [
        (in_nest, "A0.7", "A0.12", "each T.Parallel holds stores and names alone"),
        (decided, "A0.11", "A0.16", "each element of a tensor that decides something has a name"),
        (totals, "A2.3", "A2.5", "each reduction has a buffer for its result alone"),
        (unused, "A2.4", "A2.5", "each value on the chip is read"),
        (double, "D5.1", "D5.2", "all values in DST share its tiles"),
    ],
)
def test_dependent_parts_cannot_be_swapped(kernel: Callable[[], Any], first: str, second: str, sentence: str) -> None:
    sound = ttx.explore(kernel())
    assert sound.error is None, sound.error
    applied = list(lower(sound.steps[0].before, sound.target, {}, swapped(first, second)))
    error = applied[-1].error
    assert isinstance(error, VerifyError)
    assert error.code == "TTX-V061"
    assert sentence in error.message
    assert error.span is not None


def copied_in_a_branch(otherwise: bool) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for i in T.Parallel(32):
                if i > 3:
                    T.copy(A, a)
            T.copy(a, B)

    @T.prim_func
    def second(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = a[i, j] + 1
                if i > 3:
                    a[i, j] = 2
                else:
                    T.clear(a)
            T.copy(a, B)

    return second if otherwise else kernel


@pytest.mark.parametrize("otherwise", [False, True])
def test_a_refusal_names_the_part_that_had_no_rule(otherwise: bool) -> None:
    error = ttx.explore(copied_in_a_branch(otherwise)).error
    assert error is not None
    assert error.span is not None
    *_, why = error.hint.splitlines()
    word = "T.fill" if otherwise else "T.copy"
    assert why == (
        f"why: A0.7 flatten_parallel_nests has no rule for the `{word}` in line {error.span.line}, "
        "so it is not true that each T.Parallel holds stores and names alone, no branch and no loop"
    )


def test_a_refusal_elsewhere_does_not() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "int64"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 32), "float32")
            c = T.alloc_shared((32, 32), "int64")
            T.copy(C, c)
            for _ in T.Parallel(32):
                T.copy(A, a)
            T.copy(a, B)

    applied = ttx.explore(kernel).steps["A0.7"].applied
    contracts = Contracts()
    contracts.after(applied.step, applied.after.functions)
    assert len(contracts.missing) == 1
    copies = [one.origins[0].span for one in applied.before.source.lines if "T.copy" in one.text]
    assert [len([*contracts.left_by(Unsupported("L001", "refused", span=span))]) for span in copies] == [0, 1, 0]


def test_what_a_later_part_makes_true_is_missing_no_more() -> None:
    """A step that should have made each loop counted leaves one; a later step may still count it."""
    exploration = ttx.explore(KERNELS["A0.2"])
    before, after = (exploration.steps["A0.2"].applied, exploration.steps["A0.3"].applied)
    contracts = Contracts()
    idle = dataclasses.replace(before.step, function=before.step.function)
    contracts.after(idle, before.before.functions)
    (predicate,) = idle.establishes
    assert [*contracts.missing] == [predicate]
    contracts.after(after.step, before.after.functions)
    assert contracts.missing == {}
    assert predicate in contracts.holding
    with pytest.raises(VerifyError, match=re.escape(predicate.sentence)):
        contracts.after(after.step, before.before.functions)


def test_what_is_required_is_established_before() -> None:
    """The order of the pipeline explains itself: each predicate that a step requires, one before it establishes."""
    holding: set[object] = set()
    for step in PIPELINE:
        for leaf in step.leaves:
            assert holding.issuperset(leaf.requires), leaf.letter
            assert holding.issuperset(leaf.ends), leaf.letter
            holding = (holding - {*leaf.ends}) | {*leaf.establishes}
    assert sum(len(leaf.establishes) for step in PIPELINE for leaf in step.leaves) >= 10
