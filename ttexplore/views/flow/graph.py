"""What flows between the statements of a program: kernel statements, or the tile operations of the compute kernel.

Operations that come from one kernel line are one node, because that line says what they are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ttexplore.ops import Op
from ttexplore.ops.op import CB_SCOPE
from ttexplore.plan import CircularBuffer
from ttexplore.record import Listing
from ttexplore.views.flow.statements import FlowBlock, FlowStatement, Function, Memory, every, functions_of

EngineName = Literal["fpu", "sfpu", "unpack", "pack", "data", "statement"]
Side = Literal["left", "right"]

# More nodes than these are no picture any more: they are drawn as one.
MOST_NODES = 120
# So many characters stand beside the number of the line.
_LONGEST_TITLE = 14
_MOVES: tuple[EngineName, ...] = ("unpack", "pack")
# What only says on which engine an operation runs, or what of.
_TECHNICAL = re.compile(r"(?:^|_)(?:tile|tiles|binary|unary|sfpu|block)(?=_|$)")


@dataclass(frozen=True, slots=True)
class FlowNode:
    """Statements of one kernel line in a row, or a buffer (`store`) that hands a block on.

    `within` names the buffers that only these statements fill and drain.
    """

    title: str
    told: str
    origin: int
    engine: EngineName
    frame: int
    store: str = ""
    within: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def result(self) -> str:
        """What it gives: the arrows say what it takes."""
        return f"→ {self.told.rpartition('→')[2].strip()}" if self.told else ""


@dataclass(frozen=True, slots=True)
class FlowFrame:
    """A loop or branch around nodes; `parent` is the position of the one around it, -1 for none."""

    label: str
    origin: int
    parent: int


# A node by its position, or a buffer or tensor beside the kernel by its name.
End = int | str


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """Values that flow: the memory that they are in. A `carried` one goes to the next iteration of a loop."""

    source: End
    target: End
    stores: tuple[str, ...]
    carried: bool = False


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """`order` has for each frame, and for -1, what is in it: nodes, and frames as negative numbers from -2 down.

    `sides` are the buffers, or tensors, beside the kernel, `loads` and `stores_to` the tensors of buffers.
    """

    nodes: tuple[FlowNode, ...]
    frames: tuple[FlowFrame, ...]
    edges: tuple[FlowEdge, ...]
    order: Mapping[int, tuple[int, ...]]
    sides: Mapping[str, Side]
    transfers: tuple[tuple[str, str], ...]
    memory: Mapping[str, Memory]


def frame_item(frame: int) -> int:
    """A frame among the items of an order, and back."""
    return -2 - frame


def operation_graph(listing: Listing, buffers: Sequence[CircularBuffer]) -> FlowGraph:
    """The tile operations of the listing of a program before it is split into kernels."""
    return _graph(functions_of(listing)[0], {buffer.name: buffer for buffer in buffers})


def statement_graph(listing: Listing) -> FlowGraph:
    """The statements of the listing of a program that has no tile operations yet."""
    return _graph(functions_of(listing)[0], {})


@dataclass
class _FlowDraft:
    """A graph that is being made; `members` are the statements of each node."""

    function: Function
    buffers: Mapping[str, CircularBuffer]
    members: list[list[FlowStatement]] = field(default_factory=list[list[FlowStatement]])
    frame_of: list[int] = field(default_factory=list[int])
    frames: list[FlowFrame] = field(default_factory=list[FlowFrame])
    loops: set[int] = field(default_factory=set[int])
    order: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    transfers: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    flows: dict[tuple[End, End, bool], dict[str, None]] = field(
        default_factory=dict[tuple[End, End, bool], dict[str, None]]
    )

    def collect(self, body: Sequence[FlowStatement | FlowBlock], frame: int, times: int = 1) -> None:
        """Nodes and frames, in the order of the program."""
        for item in body:
            if isinstance(item, FlowStatement):
                self.statement(replace(item, times=times), frame)
                continue
            statements = [statement for statement in every(item.body) if not _is_transfer(statement)]
            if len({statement.origin for statement in statements}) < 2:
                # A loop over the tiles of one operation.
                self.collect(item.body, frame, times * (item.times or 1))
                continue
            label, item = _merged(item)
            self.frames.append(FlowFrame(label, item.origin, frame))
            number = len(self.frames) - 1
            if item.is_loop:
                self.loops.add(number)
            self.order.setdefault(frame, []).append(frame_item(number))
            self.collect(item.body, number)

    def statement(self, statement: FlowStatement, frame: int) -> None:
        if _is_transfer(statement):
            for source in statement.reads or ("",):
                for target in statement.writes:
                    self.transfers[source, target] = None
            return
        items = self.order.setdefault(frame, [])
        if items and items[-1] >= 0 and self.members[items[-1]][-1].origin == statement.origin:
            self.members[items[-1]].append(statement)
            return
        items.append(len(self.members))
        self.members.append([statement])
        self.frame_of.append(frame)

    # What flows

    def flow(self, frame: int, last: dict[str, set[int]], carried: bool = False) -> None:
        """Edges from the nodes that wrote memory `last` to those of a frame that read it."""
        for item in self.order.get(frame, ()):
            if item >= 0:
                self.node_flow(item, last, carried)
                continue
            inner = frame_item(item)
            before = {name: set(writers) for name, writers in last.items()}
            self.flow(inner, last, carried)
            if inner in self.loops and not carried:
                inside = self.nodes_in(inner)
                self.flow(inner, {name: writers & inside for name, writers in last.items()}, carried=True)
            for name, writers in before.items():
                # A branch that is not taken, or a loop without iterations, leaves what was there.
                if inner not in self.loops and name in last:
                    last[name] = last[name] | writers

    def node_flow(self, node: int, last: dict[str, set[int]], carried: bool) -> None:
        for statement in self.members[node]:
            for name in statement.reads:
                writers = last.get(name)
                if writers is None:
                    if not carried and self.filled_outside(name):
                        self.edge(name, node, name, carried)
                    continue
                for writer in sorted(writers):
                    self.edge(writer, node, name, carried)
            for name in statement.writes:
                last[name] = set() if carried else {node}
                if not carried and self.drained_outside(name):
                    self.edge(node, name, name, carried)

    def edge(self, source: End, target: End, store: str, carried: bool) -> None:
        if source != target:
            self.flows.setdefault((source, target, carried), {})[store] = None

    def nodes_in(self, frame: int) -> set[int]:
        inside: set[int] = set()
        for item in self.order.get(frame, ()):
            inside |= {item} if item >= 0 else self.nodes_in(frame_item(item))
        return inside

    def is_tensor(self, name: str) -> bool:
        return name in self.function.stores and self.function.stores[name].scope == "tensor"

    def filled_outside(self, name: str) -> bool:
        """Whether something beside the compute kernel fills it: it is a tensor, or another kernel's."""
        return self.is_tensor(name) or (name in self.buffers and self.buffers[name].producer != "compute")

    def drained_outside(self, name: str) -> bool:
        return self.is_tensor(name) or (name in self.buffers and self.buffers[name].consumer != "compute")


