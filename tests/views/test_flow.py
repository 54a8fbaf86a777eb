"""The graph of what happens: what is read of programs, and that the drawing can be read."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.corpus import copy_block
from ttexplore import Exploration, explore
from ttexplore.record import Line, Listing
from ttexplore.views.flow.drawing import flows_data
from ttexplore.views.flow.graph import FlowGraph, operation_graph, statement_graph
from ttexplore.views.flow.layout import PlacedGraph, laid_out
from ttexplore.views.flow.statements import functions_of

_GALLERY = "notebooks/gallery/"
_ATTENTION = f"{_GALLERY}attention.py::causal_attention"
_DRAWN = (
    _ATTENTION, f"{_GALLERY}gemm.py::gemm", f"{_GALLERY}softmax.py::online_softmax", f"{_GALLERY}norms.py::rms_norm",
    f"{_GALLERY}sparse_attention.py::block_sparse_attention", f"{_GALLERY}linear_attention.py::retention",
)  # fmt: skip


def graphs(exploration: Exploration) -> tuple[FlowGraph, FlowGraph]:
    steps = {step.letter: step for step in exploration.trace.steps}
    return statement_graph(steps["A2"].after), operation_graph(steps["C3"].after, exploration.plan.buffers)


@pytest.fixture(scope="module")
def attention() -> Exploration:
    return explore(_ATTENTION)


def lines(graph: FlowGraph) -> set[tuple[object, object, str, bool]]:
    """Each value that flows: from and to which kernel line or memory, and whether to the next iteration."""

    def told(end: int | str) -> object:
        return end if isinstance(end, str) else graph.nodes[end].store or graph.nodes[end].origin

    return {
        (told(edge.source), told(edge.target), store, edge.carried) for edge in graph.edges for store in edge.stores
    }


def test_the_statements_of_attention_and_what_flows_between_them(attention: Exploration) -> None:
    """Read off the kernel's text, line by line."""
    assert lines(graphs(attention)[0]) == {
        ("Q", 35, "Q", False), ("K", 42, "K", False), ("V", 63, "V", False), (67, "Out", "Out", False),
        (35, 44, "q", False), (42, 44, "k", False), (43, 44, "scores", False), (44, 47, "scores", False),
        (47, 52, "scores", False), (38, 51, "largest", False), (52, 51, "largest", True), (38, 52, "largest", False),
        (51, 54, "before", False), (52, 54, "largest", False), (47, 56, "scores", False), (52, 56, "largest", False),
        (56, 57, "scores", False), (57, 59, "part", False), (54, 59, "shrink", False), (37, 59, "total", False),
        (56, 60, "scores", False), (36, 62, "out", False), (54, 62, "shrink", False), (64, 62, "out", True),
        (60, 64, "weights", False), (63, 64, "v", False), (62, 64, "out", False), (64, 66, "out", False),
        (59, 66, "total", False), (66, 67, "out", False),
    }  # fmt: skip


def test_tile_operations_pass_blocks_through_circular_buffers(attention: Exploration) -> None:
    graph = graphs(attention)[1]
    flows = lines(graph)
    # Out of DST and back, for the rows that are broadcast and the factors of the second product.
    for source, store, targets in ((54, "shrink", (59, 62)), (60, "weights", (64,)), (65, "total_operand", (66,))):
        assert (source, store, store, False) in flows
        assert {(store, target, store, False) for target in targets} <= flows
    assert {
        ("q", 44, "q", False),
        ("k", 44, "k", False),
        ("v", 64, "v", False),
        (67, "out_out", "out_out", False),
    } <= flows
    assert {flow for flow in flows if flow[3]} == {(52, 51, "largest", True), (64, 62, "out", True)}
    engines = {node.origin: node.engine for node in graph.nodes if not node.store}
    assert [engines[line] for line in (44, 56, 57, 60, 64)] == ["fpu", "sfpu", "sfpu", "pack", "fpu"]
    assert [frame.label for frame in graph.frames] == ["for item × work_count", "for n × blocks"]
    inside = {node.origin for node in graph.nodes if node.frame == 1}
    assert inside == {43, 44, 47, 51, 52, 54, 55, 56, 57, 59, 60, 62, 64}


def segments(layout: PlacedGraph) -> list[tuple[int, tuple[float, float], tuple[float, float]]]:
    return [
        (number, min(start, end), max(start, end))
        for number, route in enumerate(layout.routes)
        for start, end in pairwise(route)
        if start != end
    ]


