"""The schedule of a straight line, run on an abstract DST: every operation finds its values, whatever the line."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttexplore.passes.insert_dst_management.schedule import (
    Fetch,
    Schedule,
    SlotOperation,
    TileOperation,
    ValueSource,
    schedule,
)


@dataclass(frozen=True)
class Program:
    operations: tuple[TileOperation, ...]
    sources: dict[int, ValueSource]
    outputs: frozenset[int]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Random lines of up to 40 operations over values that are used several times, in place, packed and kept."""
    count = draw(st.integers(1, 40))
    sources = {n: ValueSource(draw(st.integers(1, 60)), draw(st.booleans())) for n in range(draw(st.integers(1, 4)))}
    alive = list(sources)
    added = {n for n in sources if sources[n].fresh}
    operations: list[TileOperation] = []
    number = len(sources)
    for _ in range(count):
        kind = draw(st.sampled_from(["binary", "binary", "in_place", "fresh", "ternary", "apart", "pack"]))
        if kind == "pack":
            usable = [value for value in alive if value not in added]
            if usable:
                operations.append(TileOperation((draw(st.sampled_from(usable)),), packs=True))
            continue
        if kind == "in_place":
            old = draw(st.sampled_from(alive))
            alive.remove(old)
            operations.append(TileOperation((old,), number, in_place=True, cycles=64))
        elif kind == "fresh":
            operations.append(TileOperation((), number, fresh=True, cycles=32))
        else:
            usable = [value for value in alive if value not in added]
            reads = tuple(draw(st.sampled_from(usable)) for _ in range(3 if kind == "ternary" else 2)) if usable else ()
            operations.append(TileOperation(reads, number, overlay=kind != "apart", cycles=64))
        alive.append(number)
        number += 1
    made = [value for value in alive if value not in sources]
    outputs = draw(st.sets(st.sampled_from(made), max_size=3)) if made else set[int]()
    return Program(tuple(operations), sources, frozenset(outputs))


def run(program: Program, found: Schedule, slots: int) -> None:
    """Run the sections; values are their own numbers. Asserts that everything is where the schedule says."""
    memory: dict[int, int] = {value: value for value in program.sources}
    done: list[int] = []
    for section in found.sections:
        dst: dict[int, int] = {}
        for action in section.actions:
            match action:
                case Fetch():
                    assert action.value in memory
                    assert 0 <= action.slot < slots
                    if program.sources.get(action.value, ValueSource()).fresh:
                        assert action.slot not in dst
                    dst[action.slot] = action.value
                case SlotOperation():
                    operation = program.operations[action.operation]
                    assert [dst[slot] for slot in action.reads] == list(operation.reads)
                    if operation.writes is not None:
                        assert action.writes is not None
                        assert 0 <= action.writes < slots
                        assert not operation.fresh or action.writes not in dst
                        assert not operation.in_place or action.writes == action.reads[0]
                        assert operation.overlay or operation.in_place or action.writes not in action.reads
                        dst[action.writes] = operation.writes
                    done.append(action.operation)
        for position, slot in section.packs:
            assert dst[slot] == program.operations[position].reads[0]
            done.append(position)
        for value, slot in section.stores:
            assert dst[slot] == value
            memory[value] = value
    assert sorted(done) == list(range(len(program.operations)))
    math = [position for position in done if not program.operations[position].packs]
    assert math == sorted(math)
    assert program.outputs <= set(memory)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs(), st.integers(1, 8), st.integers(1, 4))
def test_every_operation_finds_its_values(program: Program, slots: int, tiles: int) -> None:
    found = schedule(program.operations, program.sources, program.outputs, slots, tiles)
    if found is None:
        assert slots < 4
        return
    run(program, found, slots)


def test_a_chain_needs_one_section_and_two_slots() -> None:
    operations = [TileOperation((0, 1), 2)] + [TileOperation((n, 1), n + 1) for n in range(2, 40)]
    found = schedule(operations, {0: ValueSource(), 1: ValueSource()}, frozenset({40}), 2, 1)
    assert found is not None
    assert len(found.sections) == 1
    assert found.spilled == ()


def test_a_balanced_tree_spills_what_it_must() -> None:
    """16 sums of pairs, all alive at once, in 4 slots: some wait in buffers, none twice."""
    operations = [TileOperation((), n, fresh=True, cycles=64) for n in range(16)]
    left = list(range(16))
    number = 16
    while len(left) > 1:
        pairs = list(zip(left[::2], left[1::2], strict=True))
        operations += [TileOperation(pair, number + i, cycles=64) for i, pair in enumerate(pairs)]
        left = [number + i for i in range(len(pairs))]
        number += len(pairs)
    found = schedule(operations, {}, frozenset(left), 4, 1)
    assert found is not None
    run(Program(tuple(operations), {}, frozenset(left)), found, 4)
    assert len(found.spilled) == len(set(found.spilled))
    assert len(found.sections) > 4


def test_what_can_be_fetched_is_never_spilled() -> None:
    """Twenty blocks added up, each from a buffer: one section, each fetched right before its use."""
    sources = {n: ValueSource() for n in range(20)}
    operations = [TileOperation((0, 1), 20)] + [TileOperation((18 + n, n), 19 + n) for n in range(2, 20)]
    found = schedule(operations, sources, frozenset({38}), 2, 1)
    assert found is not None
    assert len(found.sections) == 1
    assert [type(action).__name__ for action in found.sections[0].actions[:4]] == [
        "Fetch",
        "Fetch",
        "SlotOperation",
        "Fetch",
    ]


def test_a_pack_before_a_change_ends_the_section() -> None:
    operations = [
        TileOperation((), 0, cycles=64),
        TileOperation((0,), packs=True),
        TileOperation((0,), 1, in_place=True),
    ]
    found = schedule(operations, {}, frozenset({1}), 8, 1)
    assert found is not None
    assert len(found.sections) == 2
    assert found.spilled == (0,)


@pytest.mark.parametrize("slots", [1, 2])
def test_one_operation_that_does_not_fit(slots: int) -> None:
    operations = [TileOperation((0, 1, 2), 3)]
    assert (
        schedule(operations, {0: ValueSource(), 1: ValueSource(), 2: ValueSource()}, frozenset({3}), slots, 1) is None
    )