def _graph(function: Function, buffers: Mapping[str, CircularBuffer]) -> FlowGraph:
    draft = _FlowDraft(function, buffers)
    draft.collect(function.body, -1)
    skipped = 0
    if len(draft.members) > MOST_NODES:
        skipped = len(draft.members)
        members = [statement for statement in every(function.body) if not _is_transfer(statement)]
        draft = _FlowDraft(function, buffers, [members], [-1], order={-1: [0]}, transfers=draft.transfers)
    draft.flow(-1, {})
    return _finished(draft, skipped)


def _finished(draft: _FlowDraft, skipped: int) -> FlowGraph:
    """The graph, in which circular buffers between operations are nodes of their own."""
    stores = draft.function.stores
    nodes = [_node(draft, number, skipped) for number in range(len(draft.members))]
    order = {frame: list(items) for frame, items in draft.order.items()}
    between: dict[tuple[int, str], list[tuple[int, bool]]] = {}
    edges: list[FlowEdge] = []
    for (source, target, carried), names in draft.flows.items():
        direct: list[str] = []
        for name in names:
            if isinstance(source, int) and isinstance(target, int) and stores[name].scope == CB_SCOPE:
                between.setdefault((source, name), []).append((target, carried))
            else:
                direct.append(name)
        if direct:
            edges.append(FlowEdge(source, target, tuple(direct), carried))
    for (source, name), targets in between.items():
        number, frame = len(nodes), nodes[source].frame
        nodes.append(FlowNode(name, "", nodes[source].origin, "data", frame, store=name))
        order[frame].insert(order[frame].index(source) + 1, number)
        edges.append(FlowEdge(source, number, (name,)))
        edges += [FlowEdge(number, target, (name,), carried) for target, carried in targets]
    for number, node in enumerate(nodes[: len(draft.members)]):
        written = dict.fromkeys(name for statement in draft.members[number] for name in statement.writes)
        within = tuple(
            name
            for name in written
            if stores[name].scope == CB_SCOPE and (number, name) not in between and not draft.drained_outside(name)
        )
        shown = " → ".join(
            " · ".join(name for name in side.split(" · ") if name not in within) for side in node.told.split(" → ")
        )
        nodes[number] = replace(node, within=within, told=shown.strip(" →"))
    sides: dict[str, Side] = {}
    for edge in edges:
        if isinstance(edge.source, str):
            sides[edge.source] = _side(draft, edge.source, "left")
        if isinstance(edge.target, str) and edge.target not in sides:
            sides[edge.target] = _side(draft, edge.target, "right")
    return FlowGraph(
        tuple(nodes),
        tuple(draft.frames),
        tuple(edges),
        {frame: tuple(items) for frame, items in order.items()},
        sides,
        tuple(draft.transfers),
        stores,
    )


