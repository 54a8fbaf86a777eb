"""Planted faults: the verifier, the interpreter or the emulator finds each, and reports its line and a remedy.

docs/faults.md is the table of their messages; ``--update-golden`` writes it.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ttexplore as ttx
from tests.conftest import compare_golden
from tests.faults.faults import CORES, FAULTS, TEXT_FAULTS, Fault, TextFault
from ttexplore.backends.base import KernelFault, Program
from ttexplore.backends.compare import compare
from ttexplore.backends.emulator import Emulator
from ttexplore.errors import ResourceError, TTExploreError, VerifyError
from ttexplore.exploration import Exploration
from ttexplore.ir.interpreter import interpret
from ttexplore.ir.program import TirProgram
from ttexplore.passes.pipeline import PIPELINE
from ttexplore.passes.step import Pass
from ttexplore.passes.verify import Verifier
from ttexplore.session.runs import kernel_line, kernel_listings

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
WRONG = "the result is wrong"
_TESTS = Path(__file__).parents[1]
# These tests share their findings, which tests/test_diagnostics.py reads as well.
pytestmark = pytest.mark.xdist_group("faults")


@functools.cache
def sound(kernel: Callable[[], Any]) -> Exploration:
    exploration = ttx.explore(kernel(), options={"cores": CORES.get(kernel, (2, 1))})
    assert exploration.error is None, exploration.error
    return exploration


def verified(fault: Fault) -> TirProgram:
    """Lower the faulty program to the end. Raises the verifier's error."""
    exploration = sound(fault.kernel)
    verifier = Verifier(exploration.target)
    steps = [leaf for step in PIPELINE for leaf in step.leaves]
    # What is planted after a step with parts is planted after the last one.
    planted = next(step for step in (*PIPELINE, *steps) if step.letter == fault.step).leaves[-1]
    position = steps.index(planted)
    sound_steps = [leaf for step in exploration.steps for leaf in step.leaves]

    def check(step: Pass, program: TirProgram) -> None:
        verifier.contracts.after(step, program.functions)
        verifier.check(program)

    for step, applied in zip(steps[:position], sound_steps, strict=False):
        check(step, applied.after)
    program = fault.edit(sound_steps[position].after)
    check(planted, program)
    for step in steps[position + 1 :]:
        options = {name: program.plan.options[name] for name in step.options}
        trial = [not_on_trial] if step.trial_until else []
        verifier.contracts.before(step, program.functions)
        program = step.function(program, exploration.target, *trial, **options)
        check(step, program)
    return program


def not_on_trial(**options: object) -> TirProgram:
    raise AssertionError(f"no fault is lowered on trial, with {options}")


@functools.cache
def found_by(fault: Fault) -> tuple[str, TTExploreError | None]:
    """The check that finds a fault, and its error; None for wrong numbers."""
    exploration = sound(fault.kernel)
    try:
        program = verified(fault)
    except (VerifyError, ResourceError) as error:
        return "verifier", error
    arrays = exploration._inputs(None, 0)
    try:
        result = interpret(program.functions, program.plan, arrays, dict(exploration._roles), turn_limit=10_000)
    except TTExploreError as error:
        return "interpreter", error
    if not right(exploration, result.outputs):
        return "interpreter", None
    return "nobody", None


def right(exploration: Exploration, outputs: Sequence[Any]) -> bool:
    rounding = exploration._rounding(exploration._inputs(None, 0))
    return compare(outputs, exploration.reference(), exploration.plan.precisions, rounding).passed


@functools.cache
def found_in_text(fault: TextFault) -> TTExploreError | None:
    """The emulator's error for a faulty text; None if it gives wrong numbers."""
    exploration = sound(fault.kernel)
    texts = {role: exploration.code[role].text for role in ("reader", "compute", "writer")}
    assert fault.old in texts[fault.role], texts[fault.role]
    texts[fault.role] = texts[fault.role].replace(fault.old, fault.new, 1)
    try:
        run = Emulator().run(Program(texts, exploration.plan), exploration._inputs(None, 0))
    except KernelFault as error:
        return error.at(kernel_line(error, kernel_listings(exploration, texts)))
    assert not right(exploration, run.outputs), "nobody finds it"
    return None


def line(error: TTExploreError) -> str:
    """The text of an error's kernel line."""
    return linecache.getline(error.span.file, error.span.line).strip() if error.span is not None else ""


def cell(text: str) -> str:
    text = re.sub(r"\.cpp line \d+", ".cpp", text)
    return "<br>".join(text.replace("|", "\\|").splitlines())


def row(name: str, where: str, finder: str, error: TTExploreError | None) -> str:
    if error is None:
        return f"| {name} | {where} | {finder} | {WRONG} | |"
    told = cell(error.message) + (f"<br>at `{line(error)}`" if error.span is not None else "")
    return f"| {name} | {where} | {finder} | {told} | {cell(error.hint)} |"


def check_error(error: TTExploreError) -> None:
    """Each error has a hint; its line, if any, is one of the tests' kernels."""
    assert error.hint, error
    if error.span is not None:
        assert Path(error.span.file).is_relative_to(_TESTS)
        assert line(error)


@functools.cache
def row_of(index: int) -> str:
    fault = FAULTS[index]
    finder, error = found_by(fault)
    assert finder == fault.finder, f"{fault.name}: found by {finder}: {error}"
    if error is not None:
        check_error(error)
    return row(fault.name, f"IR after {fault.step}", finder, error)


@functools.cache
def text_row_of(index: int) -> str:
    fault = TEXT_FAULTS[index]
    error = found_in_text(fault)
    if error is not None:
        check_error(error)
    return row(fault.name, f"{fault.role}.cpp", "emulator", error)


@pytest.mark.every_case
@pytest.mark.parametrize("index", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_planted_in_the_program(index: int) -> None:
    assert row_of(index)


@pytest.mark.every_case
@pytest.mark.parametrize("index", range(len(TEXT_FAULTS)), ids=[fault.name for fault in TEXT_FAULTS])
def test_planted_in_the_text(index: int) -> None:
    assert text_row_of(index)


def test_the_sound_kernels_pass() -> None:
    for kernel in {fault.kernel for fault in (*FAULTS, *TEXT_FAULTS)}:
        assert sound(kernel).check()


@pytest.mark.slow
def test_the_table_of_faults(request: pytest.FixtureRequest) -> None:
    """docs/faults.md lists each fault, the check that finds it, and the message."""
    rows = [row_of(index) for index in range(len(FAULTS))]
    rows += [text_row_of(index) for index in range(len(TEXT_FAULTS))]
    counts = {finder: sum(f"| {finder} |" in one for one in rows) for finder in ("verifier", "interpreter", "emulator")}
    found = ", ".join(f"{count} by the {finder}" for finder, count in counts.items())
    head = [
        "# Planted faults",
        "",
        f"The tests plant {len(rows)} faults, each into a correct program. Every fault is found: {found}.",
        "The verifier checks every step without running it, the interpreter runs the IR, the emulator runs the emitted",
        "C++; they check each fault in this order. Wrong results are detected by comparison with the reference.",
        "This table is generated by `tests/faults` (`pytest --update-golden`).",
        "",
        "| fault | planted in | found by | message | remedy |",
        "|---|---|---|---|---|",
    ]
    compare_golden(TABLE, "\n".join([*head, *rows]) + "\n", update=bool(request.config.getoption("--update-golden")))
