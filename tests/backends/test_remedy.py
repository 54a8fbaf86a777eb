"""Deadlocks of edited kernels: who waits for whom, and the change that resolves it, found by running it."""

from __future__ import annotations

import re

import pytest

from tests.corpus import gemm
from ttexplore import explore
from ttexplore.backends.base import AddedLine, Deadlock, DeeperBuffer
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.record import lines_of


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    # One kernel loads both inputs: if the writer loads one, it goes on where the reader is stuck.
    return explore(gemm(64, 64, 128, 64, 64, 32, 2), options={"loaded_by": "reader"})


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
    found = re.fullmatch(r"the program ends when (\w+)\.cpp gets `(.*)` before line (\d+)", deadlock.hint)
    assert found, deadlock.hint
    fix = deadlock.fix
    assert isinstance(fix, AddedLine)
    assert found.groups() == (role, dropped, str(fix.line)) == (fix.kernel, fix.text.strip(), str(fix.line))
    code = fix.apply({role: fix.ran})
    assert code == fix.apply() == fix.apply({})
    assert len(lines_of(code[role])) == len(exploration.code[role].listing.lines)
    assert exploration.run(code=code).passed


def test_a_fix_keeps_other_changes_and_refuses_a_text_that_has_moved(exploration: Exploration) -> None:
    deadlock, _ = broken(exploration, "compute", ".pop_front(")
    fix = deadlock.fix
    assert isinstance(fix, AddedLine)
    lines = lines_of(fix.ran)
    longer = "\n".join([f"{lines[0]} // a comment", *lines[1:]])
    fixed = fix.apply({"compute": longer, "reader": "mine"})
    assert lines_of(fixed["compute"]) == [f"{lines[0]} // a comment", *lines_of(fix.apply()["compute"])[1:]]
    assert fixed["reader"] == "mine"
    for other in (f"\n{fix.ran}", "", lines[0]):
        with pytest.raises(UsageError, match="the compute kernel is not the one that the fix is for") as caught:
            fix.apply({"compute": other})
        assert "run it as it is now" in caught.value.hint


def test_each_stuck_kernel_has_its_line(exploration: Exploration) -> None:
    deadlock, _ = broken(exploration, "compute", ".pop_front(")
    fix = deadlock.fix
    assert isinstance(fix, AddedLine)
    texts = {role: exploration.code[role].text for role in ("reader", "compute", "writer")} | {"compute": fix.ran}
    assert {place.kernel for place in deadlock.places} == set(texts)
    for place in deadlock.places:
        assert place.stuck
        line = lines_of(texts[place.kernel])[place.cpp_line - 1]
        call = place.what.partition(" on ")[0]
        assert line.strip().endswith(f".{call};"), (line, place.what)


def test_a_text_that_is_indented_otherwise_has_no_fix(exploration: Exploration) -> None:
    """Its blocks do not end as those do that are emitted: no place is found for the missing call."""
    text = exploration.code["compute"].text
    (pop,) = [line for line in text.splitlines() if "a_buffer.pop_front(" in line]
    text = re.sub(r"^ *}", "\t}", text.replace(f"{pop}\n", ""), flags=re.MULTILINE)
    with pytest.raises(Deadlock) as caught:
        exploration.run(code={"compute": text})
    assert caught.value.fix is None
    assert caught.value.hint.startswith("to continue: ")


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
    fix = caught.value.fix
    assert isinstance(fix, DeeperBuffer)
    assert fix == DeeperBuffer("a", 4, 8, 4, 8192)
    # And so it does.
    deeper = exploration.fork(at="A2", cb_depth={fix.buffer: fix.blocks})
    assert deeper.run(code={"reader": text}).passed


def test_the_cycle_is_drawn_thick(exploration: Exploration) -> None:
    deadlock, _ = broken(exploration, "compute", ".pop_front(")
    edges = re.findall(r"<path d=\"M404[^>]*>", deadlock.svg)
    assert len(edges) == len(deadlock.waits) == 3
    assert sum("stroke-width:2.5" in edge for edge in edges) == 2
    for wait in deadlock.waits:
        assert f"{wait.kernel}.cpp line {wait.cpp_line}" in deadlock.svg
