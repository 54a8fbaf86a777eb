"""The kernel as it was written, in the style of the Tessera skeleton of TileLang's porting document.

Tessera is no language that anybody compiles: the document sketches its kernels with tile objects, staged shared memory,
asynchronous copies and `mma_sync`. The text says what the kernel does in these words, block by block, and is marked as
illustrative. It is written from the traced kernel, before the first step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from tvm import ir, tirx

from ttexplore.errors import Unsupported, UsageError
from ttexplore.ir.adapter import Node, elements, is_buffer, operation_name, span_of
from ttexplore.ir.arithmetic.index import is_binary
from ttexplore.ir.arithmetic.limited import condition_of, value_of
from ttexplore.ir.build import (
    arguments,
    attribute,
    attributes,
    constant,
    dtype_of,
    op_name,
    regions,
    runs,
    scope_of,
    shape_of,
    statements,
)
from ttexplore.ir.dataflow import accesses, blocks, is_parallel
from ttexplore.ir.operations.reductions import reduction_of
from ttexplore.ops import language as tl

_TYPES = {
    "float32": "float", "bfloat16": "bf16", "float16": "half", "int32": "int", "uint32": "unsigned", "bool": "bool",
}  # fmt: skip
_BINARY: Mapping[type[ir.Expr], str] = {
    tirx.Or: "||", tirx.And: "&&", tirx.EQ: "==", tirx.NE: "!=", tirx.LT: "<", tirx.LE: "<=", tirx.GT: ">",
    tirx.GE: ">=", tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.Div: "/",
}  # fmt: skip
_NAMED: Mapping[type[ir.Expr], str] = {
    tirx.Max: "max", tirx.Min: "min", tirx.FloorDiv: "floor_div", tirx.FloorMod: "floor_mod",
}  # fmt: skip
_FUNCTIONS = {
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sinh",
    "cosh", "atan", "sigmoid", "erf", "pow", "fabs", "floor", "ceil", "round", "trunc",
}  # fmt: skip
_HINT = "the Tessera form has copies, T.gemm, T.fill, reductions and T.Parallel on whole blocks"


def tessera(kernel: tirx.PrimFunc, name: str, written: Sequence[str]) -> str:
    """The text for a traced kernel; `written` are the names of the tensors that it writes.

    Raises UsageError, with the kernel's line, for what the style has no word for: atomics, scans, gathers, parts of
    blocks, sizes that are known only when the kernel runs.
    """
    return _TesseraWriter(kernel).text(name, frozenset(written))


class _TesseraWriter:
    """The lines so far, the statement that is being written, and in how many blocks of memory each shared buffer is
    staged, by its loop's variable."""

    def __init__(self, kernel: tirx.PrimFunc) -> None:
        self.kernel = kernel
        self.at: Node = kernel
        self.lines: list[str] = []
        self.stages: dict[str, tuple[str, int]] = {}
        for loop in blocks(kernel.body):
            if isinstance(loop, tirx.For) and int(dict(loop.annotations).get("num_stages", 0)) > 1:
                self._stage(loop, int(dict(loop.annotations)["num_stages"]))

    def _stage(self, loop: tirx.For, count: int) -> None:
        """The buffers that the loop loads, and that nothing outside of it uses."""

        def used(body: tirx.Stmt) -> list[str]:
            inner = [
                statement for statement in blocks(body) if op_name(statement) in _OPERATIONS or is_parallel(statement)
            ]
            return [str(access.buffer.name) for statement in inner for access in accesses(statement)]

        try:
            everywhere, inside = used(self.kernel.body), used(loop.body)
        except Unsupported:
            # A statement whose accesses are not known: one place in memory is right as well.
            return
        for statement in statements(loop.body):
            if runs(statement, tl.COPY) and scope_of(regions(statement)[1].source).startswith("shared"):
                name = str(regions(statement)[1].source.name)
                if everywhere.count(name) == inside.count(name):
                    self.stages[name] = (str(loop.loop_var.name), count)

    def text(self, name: str, written: frozenset[str]) -> str:
        tensors = [param for param in elements(self.kernel.params) if is_buffer(param)]
        if len(tensors) != len(elements(self.kernel.params)):
            raise UsageError("U028", "the Tessera form has no sizes that are known only at run time", hint=_HINT)
        parameters = ", ".join(
            f"{'' if str(tensor.name) in written else 'const '}{_type(dtype_of(tensor))}* {tensor.name}"
            for tensor in tensors
        )
        self._put(0, "// Illustrative: the kernel in the style of the Tessera skeleton of TileLang's porting document.")
        self._put(0, "// Nothing compiles this text; the exported C++ of ttexplore is what runs.")
        self._put(0, f"__global__ void {name}({parameters}) {{")
        if any(runs(statement, tl.COPY) for statement in blocks(self.kernel.body)):
            self._put(1, "pipeline_t pipe;")
        self._body(statements(self.kernel.body), 1)
        self._put(0, "}")
        return "\n".join(self.lines) + "\n"

    def _put(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    # Statements

    def _body(self, body: Sequence[tirx.Stmt], depth: int) -> None:
        for position, statement in enumerate(body):
            self._statement(statement, depth)
            following = body[position + 1] if position + 1 < len(body) else None
            if self._is_load(statement) and not (following is not None and self._is_load(following)):
                self._put(depth, "pipe.commit();")
                self._put(depth, "pipe.wait();")

    def _is_load(self, statement: tirx.Stmt) -> bool:
        if not runs(statement, tl.COPY):
            return False
        source, target = (region.source for region in regions(statement)[:2])
        return scope_of(source) == "global" and scope_of(target).startswith("shared")

    def _refused(self, at: Node, construct: str) -> UsageError:
        return _unsupported(at if span_of(at) else self.at, construct)

    def _statement(self, statement: tirx.Stmt, depth: int) -> None:
        self.at = statement
        match statement:
            case tirx.AllocBuffer():
                self._put(depth, self._declaration(statement.buffer))
            case tirx.For() if statement.kind == tirx.ForKind.THREAD_BINDING:
                assert statement.thread_binding is not None, "its kind says so"
                axis, count = statement.thread_binding.thread_tag, _number(statement.extent, statement)
                self._put(depth, f"const int {statement.loop_var.name} = {axis};  // {count} block{'s' * (count != 1)}")
                self._body(statements(statement.body), depth)
            case tirx.For() if is_parallel(statement):
                self._parallel(statement, depth)
            case tirx.For():
                start, name = self._value(statement.min), str(statement.loop_var.name)
                end = self._value(statement.extent) if start == "0" else f"{start} + {self._value(statement.extent)}"
                self._put(depth, f"for (int {name} = {start}; {name} < {end}; ++{name}) {{")
                self._body(statements(statement.body), depth + 1)
                self._put(depth, "}")
            case tirx.IfThenElse():
                self._put(depth, f"if ({self._value(statement.condition)}) {{")
                self._body(statements(statement.then_case), depth + 1)
                if statement.else_case is not None:
                    self._put(depth, "} else {")
                    self._body(statements(statement.else_case), depth + 1)
                self._put(depth, "}")
            case tirx.Bind():
                self._put(depth, f"const auto {statement.var.name} = {self._value(statement.value)};")
            case _ if op_name(statement) in _OPERATIONS:
                self._put(depth, self._operation(statement))
            case _:
                raise self._refused(statement, op_name(statement).rpartition(".")[2] or type(statement).__name__)

    def _declaration(self, buffer: tirx.Buffer) -> str:
        if scope_of(buffer).startswith("shared"):
            _, count = self.stages.get(str(buffer.name), ("", 1))
            return f"__shared__ smem_t<{_tile(buffer)}, {count}> {buffer.name};"
        return f"{_tile(buffer)} {buffer.name};"

    def _parallel(self, loop: tirx.For, depth: int) -> None:
        axes: list[tirx.For] = []
        body: list[tirx.Stmt] = [loop]
        while len(body) == 1 and is_parallel(body[0]):
            axes.append(body[0])
            body = statements(body[0].body)
        extents = ", ".join(str(_number(axis.extent, axis)) for axis in axes)
        names = ", ".join(f"int {axis.loop_var.name}" for axis in axes)
        self._put(depth, f"tile_for<{extents}>([&]({names}) {{")
        self._elements(body, depth + 1)
        self._put(depth, "});")

    def _elements(self, body: Sequence[tirx.Stmt], depth: int) -> None:
        for statement in body:
            self.at = statement
            match statement:
                case tirx.BufferStore():
                    target = self._element(statement.buffer, elements(statement.indices), statement)
                    text = f"{target} = {self._value(value_of(statement.value))};"
                    condition = condition_of(statement.value)
                    self._put(depth, text if condition is None else f"if ({self._value(condition)}) {text}")
                case tirx.Bind():
                    self._put(depth, f"const auto {statement.var.name} = {self._value(statement.value)};")
                case tirx.IfThenElse() if statement.else_case is None:
                    self._put(depth, f"if ({self._value(statement.condition)}) {{")
                    self._elements(statements(statement.then_case), depth + 1)
                    self._put(depth, "}")
                case _:
                    raise self._refused(statement, f"{type(statement).__name__} in T.Parallel")

    def _operation(self, statement: tirx.Stmt) -> str:
        name, operands = op_name(statement), regions(statement)
        target = operands[-1] if name != tl.FILL.name else operands[0]
        match name:
            case tl.COPY.name:
                return self._copy(statement, *operands)
            case tl.FILL.name:
                value = self._value(arguments(statement)[1])
                constructor = "tile_zero" if value in ("0", "0.0f") else "tile_fill"
                filled = f"{constructor}<{_tile(target.source)}>({'' if constructor == 'tile_zero' else value})"
                return f"{self._whole(target, statement)} = {filled};"
            case tl.GEMM.name:
                left, right = (self._tile_of(operand, statement) for operand in operands[:2])
                left = f"transpose({left})" if attribute(statement, "transpose_A") else left
                right = f"transpose({right})" if attribute(statement, "transpose_B") else right
                into = self._whole(target, statement)
                start = f"tile_zero<{_tile(target.source)}>()" if attribute(statement, "clear_accum") else into
                return f"{into} = mma_sync({start}, {left}, {right});"
            case _:
                reduction = reduction_of(statement)
                assert reduction is not None, "it is among the operations"
                if reduction.rank > 2:
                    raise self._refused(statement, f"a reduction of {reduction.rank} axes")
                along = "row" if reduction.dim == reduction.rank - 1 else "col"
                into = self._whole(target, statement)
                source_tile = self._tile_of(operands[0], statement)
                if dtype_of(operands[0].source) != dtype_of(target.source):
                    source_tile = f"tile_cast<{_tile(operands[0].source, dtype_of(target.source))}>({source_tile})"
                reduced = f"tile_reduce<{along}, {reduction.kind}>({source_tile})"
                return f"{into} = {reduced if reduction.clear else f'tile_join<{reduction.kind}>({into}, {reduced})'};"

    def _copy(self, statement: tirx.Stmt, source: ir.TensorRegion, target: ir.TensorRegion) -> str:
        if set(attributes(statement)) - {"coalesced_width", "eviction_policy"}:
            raise self._refused(statement, "a copy with options")
        from_tensor, to_tensor = (scope_of(region.source) == "global" for region in (source, target))
        if from_tensor and to_tensor:
            raise self._refused(statement, "a copy from tensor to tensor")
        if from_tensor:
            address, into = self._place(source, target.source, statement), self._whole(target, statement)
            if self._is_load(statement):
                return f"async_copy_2d({into}, {address});"
            return f"{into} = global_load<{_tile(target.source)}>({address});"
        if to_tensor:
            return f"global_store({self._tile_of(source, statement)}, {self._place(target, source.source, statement)});"
        if shape_of(source.source) != shape_of(target.source):
            raise self._refused(statement, "a copy between blocks of different shapes")
        cast = f"tile_cast<{_tile(target.source)}>({self._tile_of(source, statement)})"
        same = dtype_of(source.source) == dtype_of(target.source)
        return f"{self._whole(target, statement)} = {self._tile_of(source, statement) if same else cast};"

    # Places and values

    def _whole(self, region: ir.TensorRegion, statement: tirx.Stmt) -> str:
        """A block on the chip, all of it."""
        buffer = region.source
        if [constant(axis.extent) for axis in region.region] != list(shape_of(buffer)):
            raise self._refused(statement, f"a part of the block {buffer.name}")
        if not scope_of(buffer).startswith("shared"):
            return str(buffer.name)
        variable, count = self.stages.get(str(buffer.name), ("0", 1))
        return f"{buffer.name}[{f'{variable} % {count}' if count > 1 else '0'}]"

    def _tile_of(self, region: ir.TensorRegion, statement: tirx.Stmt) -> str:
        text = self._whole(region, statement)
        return f"smem_load<{_tile(region.source)}>({text})" if scope_of(region.source).startswith("shared") else text

    def _place(self, region: ir.TensorRegion, block: tirx.Buffer, statement: tirx.Stmt) -> str:
        """Where a block of rows begins in a tensor, and how far the next row is."""
        extents = [constant(axis.extent) for axis in region.region]
        if None in extents:
            raise self._refused(statement, "a copy of a part that is known only at run time")
        steps = _steps(region.source)
        long = [(extent, step) for extent, step in zip(extents, steps, strict=True) if extent != 1]
        expected = [extent for extent in shape_of(block) if extent != 1]
        if [extent for extent, _ in long] != expected or len(long) > 2 or (long and long[-1][1] != 1):
            raise self._refused(statement, "a copy whose rows do not lie one after the other")
        row = long[-2][1] if len(long) == 2 else 0
        starts = [axis.min for axis in region.region]
        return f"&{self._flat(region.source, starts)}, {row}"

    def _flat(self, tensor: tirx.Buffer, indices: Sequence[ir.Expr]) -> str:
        terms: list[str] = []
        for index, step in zip(indices, _steps(tensor), strict=True):
            text = self._value(index)
            if text != "0":
                terms.append(f"({text}) * {step}" if step != 1 and is_binary(index) else
                             f"{text} * {step}" if step != 1 else text)  # fmt: skip
        return f"{tensor.name}[{' + '.join(terms) or '0'}]"

    def _element(self, buffer: tirx.Buffer, indices: Sequence[ir.Expr], node: Node) -> str:
        if scope_of(buffer) == "global":
            return self._flat(buffer, indices)
        if len(indices) > 2:
            raise self._refused(node, f"an element of {buffer.name}, which has {len(indices)} axes")
        staged = ""
        if scope_of(buffer).startswith("shared"):
            variable, count = self.stages.get(str(buffer.name), ("0", 1))
            staged = f"[{f'{variable} % {count}' if count > 1 else '0'}]"
        return f"{buffer.name}{staged}({', '.join(map(self._value, indices))})"

    def _value(self, e: ir.Expr) -> str:
        kind = type(e)
        if kind in _BINARY and is_binary(e):
            return f"{self._operand(e.a)} {_BINARY[kind]} {self._operand(e.b)}"
        if kind in _NAMED and is_binary(e):
            return f"{_NAMED[kind]}({self._value(e.a)}, {self._value(e.b)})"
        match e:
            case ir.Var():
                return str(e.name)
            case tirx.IntImm():
                return str(int(e.value))
            case tirx.FloatImm():
                number = float(e.value)
                return f"{number!r}f" if isfinite(number) else "NAN" if number != number else _infinity(number)
            case tirx.Not():
                return f"!{self._operand(e.a)}"
            case tirx.Cast():
                return f"{_type(str(e.ty.dtype))}({self._value(e.value)})"
            case tirx.Select():
                chosen = (e.condition, e.true_value, e.false_value)
                return f"select({', '.join(map(self._value, chosen))})"
            case ir.TensorLoad():
                return self._loaded(e)
            case ir.Call():
                word = operation_name(e).rpartition(".")[2]
                operands = ", ".join(map(self._value, elements(e.args)))
                if word == "if_then_else":
                    return f"select({operands})"
                if word in _FUNCTIONS:
                    return f"{word}({operands})"
                raise self._refused(e, word)
            case _:
                raise self._refused(e, kind.__name__)

    def _operand(self, e: ir.Expr) -> str:
        text = self._value(e)
        return f"({text})" if is_binary(e) and type(e) in _BINARY else text

    def _loaded(self, e: ir.TensorLoad) -> str:
        return self._element(e.source, elements(e.indices), e)


_OPERATIONS = (tl.COPY.name, tl.FILL.name, tl.GEMM.name, tl.REDUCE.name)


def _infinity(number: float) -> str:
    return "INFINITY" if number > 0 else "-INFINITY"


def _steps(tensor: tirx.Buffer) -> list[int]:
    """How many elements apart neighbours along each axis of a tensor are."""
    steps = [1]
    for extent in reversed(shape_of(tensor)[1:]):
        steps.insert(0, steps[0] * extent)
    return steps


def _type(dtype: str) -> str:
    return _TYPES.get(dtype, f"{dtype}_t")


def _tile(buffer: tirx.Buffer, dtype: str = "") -> str:
    return f"tile<{_type(dtype or dtype_of(buffer))}, {', '.join(map(str, shape_of(buffer)))}>"


def _number(extent: ir.Expr, at: tirx.Stmt) -> int:
    length = constant(extent)
    if length is None:
        raise _unsupported(at, "an extent that is known only at run time")
    return length


def _unsupported(at: Node, construct: str) -> UsageError:
    return UsageError("U028", f"the Tessera form has no word for {construct}", hint=_HINT, span=span_of(at))