def _side(draft: _FlowDraft, name: str, side: Side) -> Side:
    """What the writer fills stands at the writer."""
    buffer = draft.buffers.get(name)
    return "right" if buffer is not None and "writer" in (buffer.producer, buffer.consumer) else side


def _node(draft: _FlowDraft, number: int, skipped: int) -> FlowNode:
    members = draft.members[number]
    touched_elsewhere = {
        name
        for position, statements in enumerate(draft.members)
        if position != number
        for statement in statements
        for name in (*statement.reads, *statement.writes)
    }
    writes: dict[str, None] = {}
    reads: dict[str, None] = {}
    for statement in members:
        reads.update((name, None) for name in statement.reads if name not in writes)
        writes.update(dict.fromkeys(statement.writes))
    reads_told = _outside(draft, reads, touched_elsewhere)
    writes_told = _outside(draft, writes, touched_elsewhere)
    told = " → ".join(names for names in (" · ".join(reads_told), " · ".join(writes_told)) if names)
    dearest = max(members, key=lambda statement: (_cycles(statement.operation), statement.line))
    last = next((statement for statement in reversed(members) if _engine(statement.operation) not in _MOVES), dearest)
    title = ", ".join(dict.fromkeys((_title(dearest), _title(last))))
    if skipped or len(title) > _LONGEST_TITLE:
        title = f"{skipped:,} operations" if skipped else _title(dearest)
    counted: dict[str, int] = {}
    for statement in members:
        counted[statement.word] = counted.get(statement.word, 0) + statement.times
    ran = ", ".join(f"{word}{f' × {times}' if times > 1 else ''}" for word, times in counted.items())
    return FlowNode(
        title,
        told,
        members[0].origin,
        _engine(dearest.operation),
        draft.frame_of[number],
        facts=(
            ("runs", ran),
            ("reads", ", ".join(reads_told) or "nothing"),
            ("writes", ", ".join(writes_told) or "nothing"),
        ),
    )


def _outside(draft: _FlowDraft, names: Iterable[str], touched_elsewhere: set[str]) -> list[str]:
    """Names of memory without that which only the node itself touches."""
    return [
        name
        for name in dict.fromkeys(names)
        if name in touched_elsewhere or draft.filled_outside(name) or draft.drained_outside(name)
    ]


def _cycles(operation: Op | None) -> int:
    return 0 if operation is None else operation.cycles


def _title(statement: FlowStatement) -> str:
    if statement.operation is None:
        return statement.word.replace("_", " ")
    return _TECHNICAL.sub("", statement.operation.name).strip("_").replace("_", " ") or statement.operation.name


def _engine(operation: Op | None) -> EngineName:
    if operation is None:
        return "statement"
    if operation.engine == "fpu":
        return "unpack" if operation.gives == "same" else "fpu"
    return "pack" if operation.engine in ("pack", "block") else "sfpu"


def _is_transfer(statement: FlowStatement) -> bool:
    """Whether the reader or the writer does it."""
    return statement.operation is not None and statement.operation.role != "compute"


def _merged(block: FlowBlock) -> tuple[str, FlowBlock]:
    """The words for a loop, and the innermost of the loops that it consists of."""
    labels = [_label(block)]
    while len(block.body) == 1 and isinstance(block.body[0], FlowBlock) and block.is_loop and block.body[0].is_loop:
        block = block.body[0]
        labels.append(_label(block))
    return ", ".join(labels), block


def _label(block: FlowBlock) -> str:
    if not block.is_loop or block.text.startswith("while"):
        return block.text
    head, _, iterator = block.text.partition(" in ")
    extent = re.sub(r"^(?:T\.)?\w+\(|, (?:num_stages|\").*$|\)$", "", iterator)
    return f"{head} × {extent}" if extent != "range" else head
