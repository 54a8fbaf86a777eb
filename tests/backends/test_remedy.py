"""Deadlocks of edited kernels: who waits for whom, and the change that resolves it, found by running it."""

from __future__ import annotations

import re

import pytest

from tests.corpus import gemm
from ttexplore import explore
from ttexplore.backends.base import Deadlock
from ttexplore.exploration import Exploration


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return explore(gemm(64, 64, 128, 64, 64, 32, 2))


def broken(exploration: Exploration, role: str, call: str) -> tuple[Deadlock, str]:
    """The deadlock without the first line of a kernel that has a call, and that line."""
    lines = exploration.code[role].text.splitlines()
    position = next(i for i, line in enumerate(lines) if call in line)
    dropped = lines.pop(position).strip()
    with pytest.raises(Deadlock) as caught:
        exploration.run(code={role: "\n".join(lines) + "\n"})
    return caught.value, dropped


@pytest.mark.parametrize(
    ("role", "call"), [("compute", ".pop_front("), ("reader", ".push_back("), ("compute", ".push_back(")]
)
def test_the_missing_call_is_found_and_mends_the_program(exploration: Exploration, role: str, call: str) -> None:
    deadlock, dropped = broken(exploration, role, call)
    found = re.fullmatch(r"the program ends when (\w+)\.cpp gets `(.*)` before line \d+", deadlock.hint)
    assert found, deadlock.hint
    assert found.groups() == (role, dropped)


def test_a_buffer_that_is_too_small_is_deepened_by_the_fewest_bytes(exploration: Exploration) -> None:
    """The reader does all of A before B, while compute takes both in turn: A must fit as a whole, in four blocks."""
    lines = exploration.code["reader"].text.splitlines()
    first = next(i for i, line in enumerate(lines) if "for (uint32_t kb = 0; kb < 4;" in line)
    loop = lines[first : first + 15]
    assert "a_buffer.reserve_back(2);" in loop[1]
    assert "b_buffer.push_back(2);" in loop[13]
    a_only = [loop[i] for i in (0, 1, 3, 4, 5, 6, 11, 12, 14)]
    b_only = [loop[i] for i in (0, 2, 7, 8, 9, 10, 11, 13, 14)]
    text = "\n".join([*lines[:first], *a_only, *b_only, *lines[first + 15 :]]) + "\n"
    with pytest.raises(Deadlock) as caught:
        exploration.run(code={"reader": text})
    assert caught.value.hint == "the program ends when a holds 8 tiles instead of 4 (8,192 B more L1)"
    # And so it does.
    deeper = exploration.fork(at="A2", cb_depth={"a": 4})
    assert deeper.run(code={"reader": text}).passed


def test_the_cycle_is_drawn_thick(exploration: Exploration) -> None:
    deadlock, _ = broken(exploration, "compute", ".pop_front(")
    edges = re.findall(r"<path d=\"M404[^>]*>", deadlock.svg)
    assert len(edges) == len(deadlock.waits) == 3
    assert sum("stroke-width:2.5" in edge for edge in edges) == 2
    for wait in deadlock.waits:
        assert f"{wait.kernel}.cpp line {wait.cpp_line}" in deadlock.svg
