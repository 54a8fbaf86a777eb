"""What the programs of both lanes do: copies, waits, products, each with its lines and counts.

TileLang's is read from its text, ours is given as values.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ttexplore.gpu.counting import (
    SourceBlock,
    Statement,
    StatementCount,
    count_blocks,
    function_named,
    read_text,
)
from ttexplore.ops import OPS
from ttexplore.ops.matmul import MATMUL_BLOCK
from ttexplore.ops.move import COPY_TILE
from ttexplore.ops.op import Op
from ttexplore.plan import KERNEL_ROLES, KernelRole, Plan
from ttexplore.record import EmittedPart, Listing

TILE_ELEMENTS = 32 * 32
_FILES = tuple(f"{role}.cpp" for role in KERNEL_ROLES)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a program does or has: how often or how many, None if that is not known (`most`: at most so many),
    the bytes, None if they do not matter or are not known, and the lines, by file, from 1."""

    what: str
    count: int | None = None
    bytes: int | None = None
    lines: tuple[tuple[str, int], ...] = ()
    most: bool = False


# Bytes of what a thread loads or stores at once.
_VECTORS = {
    "uint4": 16, "int4": 16, "float4": 16, "ulonglong2": 16, "longlong2": 16, "double2": 16, "uint2": 8, "int2": 8,
    "float2": 8, "uint1": 4, "int": 4, "uint": 4, "float": 4, "half2": 4, "__nv_bfloat162": 4, "bfloat16_t": 2,
    "half_t": 2, "half": 2, "uchar4": 4, "char4": 4, "uchar2": 2, "ushort": 2, "short": 2, "uchar": 1, "char": 1,
    "double": 8, "ulonglong4": 32, "longlong4": 32,
}  # fmt: skip
_PARAMETER = re.compile(r"(\w+)\* (?:__restrict__ )?(\w+)")
_ARRAY = re.compile(r"(\w+) (\w+)\[(\d+)\]")
_PRODUCTS = (
    # Threads that run one, and the sizes of what they multiply.
    (re.compile(r"tl::wgmma_\w+<[^<>]*?, (\d+), (\d+), (\d+),"), 128, "wgmma"),
    (re.compile(r"tl::mma_sync<[^<>]*?, (\d+), (\d+), (\d+),"), 32, "mma.sync"),
    (re.compile(r"__builtin_amdgcn_mfma_\w+?_(\d+)x(\d+)x(\d+)"), 64, "mfma"),
)
_FUNCTION = re.compile(r"\b(?:h|__)?(exp10|exp2|exp|log10|log2|log|rsqrt|sqrt|tanh|sin|cos|erf|pow)f?\(")


