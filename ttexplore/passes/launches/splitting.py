"""The launches of a kernel: each T.Kernel, and each part of one between T.sync_grid, as a kernel of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import elements, is_buffer, span_of
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.build import constant, op_name, regions, runs, scope_of, sequence, shape_of, statements, with_nest
from ttexplore.ir.dataflow import blocks, is_on_chip, is_parallel, loads_of, parallel_body, same_indices
from ttexplore.ir.operations.groups import BARRIER_SCOPE
from ttexplore.ir.rewrite import walk
from ttexplore.language.tracer.kernel import Said, TracedKernel
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.passes.launches.coverage import Region, gap_in, read_regions, stored_regions
from ttexplore.passes.launches.tensor_roles import kept_parts, read_and_written, touched, with_kept_parts
from ttexplore.record import Span

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class _Part:
    """The statement of one launch, what was said in it, and the names of the tensors that it reads and writes."""

    nest: tirx.Stmt
    said: Said
    read: frozenset[str]
    written: frozenset[str]

    @property
    def used(self) -> frozenset[str]:
        return self.read | self.written


def launches_of(traced: TracedKernel) -> tuple[TracedKernel, ...]:
    """The launches of a kernel, in order.

    A launch has the tensors that it uses as parameters. What an earlier launch writes is an input of a later one that
    reads it. A tensor of which a launch may store a part only is both its input and its output, and a note says why.

    Raises KernelError where a launch uses values, indices or on-chip buffers of another one, and where it reads
    elements of a tensor of T.alloc_global that no launch before it has written.
    """
    segments = _parts(traced)
    if len(segments) == 1 and not traced.allocated:
        return (_with_kept(traced),)
    tensors = traced.tensors
    parameters = frozenset(str(parameter.name) for parameter in traced.function.params if is_buffer(parameter))
    unused = parameters.difference(*(segment.used for segment in segments))
    launches: list[TracedKernel] = []
    for number, segment in enumerate(segments):
        _check_stores(segment)
        # Unused parameters remain inputs.
        names = segment.used if number else segment.used | unused
        launch = _launch(traced, number, segments, [tensor for tensor in tensors if str(tensor.name) in names])
        notes = _check_read(segment, launch, traced, launches)
        launches.append(_with_kept(dataclasses.replace(launch, notes=(*launch.notes, *notes))))
    return tuple(launches)


def used_names(traced: TracedKernel) -> frozenset[str]:
    """The names of the tensors and blocks of a launch."""
    blocks = (statement.buffer for statement in walk(traced.function.body) if isinstance(statement, tirx.AllocBuffer))
    return frozenset(str(buffer.name) for buffer in (*traced.tensors, *blocks))


def old_contents(launches: Sequence[tirx.PrimFunc]) -> frozenset[str]:
    """The tensors whose contents before the first of some launches count: what a launch reads, or what none of them
    stores, is not all stored before."""
    stores: dict[str, list[Region]] = {}
    tensors: dict[str, tirx.Buffer] = {}
    read: set[str] = set()
    for function in launches:
        read |= read_and_written(function)[0]
        tensors |= {str(parameter.name): parameter for parameter in elements(function.params) if is_buffer(parameter)}
        for name, of_tensor in stored_regions(function).items():
            if name not in read:
                stores.setdefault(name, []).extend(of_tensor)
    return frozenset(name for name, tensor in tensors.items() if gap_in(stores.get(name, []), tensor) is not None)


def _with_kept(traced: TracedKernel) -> TracedKernel:
    """The kernel with those tensors of which it may store a part only, and a note on each that it does not read."""
    function = with_kept_parts(traced.function)
    if function is traced.function:
        return traced
    reasons = kept_parts(function)
    read = read_and_written(function)[0] if reasons else set[str]()
    notes = (note("old contents", tensor=name, reason=reason) for name, reason in reasons.items() if name not in read)
    return dataclasses.replace(traced, function=function, notes=(*traced.notes, *notes))


def _launch(traced: TracedKernel, number: int, segments: Sequence[_Part], tensors: list[tirx.Buffer]) -> TracedKernel:
    segment, name = segments[number], f"{traced.name}_{number + 1}"
    names = [str(tensor.name) for tensor in tensors]
    needed = [extent for tensor in tensors for extent in extents_of(tensor) if not isinstance(extent, int)]
    needed += tirx.analysis.undefined_vars(segment.nest, tensors)
    sizes = [p for p in elements(traced.function.params) if not is_buffer(p) and _among(p, needed)]
    outputs = tuple(
        names.index(output) for output in _outputs(traced) if output in names and _has_output(output, number, segments)
    )
    said_elsewhere = [candidate.said for candidate in segments if candidate.said is not segment.said]
    function = tirx.PrimFunc([*tensors, *sizes], segment.nest, attrs=None, span=traced.function.span)
    function = function.with_attr("global_symbol", name)
    if outputs:
        function = function.with_attr(tl.OUTPUTS, list(outputs))
    annotations = _without(traced.annotations, [a for said in said_elsewhere for a in said.annotations if not a.tensor])
    return dataclasses.replace(
        traced, name=name, function=function, outputs=outputs, said=(segment.said,), allocated=(), surroundings=None,
        traced_with=None,
        notes=tuple(_without(
            traced.notes, [note for said in said_elsewhere for note in said.notes], segment.said.notes
        )),
        annotations=tuple(
            annotation for annotation in annotations if not annotation.tensor or annotation.tensor in names
        ),
    )  # fmt: skip


def _without(all_of: Sequence[_T], excluded: Sequence[_T], exempt: Sequence[_T] = ()) -> list[_T]:
    return [member for member in all_of if member not in excluded or member in exempt]


def _outputs(traced: TracedKernel) -> list[str]:
    """The names of the declared outputs."""
    return [str(traced.function.params[index].name) for index in traced.outputs]


def _has_output(output: str, number: int, segments: Sequence[_Part]) -> bool:
    """Whether a launch has to write a declared output: all that write it, and if none does, the first."""
    writing = [index for index, segment in enumerate(segments) if output in segment.written]
    using = [index for index, segment in enumerate(segments) if output in segment.used]
    return number in (writing or using or [0])[: len(writing) or 1]


# Splitting


def _parts(traced: TracedKernel) -> list[_Part]:
    defined = [*elements(traced.function.params), *traced.allocated]
    segments: list[_Part] = []
    body = statements(traced.function.body)
    for nest, said in zip(body, traced.said or (Said((), ()),) * len(body), strict=True):
        _check_own(nest, defined, body)
        for piece in _between_syncs(nest, defined):
            uses = [(buffer, kind) for statement in walk(piece) for buffer, kind in touched(statement)]
            tensors = [(str(buffer.name), kind) for buffer, kind in uses if not is_on_chip(buffer)]
            read = frozenset(name for name, kind in tensors if kind != "write")
            segments.append(_Part(piece, said, read, frozenset(name for name, kind in tensors if kind != "read")))
    return segments


def _between_syncs(nest: tirx.Stmt, defined: Sequence[ir.Var]) -> list[tirx.Stmt]:
    """The parts of a launch that its T.sync_grid divide, with the allocations and names that each uses."""
    loops: list[tirx.For] = []
    body = [nest]
    while len(body) == 1 and isinstance(body[0], tirx.For) and body[0].kind == tirx.ForKind.THREAD_BINDING:
        loops.append(body[0])
        body = statements(body[0].body)
    pieces: list[list[tirx.Stmt]] = [[]]
    for statement in body:
        if runs(statement, tl.SYNC_GRID):
            pieces.append([])
        else:
            pieces[-1].append(statement)
    if len(pieces) == 1:
        return [nest]
    nests: list[tirx.Stmt] = []
    for number, piece in enumerate(pieces):
        if all(isinstance(statement, tirx.AllocBuffer | tirx.Bind) for statement in piece):
            continue
        earlier = [statement for before in pieces[:number] for statement in before]
        _check_contents(earlier, piece)
        outside = [*defined, *(loop.loop_var for loop in loops)]
        nests.append(with_nest(loops, [*_carried(earlier, piece, outside), *piece]))
    return nests


def _carried(earlier: Sequence[tirx.Stmt], piece: Sequence[tirx.Stmt], defined: Sequence[ir.Var]) -> list[tirx.Stmt]:
    """The allocations and names before a T.sync_grid that the statements after it use."""
    needed = list(tirx.analysis.undefined_vars(sequence(piece), defined))
    carried: list[tirx.Stmt] = []
    for statement in reversed(earlier):
        if isinstance(statement, tirx.AllocBuffer) and _among(statement.buffer, needed):
            carried.append(statement)
        elif isinstance(statement, tirx.Bind) and _among(statement.var, needed):
            if loads_of(statement.value):
                raise KernelError(
                    "K018",
                    f"{statement.var.name} is read before T.sync_grid and used after it",
                    hint="read it again after T.sync_grid: what follows is a launch of its own",
                    span=_user(piece, statement.var),
                )
            carried.append(statement)
            needed += tirx.analysis.undefined_vars(statement, defined)
    return carried[::-1]


# Checking


def _check_own(nest: tirx.Stmt, defined: Sequence[ir.Var], body: Sequence[tirx.Stmt]) -> None:
    """Raise KernelError where a launch uses what is defined in another one."""
    if len(body) == 1:
        return
    for variable in tirx.analysis.undefined_vars(nest, defined):
        predicate, hint = "has its value", "compute it again in this T.Kernel"
        if is_buffer(variable):
            predicate, hint = "is allocated", "T.copy it to a tensor of T.alloc_global there, and from that tensor here"
        raise KernelError(
            "K018", f"{variable.name} {predicate} in another T.Kernel", hint=hint, span=_user([nest], variable)
        )


def _check_contents(earlier: Sequence[tirx.Stmt], piece: Sequence[tirx.Stmt]) -> None:
    """Raise KernelError for an on-chip buffer that is written before a T.sync_grid and used after it, unless all of it
    is written again first."""
    written: list[tirx.Buffer] = []
    for statement in (inner for outer in earlier for inner in walk(outer)):
        written += [
            buffer
            for buffer, kind in touched(statement)
            if is_on_chip(buffer) and (kind != "read" or scope_of(buffer) == BARRIER_SCOPE)
        ]
    for loops, statement in _with_loops(piece):
        for buffer, kind in touched(statement):
            if not _among(buffer, written):
                continue
            if kind != "write" or not _writes_all(statement, buffer, loops):
                used = "read" if kind != "write" else "written in part"
                raise KernelError(
                    "K018",
                    f"{buffer.name} is written before T.sync_grid and {used} after it",
                    hint="what follows T.sync_grid is a launch of its own: T.copy the block to a tensor, and from it",
                    span=span_of(statement),
                )
        new = [buffer for buffer, _ in touched(statement)]
        written = [buffer for buffer in written if not _among(buffer, new)]


def _with_loops(body: Sequence[tirx.Stmt]) -> Iterator[tuple[list[tirx.For], tirx.Stmt]]:
    """All statements in order, those of a T.Parallel with its loops."""
    for statement in blocks(sequence(body)):
        if not is_parallel(statement):
            yield [], statement
            continue
        loops, inner = parallel_body(statement)
        for inner_statement in inner:
            yield from ((loops if nested is inner_statement else [], nested) for nested in walk(inner_statement))


def _writes_all(statement: tirx.Stmt, buffer: tirx.Buffer, loops: Sequence[tirx.For]) -> bool:
    """Whether a statement that writes a buffer, in a T.Parallel of these loops, writes all of it."""
    shape = list(shape_of(buffer))
    if isinstance(statement, tirx.BufferStore):
        starts, extents = [constant(loop.min) for loop in loops], [constant(loop.extent) for loop in loops]
        over_all = same_indices(statement.indices, [loop.loop_var for loop in loops])
        return all(extent == 1 for extent in shape) or (over_all and not any(starts) and extents == shape)
    if op_name(statement) not in tl.STATEMENTS:
        return False
    region = regions(statement)[-1].region
    return all(
        constant(interval.min) == 0 and constant(interval.extent) == n
        for interval, n in zip(region, shape, strict=True)
    )


def _check_read(
    segment: _Part, launch: TracedKernel, traced: TracedKernel, before: Sequence[TracedKernel]
) -> Iterator[Note]:  # fmt: skip
    """Notes on the tensors of T.alloc_global that the launches before this one may have stored in part, and of which it
    may read the rest. Raises KernelError where it reads elements that none of them stores."""
    own_stores, reads = stored_regions(launch.function), read_regions(launch.function)
    for tensor in traced.allocated:
        name = str(tensor.name)
        if name not in segment.read:
            continue
        stores = [store for earlier in before for store in stored_regions(earlier.function).get(name, [])]
        if not stores:
            reading = (
                statement for statement in walk(segment.nest) for buffer, kind in touched(statement)
                if kind != "write" and buffer.same_as(tensor)
            )  # fmt: skip
            raise KernelError(
                "K006",
                f"{name} is read here, and no launch before this one has written it",
                hint="write it in an earlier T.Kernel, or make it a parameter if the caller fills it",
                span=span_of(next(reading)),
            )
        gap = gap_in(stores, tensor, reads.get(name, []))
        if gap is None:
            continue
        for read in reads[name]:
            missing = gap_in([*stores, *own_stores.get(name, [])], tensor, [read])
            if missing is not None and missing.element is not None:
                raise KernelError(
                    "K006",
                    f"{name}[{', '.join(map(str, missing.element))}] is read here, and no launch before this one has "
                    "stored anything there",
                    hint="store all that is read in an earlier T.Kernel, or make it a parameter if the caller fills it",
                    span=read.span,
                )
        yield note("zeros", tensor=name, reason=gap.reason)


def _check_stores(segment: _Part) -> None:
    """Raise KernelError for a launch that stores nothing."""
    if not segment.written:
        within = [
            statement
            for statement in walk(segment.nest)
            if not isinstance(statement, tirx.For | tirx.AllocBuffer | tirx.Bind)
        ]
        raise KernelError(
            "K007",
            "what begins here is a launch of its own, and writes no tensor",
            hint="copy its result to a tensor: T.copy(result, C[...]); each T.Kernel is a launch, and so is what "
            "T.sync_grid ends or begins: no block stays on the chip between them",
            span=next(
                (span for statement in within if (span := span_of(statement)) is not None), span_of(segment.nest)
            ),
        )


def _user(body: Sequence[tirx.Stmt], variable: ir.Var) -> Span | None:
    """The first statement that uses a variable, as a place."""
    using = [
        statement
        for outer in body
        for statement in walk(outer)
        if _among(variable, tirx.analysis.undefined_vars(statement, []))
    ]
    first_user = next(
        (statement for statement in using if not isinstance(statement, tirx.For | tirx.While | tirx.IfThenElse)),
        using[-1],
    )
    return span_of(first_user)


def _among(variable: ir.Var, many: Iterable[ir.Var]) -> bool:
    return any(variable.same_as(candidate) for candidate in many)
