"""The timeline of a core is what the emulator's program must have done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.faults.kernels import difference, product, shared_factor
from ttexplore import explore
from ttexplore.errors import UsageError
from ttexplore.exploration import Exploration
from ttexplore.session.runs import kernel_listings
from ttexplore.views.figures import timeline as module
from ttexplore.views.figures.timeline import Timeline


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    return explore(product(), options={"cores": (2, 1)})


@pytest.fixture(scope="module")
def recorded(exploration: Exploration) -> Timeline:
    return exploration.timeline()


def without(exploration: Exploration, role: str, call: str) -> dict[str, str]:
    """The text of a kernel without the first line that has a call."""
    lines = exploration.code[role].text.splitlines()
    del lines[next(i for i, line in enumerate(lines) if call in line)]
    return {role: "\n".join(lines) + "\n"}


def test_buffers_fill_and_empty_within_their_capacity(exploration: Exploration, recorded: Timeline) -> None:
    assert recorded.cut == 0
    assert set(recorded.buffers.values()) == {one.name for one in exploration.plan.buffers}
    for one in exploration.plan.buffers:
        occupancy, reserved = recorded.occupancy(one.name), recorded.reserved(one.name)
        assert occupancy.min() >= 0
        assert reserved.min() >= 0
        assert 0 < (occupancy + reserved).max() <= one.pages
        assert occupancy[-1] == reserved[-1] == 0
    # One work item of each core: three blocks of A, 3 x 1 tiles each, in a buffer of two blocks.
    pushed = recorded.records["amount"][recorded._of("push_back", recorded._number("a"))]
    assert pushed.sum() == 9


def test_events_are_in_order_and_each_kernel_ends_once(recorded: Timeline) -> None:
    times = recorded.records["time"].astype(int)
    assert (np.diff(times) >= 0).all()
    for role in range(3):
        own = recorded.records[recorded.records["kernel"] == role]
        assert (np.diff(own["time"].astype(int)) > 0).all()
        assert recorded.operations[own["operation"][-1]] == "finish"


def test_waits_end_with_what_the_other_kernel_did(recorded: Timeline) -> None:
    assert {wait.kernel for wait in recorded.waits} == {"reader", "compute", "writer"}
    partners = {"reader": {"compute"}, "compute": {"reader", "writer"}, "writer": {"compute"}}
    for wait in recorded.waits:
        assert wait.end > wait.start
        assert not wait.stuck
        assert wait.other in partners[wait.kernel] | {"compute"}
        given = "push_back" if wait.operation == "wait_front" else "pop_front"
        own = recorded._of(given, recorded._number(wait.buffer))
        assert wait.end in recorded.records["time"][own]
    assert 0.0 < recorded.waiting_share("writer") < 1.0


def test_lines_are_those_of_the_emitted_text_and_know_the_kernel(exploration: Exploration, recorded: Timeline) -> None:
    for (kernel, number), (text, own) in recorded.lines.items():
        line = exploration.code[kernel].lines[number - 1]
        assert text == line.text.strip()
        assert own == (line.origins[0].span.line if line.origins else 0)
    assert any(own for _, own in recorded.lines.values())


def test_the_text_tells_the_most_of_each_buffer_and_who_waits(recorded: Timeline) -> None:
    lines = str(recorded).splitlines()
    assert lines[0].startswith(f"core (0, 0): {len(recorded.records)} events in ")
    a = next(line for line in lines if line.split()[2:3] == ["a"])
    assert a.endswith("6 of 6 pages at most, 9 pushed")
    assert any(line.startswith("  writer ") and "tiles of" in line and "from compute" in line for line in lines)


def test_a_deadlock_ends_the_record_and_is_told(exploration: Exploration) -> None:
    stuck = exploration.timeline(code=without(exploration, "compute", "a_buffer.pop_front"))
    assert stuck.deadlock.startswith("deadlock: no kernel can proceed.")
    assert str(stuck).endswith(stuck.deadlock)
    last = {wait.kernel: wait for wait in stuck.waits if wait.stuck}
    assert last["reader"].operation == "reserve_back"
    assert (last["reader"].buffer, last["reader"].other) == ("a", "compute")
    assert stuck.recording.data["deadlock"] == stuck.deadlock.splitlines()
    assert stuck.occupancy("a")[-1] == 6
    # One moment after the last event all of them are stuck, also the kernel that did the last event.
    assert {wait.end for wait in last.values()} == {stuck.end + 2}
    assert all(wait.start <= stuck.end + 1 for wait in last.values())


def test_a_long_record_is_cut_and_says_so(recorded: Timeline) -> None:
    whole = recorded.recording[1, 0]
    short = module.timeline(whole.records, (1, 0), recorded.recording, largest_count=50)
    assert len(short.records) == 50
    assert short.cut == len(whole.records) - 50
    assert f"the last {short.cut} are left out" in str(short)


@pytest.mark.parametrize(
    ("act", "message", "hint"),
    [
        (lambda ex: ex.timeline((7, 7)), "core (7, 7) does no work", "(0, 0) to (1, 0) do"),
        (lambda ex: ex.timeline().occupancy("q"), "there is no circular buffer 'q'", "use one of a, b, "),
        (lambda ex: ex.run(code={"host": ""}), "there is no kernel 'host'", "use one of reader, compute, writer"),
        (
            lambda ex: ex.run(code={"reader": ""}, backend="interpreter"),
            "the backend interpreter does not run C++ texts", "choose backend='emulator'",
        ),
    ],
)  # fmt: skip
def test_wrong_use(exploration: Exploration, act: Any, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        act(exploration)
    assert caught.value.message == message
    assert hint in caught.value.hint


def test_edited_texts_run_and_are_compared() -> None:
    exploration = explore(difference(), options={"cores": (2, 1)})
    text = exploration.code["compute"].text
    assert exploration.run(code={"compute": f"// {'mine'}\n{text}"}).passed
    swapped = text.replace("sub_tiles(cb_a, cb_b", "sub_tiles(cb_b, cb_a").replace(
        "sub_init(cb_a, cb_b", "sub_init(cb_b, cb_a"
    )
    assert swapped != text
    assert not exploration.run(code={"compute": swapped}).passed


def test_lines_that_stay_keep_their_origins_in_an_edited_text(exploration: Exploration) -> None:
    listing = exploration.code["reader"].listing
    lines = listing.text.splitlines()
    edited = kernel_listings(exploration, {"reader": "\n".join(["// new", *lines[:-3], "    // end", *lines[-3:]])})[
        "reader"
    ]
    changed = kernel_listings(exploration, {"reader": listing.text.replace("push_back", "push_back /**/")})["reader"]
    for before, after in zip(listing.lines, changed.lines, strict=True):
        if "push_back" in before.text:
            assert [origin.span for origin in before.origins] == [origin.span for origin in after.origins]
            assert {origin.kind for origin in after.origins} == {"inferred"}
    assert [line.origins for line in edited.lines] == [
        (), *[line.origins for line in listing.lines[:-3]], (), *[line.origins for line in listing.lines[-3:]]
    ]  # fmt: skip


def test_waits_for_other_cores_are_not_counted() -> None:
    told = "waits for a block from another core take none, and are not counted"
    for multicast, named in (("all", True), ("off", False)):
        options = {"cores": (2, 1), "multicast": multicast}
        timeline = explore(shared_factor(), options=options).timeline((1, 0))
        assert [told in text for text in (str(timeline), str(timeline.recording), timeline.recording.data["unit"])] == [
            named
        ] * 3