@dataclass(frozen=True)
class GpuProgram:
    """The generated source and the program that it was written from. `file` is the source's name."""

    file: str
    source: Listing
    device: str

    @functools.cached_property
    def _attributes(self) -> str:
        lines = [line for line in self.device.splitlines() if "T.func_attr(" in line and '"thread_extent"' in line]
        return lines[-1] if lines else ""

    def extents(self, index: str) -> dict[str, int | None]:
        """The extents of ``blockIdx`` or ``threadIdx`` along its axes; None for one that depends on a size."""
        extents_of: dict[str, int | None] = {}
        extents = re.search(r'"thread_extent": \{(.*?)\}', self._attributes)
        for axis, extent in re.findall(rf'"{index}\.([xyz])": ([^,}}]+)', extents[1] if extents else ""):
            extents_of[f"{index}_{axis}"] = int(extent) if extent.strip().isdigit() else None
        return extents_of

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return _product(self.extents("threadIdx").values()) or 1

    @property
    def blocks(self) -> int | None:
        return _product(self.extents("blockIdx").values())

    @property
    def shared_bytes(self) -> int:
        """The shared memory that a block of threads gets at the launch."""
        match = re.search(r'"dyn_shared_memory_buf": (\d+)', self._attributes)
        return int(match[1]) if match else 0

    @functools.cached_property
    def kernel(self) -> SourceBlock | None:
        return function_named(read_text(self.source.lines, self._moved), "__global__")

    @functools.cached_property
    def _pointers(self) -> dict[str, int]:
        """The bytes of an element of each tensor that the kernel gets as a pointer."""
        header = next((line.text for line in self.source.lines if "__launch_bounds__" in line.text), "")
        parameters = header.rpartition("__launch_bounds__")[2].partition(")")[2]
        return {name: _VECTORS.get(kind, 0) for kind, name in _PARAMETER.findall(parameters)}

    def _access(self, text: str) -> str | None:
        """How many bytes of a tensor an expression such as ``*(uint4*)(A + ...)`` or ``A[...]`` covers."""
        vector = re.match(r"\*\((\w+)\*\)\((\w+) \+ ", text)
        if vector and vector[2] in self._pointers:
            return str(_VECTORS.get(vector[1], 0) or "unknown_bytes")
        element = re.match(r"(\w+)\[", text)
        if element and element[1] in self._pointers:
            return str(self._pointers[element[1]] or "unknown_bytes")
        return None

    def way(self, text: str) -> str:
        """How a statement moves data: ``TMA``, ``cp.async``, ``load``, ``store``; empty if it does not."""
        if re.search(r"tl::tma_load\w*(?:<[^<>]*>)?\(", text):
            return "TMA load"
        if re.search(r"tl::tma_store\w*(?:<[^<>]*>)?\(", text):
            return "TMA store"
        if re.search(r"tl::cp_async_gs\w*<\d+>\(", text):
            return "cp.async"
        left, equals, right = _assignment(text)
        if equals and self._access(left) is not None:
            return "store"
        if equals and self._loaded(right) is not None:
            return "load"
        return ""

    def _loaded(self, right: str) -> str | None:
        starts = [match.start() for match in re.finditer(r"\*\(\w+\*\)\(|\b\w+\[", right)]
        amounts = [amount for start in starts if (amount := self._access(right[start:])) is not None]
        return " + ".join(amounts) if amounts else None

    def _moved(self, text: str) -> str | None:
        expected = re.search(r"(?:expect_transaction|arrive_and_expect_tx)\((.+)\)$", text)
        if expected:
            return expected[1]
        copied = re.search(r"tl::cp_async_gs\w*<(\d+)>\(", text)
        if copied:
            return copied[1]
        left, equals, right = _assignment(text)
        if not equals:
            return None
        return self._access(left) or self._loaded(right)

    @functools.cached_property
    def executed(self) -> dict[int, StatementCount]:
        """The executions of each statement, in all blocks of threads."""
        return {} if self.kernel is None else count_blocks(self.kernel, self.extents("blockIdx"), self.threads)

    @functools.cached_property
    def statements(self) -> tuple[Statement, ...]:
        return () if self.kernel is None else self.kernel.statements

    def where(self, pattern: str, *, threads: bool = False) -> Fact:
        """The statements that match: how often blocks of threads execute them or, if `threads`, their threads."""
        return self.gather(
            pattern, [statement for statement in self.statements if re.search(pattern, statement.text)], threads
        )

    def gather(self, description: str, statements: Iterable[Statement], threads: bool) -> Fact:
        executions = [
            (statement.line, self.executed[statement.line])
            for statement in statements
            if statement.line in self.executed
        ]
        return _gathered(description, self.file, executions, threads)

    def arrays(self) -> list[tuple[str, str, int, int]]:
        """The arrays of each thread that live as long as the kernel: type, name, bytes, line."""
        arrays: list[tuple[str, str, int, int]] = []
        for node in self.kernel.inner if self.kernel else []:
            array = _ARRAY.fullmatch(node.text) if isinstance(node, Statement) else None
            if array and array[1] in _VECTORS:
                arrays.append((array[1], array[2], _VECTORS[array[1]] * int(array[3]), node.line))
        return arrays

    @property
    def blocks_below_threads(self) -> list[tuple[int, int, str]]:
        """The branches that divide the threads of a block: the line, the threads, and what they do."""
        branches: list[tuple[int, int, str]] = []
        remaining = self.threads
        for node in self.kernel.inner if self.kernel else []:
            if not isinstance(node, SourceBlock):
                continue
            first = re.fullmatch(r"if \(\(\(int\)threadIdx\.x\) < (\d+)\)", node.header)
            if first:
                remaining = self.threads - int(first[1])
            if first or (node.header == "else" and branches):
                copies = any(self.way(inner.text) in ("TMA load", "cp.async") for inner in node.statements)
                branches.append((node.line, int(first[1]) if first else remaining, "copy" if copies else "compute"))
        return branches

    def lines(self, pattern: str) -> tuple[tuple[str, int], ...]:
        """All lines of the source that match."""
        return tuple(
            (self.file, number) for number, line in enumerate(self.source.lines, 1) if re.search(pattern, line.text)
        )

    @property
    def products(self) -> list[tuple[Fact, int | None]]:
        """The calls of tensor cores, by kind and size, and the multiplications and additions in all of them."""
        kinds: dict[tuple[str, int, int], list[Statement]] = {}
        for statement in self.statements:
            for pattern, threads, name in _PRODUCTS:
                match = pattern.search(statement.text)
                if match:
                    sizes = [int(size) for size in match.groups()]
                    kind = f"{name} {'×'.join(map(str, sizes))}", threads, prod(sizes)
                    kinds.setdefault(kind, []).append(statement)
        products: list[tuple[Fact, int | None]] = []
        for (name, threads, size), statements in kinds.items():
            fact = self.gather(name, statements, threads=True)
            calls = None if fact.count is None else fact.count // threads
            products.append(
                (dataclasses.replace(fact, count=calls, bytes=None), None if calls is None else calls * size)
            )
        return products

    @property
    def functions(self) -> list[Fact]:
        """The functions of single elements, by name: how many elements they are applied to."""
        names: dict[str, list[Statement]] = {}
        for statement in self.statements:
            for name in _FUNCTION.findall(statement.text):
                names.setdefault(name, []).append(statement)
        return [self.gather(name, statements, threads=True) for name, statements in names.items()]


