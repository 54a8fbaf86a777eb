"""Kernels that wait for each other: on one core, and over cores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import ttexplore as ttx
from tests.corpus import elementwise, gemm
from ttexplore.errors import VerifyError
from ttexplore.ir.interpreter import interpret, scheduling
from ttexplore.ir.interpreter.machine import Core
from ttexplore.ir.interpreter.scheduling import Kernel
from ttexplore.ir.interpreter.waits import Remedy
from ttexplore.ir.kernel import SourceLocation
from ttexplore.ir.program import TirProgram
from ttexplore.passes.launches.tensor_roles import tensor_roles
from ttexplore.record import Span


@dataclass
class Flag:
    """What one core sets, and another waits for."""

    is_set: bool = False


@dataclass(frozen=True)
class FlagWait:
    flag: Flag
    place: SourceLocation | None = None
    crosses_cores: bool = True

    def is_over(self) -> bool:
        return self.flag.is_set

    def remedy(self, running: Collection[str]) -> Remedy | None:
        return Remedy("set the flag", True)

    def __str__(self) -> str:
        return "for the flag"


@dataclass
class FakeCore:
    """A core whose kernels write down what happens."""

    name: str
    log: list[str]
    span: Span | None = None
    role: str = ""
    ended_roles: list[str] = field(default_factory=list[str])

    def turn_to(self, role: str) -> None:
        self.role = role

    def kernel_ended(self) -> None:
        self.ended_roles.append(self.role)

    def ended(self) -> None:
        self.log.append(f"{self.name} ended")


def waiting(flag: Flag, core: FakeCore, then: Flag | None = None) -> Kernel:
    core.log.append(f"{core.name} began")
    while not flag.is_set:
        yield FlagWait(flag)
    core.log.append(f"{core.name} went on")
    if then is not None:
        then.is_set = True


def setting(flag: Flag, core: FakeCore) -> Kernel:
    core.log.append(f"{core.name} set the flag")
    flag.is_set = True
    return
    yield FlagWait(flag)


def test_a_core_waits_for_another() -> None:
    flag, log = Flag(), list[str]()
    cores = [FakeCore(name, log) for name in ("first", "second", "third")]
    kernels = (waiting(flag, cores[0]), setting(flag, cores[1]), setting(Flag(), cores[2]))
    scheduling.run((core, {"reader": kernel}) for core, kernel in zip(cores, kernels, strict=True))
    # The first goes on before a third one starts.
    assert log == [
        "first began", "second set the flag", "second ended", "first went on", "first ended", "third set the flag",
        "third ended",
    ]  # fmt: skip


def test_a_deadlock_over_cores_names_them() -> None:
    flags, log = (Flag(), Flag()), list[str]()
    cores = [FakeCore(f"core ({x}, 0)", log) for x in range(3)]
    kernels = (waiting(flags[0], cores[0], flags[1]), waiting(flags[1], cores[1], flags[0]), setting(Flag(), cores[2]))
    with pytest.raises(VerifyError) as caught:
        scheduling.run((core, {"reader": kernel}) for core, kernel in zip(cores, kernels, strict=True))
    assert caught.value.code == "TTX-V009"
    assert caught.value.message.splitlines() == [
        "deadlock on 2 cores, which wait for each other:",
        "  the reader of core (0, 0) waits for the flag (line ?)",
        "  the reader of core (1, 0) waits for the flag (line ?)",
    ]
    assert caught.value.hint == "set the flag"
    assert "core (2, 0) ended" in log


def test_a_deadlock_over_many_cores_is_short() -> None:
    flag, log = Flag(), list[str]()
    cores = [FakeCore(f"core ({x}, 0)", log) for x in range(110)]
    with pytest.raises(VerifyError, match=r"110 cores(.|\n)*and 98 more kernels\n"):
        scheduling.run((core, {"reader": waiting(flag, core)}) for core in cores)


ADD = elementwise(lambda a, b: a + b, "float32")
Changed = Callable[[Core, str, Kernel], Kernel]


def added(monkeypatch: pytest.MonkeyPatch, change: Changed) -> tuple[Any, Any]:
    """What the kernel gives on two cores, with changed kernels, and what it should."""
    exploration = ttx.explore(ADD)
    program: TirProgram = exploration.steps["E1"].after
    assert program.plan.partition is not None
    assert [(core.x, core.y) for core in program.plan.partition.cores] == [(0, 0), (1, 0)]
    usual = scheduling.run

    def run(cores: Iterable[tuple[Core, dict[str, Kernel]]], turn_limit: int | None) -> None:
        usual(((core, {r: change(core, r, k) for r, k in kernels.items()}) for core, kernels in cores), turn_limit)

    monkeypatch.setattr(scheduling, "run", run)
    inputs = exploration.inputs()
    made = interpret(program.functions, program.plan, inputs, dict(tensor_roles(exploration.kernel.function)))
    return made.outputs[0], inputs[0] + inputs[1]


def after(flag: Flag, core: Core, kernel: Kernel) -> Generator[Any, None, None]:
    while not flag.is_set:
        yield FlagWait(flag, core.where.place)
    yield from kernel


def before(kernel: Kernel, flag: Flag) -> Generator[Any, None, None]:
    yield from kernel
    flag.is_set = True


def test_a_kernel_goes_on_when_another_core_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of the first core waits for the writer of the second, while its other kernels wait for tiles."""
    flag, order = Flag(), list[str]()

    def told(core: Core, role: str, kernel: Kernel) -> Kernel:
        yield from kernel
        order.append(f"{role} of {core.name}")

    def change(core: Core, role: str, kernel: Kernel) -> Kernel:
        kernel = told(core, role, kernel)
        match core.name, role:
            case "core (0, 0)", "reader":
                return after(flag, core, kernel)
            case "core (1, 0)", "writer":
                return before(kernel, flag)
            case _:
                return kernel

    made, expected = added(monkeypatch, change)
    np.testing.assert_array_equal(made, expected)
    assert order[:3] == ["reader of core (1, 0)", "compute of core (1, 0)", "writer of core (1, 0)"]
    assert len(order) == 6


def test_two_cores_that_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"core (0, 0)": Flag(), "core (1, 0)": Flag()}

    def change(core: Core, role: str, kernel: Kernel) -> Kernel:
        return after(flags[core.name], core, kernel) if role == "writer" else kernel

    with pytest.raises(VerifyError) as caught:
        added(monkeypatch, change)
    lines = caught.value.message.splitlines()
    assert lines[0] == "deadlock on 2 cores, which wait for each other:"
    for core in flags:
        assert any(f"the writer of {core} waits for the flag" in line for line in lines)


def test_turn_limit() -> None:
    exploration = ttx.explore(gemm(128, 128, 128, 64, 64, 32), options={"cores": (1, 1)})
    program: TirProgram = exploration.steps["E1"].after
    with pytest.raises(VerifyError, match="did not end within 1 turns"):
        interpret(
            program.functions, program.plan, exploration.inputs(), dict(tensor_roles(exploration.kernel.function)),
            turn_limit=1,
        )  # fmt: skip


def test_fewer_pages_still_run() -> None:
    """Depth is speed, not meaning: with one stage each block waits for the one before."""
    exploration = ttx.explore(gemm(stages=1), options={"stages": 1})
    assert exploration.check()
    assert exploration.plan.buffer("a").stages == 1