@pytest.mark.parametrize("kernel", _DRAWN)
def test_nothing_in_the_drawing_lies_on_anything_else(kernel: str) -> None:
    for graph in graphs(explore(kernel)):
        layout = laid_out(graph, 0, 60)
        boxes = [*layout.nodes, *layout.sides.values()]
        for first, second in combinations(boxes, 2):
            apart = first.x + first.width <= second.x or second.x + second.width <= first.x
            assert apart or first.bottom <= second.y or second.bottom <= first.y
        drawn = segments(layout)
        for (edge, start, end), (other, start2, end2) in combinations(drawn, 2):
            if edge == other:
                continue
            # Two that run along one line do not meet.
            for axis in (0, 1):
                if start[axis] == end[axis] == start2[axis] == end2[axis]:
                    across = 1 - axis
                    assert end[across] < start2[across] or end2[across] < start[across], (kernel, edge, other)
        for edge, start, end in drawn:
            for box in boxes:
                # An edge ends at the border of its boxes, and runs through none.
                inside_x = start[0] < box.x + box.width and end[0] > box.x
                inside_y = start[1] < box.bottom and end[1] > box.y
                assert not (inside_x and inside_y), (kernel, edge, box)


def test_frames_hold_what_is_in_them_and_nothing_else(attention: Exploration) -> None:
    graph = graphs(attention)[1]
    layout = laid_out(graph, 0, 60)
    for number, frame in enumerate(layout.frames):
        for node, box in zip(graph.nodes, layout.nodes, strict=True):
            around, at = set[int](), node.frame
            while at >= 0:
                around.add(at)
                at = graph.frames[at].parent
            assert (frame.y < box.y and box.bottom < frame.bottom) == (number in around)


def test_the_explorer_gets_each_graph_with_the_steps_that_it_is_true_of(attention: Exploration) -> None:
    flows: list[dict[str, Any]] = flows_data(attention.trace, attention.plan)
    assert [flow["words"] for flow in flows] == ["kernel statements", "tile operations"]
    letters = [step["letter"] for step in attention.data["steps"]]
    assert [letters[flow["step"]] for flow in flows] == ["A0", "C2"]
    assert flows == flows_data(attention.trace, attention.plan)
    for flow in flows:
        root = ElementTree.fromstring(flow["svg"])
        drawn = {
            name: {element.get(name) for element in root.iter() if element.get(name)}
            for name in ("data-node", "data-flow", "data-label")
        }
        assert drawn["data-node"] == {str(number) for number in range(len(flow["nodes"]))}
        assert drawn["data-flow"] == {str(number) for number in range(len(flow["edges"]))}
        assert drawn["data-label"] == {str(number) for number in range(len(flow["frames"]))}
    # All buffers of the plan can be seen, for a run fills them.
    shown = {element.get("data-buffer") for element in ElementTree.fromstring(flows[1]["svg"]).iter()} - {None}
    assert shown == {buffer.name for buffer in attention.plan.buffers}
    assert int(ElementTree.fromstring(flows[1]["svg"]).get("width") or 0) <= 1400


def test_a_program_that_computes_nothing_has_a_graph_of_its_buffers() -> None:
    exploration = explore(copy_block())
    flows: list[dict[str, Any]] = flows_data(exploration.trace, exploration.plan)
    letters = [step["letter"] for step in exploration.data["steps"]]
    assert [(flow["words"], letters[flow["step"]]) for flow in flows] == [
        ("kernel statements", "A0"), ("dataflow", "C2"),
    ]  # fmt: skip
    root = ElementTree.fromstring(flows[1]["svg"])
    drawn = {name: {element.get(name) for element in root.iter()} - {None} for name in ("data-buffer", "data-edge")}
    assert drawn == {"data-buffer": {"S"}, "data-edge": {"A>reader", "reader>S", "S>writer", "writer>B"}}


def test_a_text_that_is_no_program_has_no_graph() -> None:
    """Saved explorations may have any text."""
    for text in (
        "",
        "x = 1",
        "def f(:",
        "def f(A: T.Tensor((32, 32), 1)):",
        "def f():\n    \0",
        "def f():\n" + "    (" * 300,
    ):
        lines = tuple(Line(line) for line in text.split("\n"))
        for function in functions_of(Listing("tir", lines)):
            assert function.body == ()