def _assignment(text: str) -> tuple[str, str, str]:
    """The two sides of an assignment, at the first equals sign outside of brackets."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "=" and depth == 0 and text[position - 1] == " " and text[position + 1 : position + 2] == " ":
            return text[:position].strip(), "=", text[position + 1 :].strip()
    return text, "", ""


def _product(extents: Iterable[int | None]) -> int | None:
    result = 1
    for extent in extents:
        if extent is None:
            return None
        result *= extent
    return result


def _gathered(description: str, file: str, executions: Sequence[tuple[int, StatementCount]], threads: bool) -> Fact:
    total = sum((executed for _, executed in executions), StatementCount())
    lines = tuple((file, line) for line in sorted({line for line, _ in executions}))
    return Fact(description, total.threads if threads else total.times, total.bytes, lines, total.most)


@dataclass(frozen=True)
class TileProgram:
    """The emitted reader, compute and writer, what their lines are, and the plan that says what each core gets."""

    files: Mapping[KernelRole, Listing]
    parts: Sequence[EmittedPart]
    plan: Plan

    def gather(self, description: str, chosen: Callable[[Op], bool]) -> Fact:
        """How often all cores execute the operations that are chosen, and their lines."""
        return _fact(description, self._chosen(chosen))

    def _chosen(self, chosen: Callable[[Op], bool]) -> list[EmittedPart]:
        return [call for call in self.parts if call.kind == "operation" and chosen(OPS[call.name])]

    def calls(self, *called: str, what: str = "") -> Fact:
        """As :meth:`gather`, of the operations whose C++ calls one of these functions or methods."""
        return self.gather(what or called[0], lambda op: op.called in called)

    def copies(self, call: str) -> tuple[Fact, ...]:
        """The calls of ``async_read`` or ``async_write``, with the bytes; and the calls of functions that copy a few
        elements by them, whose bytes depend on where the elements lie."""
        access = call.removeprefix("async_")

        def few(op: Op) -> bool:
            return op.called != call and any(
                operand.kind == "tensor" and operand.access == access for operand in op.operands
            )

        elements = dataclasses.replace(self.gather(f"{call} of a few elements", few), bytes=None)
        return tuple(fact for fact in (self.calls(call), elements) if fact.lines)

    def lines(self, kind: str, *names: str) -> tuple[tuple[str, int], ...]:
        """The lines of the parts of a kind, all of them or those with these names."""
        return _part_lines(call for call in self.parts if call.kind == kind and (not names or call.name in names))

    @property
    def products(self) -> tuple[Fact, int | None]:
        """The calls of the matrix unit, and the multiplications and additions in all of them."""
        total: int | None = 0
        for call in self._chosen(_multiplies):
            total = None if total is None or call.times is None else total + call.times * call.tiles * 32**3
        return self.gather(MATMUL_BLOCK.name, _multiplies), total

    @property
    def operations(self) -> list[Fact]:
        """The operations on tiles in DST but copies and products, by the names of their C++ functions: how many tiles
        they are applied to."""
        calls = self._chosen(lambda op: op.engine in ("fpu", "sfpu") and op not in (COPY_TILE, MATMUL_BLOCK))
        names = dict.fromkeys(OPS[call.name].called for call in calls)
        return [self.calls(name) for name in names]


def _multiplies(op: Op) -> bool:
    return op == MATMUL_BLOCK


def _fact(description: str, calls: Sequence[EmittedPart]) -> Fact:
    def total(counts: Iterable[int | None]) -> int | None:
        exact = [count for count in counts if count is not None]
        return sum(exact) if len(exact) == len(calls) else None

    times, moved = total(call.times for call in calls), total(call.bytes for call in calls)
    return Fact(description, times, moved, _part_lines(calls), any(call.most for call in calls))


def _part_lines(calls: Iterable[EmittedPart]) -> tuple[tuple[str, int], ...]:
    lines = {(f"{call.role}.cpp", line) for call in calls for line in call.lines}
    return tuple(sorted(lines, key=lambda line: (_FILES.index(line[0]), line[1])))
