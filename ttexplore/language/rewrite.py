"""Rewriting a kernel's Python so that running it builds TIR, each statement with its source span.

The function is found in its file by its first line, its statements and expressions become calls of `Hooks`, and it is
compiled again with the closure cells of the original. Plain Python in a kernel stays plain Python.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import linecache
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import is_buffer, set_span
from ttexplore.language.builder import Allocation, Builder, Grid, Loop, condition, current, is_dynamic, sequence
from ttexplore.language.tile import region
from ttexplore.record import Span

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip


class Hooks:
    """What the rewritten kernel calls. `spans` is indexed by the first argument of each hook."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans

    def _at(self, index: int) -> Builder:
        builder = current()
        builder.span = self.spans[index]
        return builder

    def value(self, index: int, compute: Callable[[], Any]) -> Any:
        """The value of an expression, with its span."""
        builder = self._at(index)
        result = compute()
        builder.span = self.spans[index]
        if isinstance(result, tirx.expr.EqualOp | tirx.expr.NotEqualOp):
            result = result.asobject()
        if isinstance(result, ir.Expr) and not isinstance(result, ir.Var) and result.span is None:
            set_span(result, builder.tvm_span())
        return result

    def read(self, index: int, value: Any) -> Any:
        """A name read as a value: scalar variables are loads."""
        if is_buffer(value) and value.ty.storage_scope == "local.var":
            return self.value(index, lambda: tirx.BufferLoad(value, [tirx.const(0, "int32")]))
        return value

    def statement(self, index: int, compute: Callable[[], Any]) -> None:
        builder = self._at(index)
        result = compute()
        builder.span = self.spans[index]
        if isinstance(result, ir.Call):
            builder.emit(tirx.Evaluate(result, builder.tvm_span()))
        elif isinstance(result, tirx.Stmt):
            builder.emit(result)

    def bind(self, index: int, name: str, compute: Callable[[], Any]) -> Any:
        builder = self._at(index)
        result = compute()
        builder.span = self.spans[index]
        return builder.bind(name, result)

    def rebind(self, index: int, name: str, compute: Callable[[], Any], old: Callable[[], Any]) -> Any:
        """An assignment to a name that may be a scalar variable: then it is a store."""
        try:
            before = old()
        except NameError:
            before = None
        if is_buffer(before) and before.ty.storage_scope == "local.var":
            builder = self._at(index)
            result = compute()
            builder.span = self.spans[index]
            if not isinstance(result, Allocation):
                builder.store(before, (0,), result)
                return before
            return builder.bind(name, result)
        return self.bind(index, name, compute)

    def store(self, index: int, base: Any, indices: Any, compute: Callable[[], Any]) -> None:
        builder = self._at(index)
        result = compute()
        builder.span = self.spans[index]
        if is_buffer(base):
            builder.store(base, indices if isinstance(indices, tuple) else (indices,), result)
        else:
            base[indices] = result

    def load(self, index: int, base: Any, indices: Any) -> Any:
        builder = self._at(index)
        if not is_buffer(base):
            return self.value(index, lambda: base[indices])
        parts = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(part, slice) for part in parts) or len(parts) < len(base.ty.shape):
            return region(base, parts)
        if len(parts) > len(base.ty.shape):
            raise KernelError(
                f"{base.name} has {len(base.ty.shape)} dimensions and is read with {len(parts)} indices",
                hint="give one index for each dimension",
                span=builder.span,
            )
        return self.value(index, lambda: base[indices])

    def iterate(self, index: int, names: tuple[str, ...], iterable: Any) -> Iterator[Any]:
        builder = self._at(index)
        if isinstance(iterable, Loop):
            yield from iterable.run(builder, names)
            return
        for item in iterable:
            builder.loops.append("python")
            try:
                yield item
            finally:
                builder.loops.pop()

    def range(self, index: int, *bounds: Any) -> Any:
        """``range``: a kernel loop, unless its bounds are plain ints and it is stepped."""
        builder = self._at(index)
        if len(bounds) == 3:
            if any(is_dynamic(bound) for bound in bounds):
                raise KernelError("a stepped range needs constant bounds", hint="use T.serial", span=builder.span)
            return range(*bounds)
        start, stop = bounds if len(bounds) == 2 else (0, bounds[0])
        return Loop((stop - start,), tirx.ForKind.SERIAL, start)

    def while_(self, index: int, test: Callable[[], Any]) -> Iterator[None]:
        builder = self._at(index)
        value = test()
        if not is_dynamic(value):
            while value:
                yield
                value = test()
            return
        span = builder.tvm_span()
        with builder.frame(lambda body: tirx.While(condition(value), sequence(body), span)):
            builder.loops.append("tir")
            try:
                yield
            finally:
                builder.loops.pop()

    @contextlib.contextmanager
    def with_(self, index: int, names: tuple[str, ...], manager: Any) -> Iterator[Any]:
        builder = self._at(index)
        entered = manager.enter(builder, names) if isinstance(manager, Grid) else manager
        with entered as value:
            yield value

    def branch(self, index: int, test: Any) -> Branch:
        return Branch(self._at(index), test)

    def all_(self, index: int, *parts: Callable[[], Any]) -> Any:
        return self._logical(index, parts, tirx.And, lambda value: not value)

    def any_(self, index: int, *parts: Callable[[], Any]) -> Any:
        return self._logical(index, parts, tirx.Or, bool)

    def _logical(self, index: int, parts: Any, combine: Any, decides: Callable[[Any], bool]) -> Any:
        value = parts[0]()
        for part in parts[1:]:
            if not is_dynamic(value):
                if decides(value):
                    return value
                value = part()
                continue
            right = part()
            value = combine(condition(value), condition(right))
        return self.value(index, lambda: value)

    def not_(self, index: int, value: Any) -> Any:
        return self.value(index, lambda: tirx.Not(condition(value))) if is_dynamic(value) else not value

    def choose(self, index: int, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if not is_dynamic(test):
            return then() if test else otherwise()
        return self.value(index, lambda: tirx.if_then_else(condition(test), then(), otherwise()))

    def compare(self, index: int, values: tuple[Any, ...], operators: tuple[str, ...]) -> Any:
        result: Any = True
        for name, left, right in zip(operators, values, values[1:], strict=False):
            one = _COMPARE[name](left, right)
            if isinstance(one, tirx.expr.EqualOp | tirx.expr.NotEqualOp):
                one = one.asobject()
            if is_dynamic(one) and is_dynamic(result):
                result = tirx.And(condition(result), condition(one))
            elif is_dynamic(one):
                result = one if result else False
            elif is_dynamic(result):
                result = result if one else False
            else:
                result = result and one
        return self.value(index, lambda: result)

    def jump(self, index: int, kind: str) -> bool:
        """Whether ``break`` or ``continue`` leaves a Python loop now; a kernel loop gets the statement instead."""
        builder = self._at(index)
        if builder.loops and builder.loops[-1] == "python":
            return True
        builder.emit((tirx.Break if kind == "break" else tirx.Continue)(builder.tvm_span()))
        return False

    def return_(self, index: int, value: Any) -> Any:
        builder = self._at(index)
        if not builder.calls and value is not None:
            builder.outputs = list(value) if isinstance(value, tuple) else [value]
        return value

    def span(self, index: int) -> Span:
        return self.spans[index]


class Branch:
    """An ``if``: decided now where the condition is plain Python, else a TIR branch."""

    def __init__(self, builder: Builder, test: Any) -> None:
        self.builder, self.test, self.dynamic = builder, test, is_dynamic(test)
        self.run_then = self.dynamic or bool(test)
        self.run_else = self.dynamic or not test
        self.span = builder.tvm_span()
        self.then_body: list[Any] = []

    @contextlib.contextmanager
    def then(self, has_else: bool) -> Iterator[None]:
        if not self.dynamic:
            yield
            return
        with self.builder.collect(self.then_body):
            yield
        if not has_else:
            self._finish(None)

    @contextlib.contextmanager
    def otherwise(self) -> Iterator[None]:
        if not self.dynamic:
            yield
            return
        body: list[Any] = []
        with self.builder.collect(body):
            yield
        self._finish(sequence(body))

    def _finish(self, else_body: Any) -> None:
        self.builder.emit(
            tirx.IfThenElse(condition(self.test), sequence(self.then_body), else_body, self.span)
        )


class _Rewrite(ast.NodeTransformer):
    """Turns the body of one kernel into calls of the hooks (the name ``__hooks``)."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spans: list[Span] = []
        self.assigned: set[str] = set()
        self.count = 0

    def _index(self, node: Any) -> ast.Constant:
        self.spans.append(
            Span(self.file, node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1)
        )
        return ast.Constant(len(self.spans) - 1)

    def _hook(self, name: str, node: Any, *args: Any) -> Any:
        function = ast.Attribute(ast.Name("__hooks", ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(function, [self._index(node), *args], []), node)

    @staticmethod
    def _later(body: Any) -> ast.Lambda:
        return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)

    @staticmethod
    def _names(target: Any) -> ast.Tuple:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [] if target is None else [target]
        names = [part.id if isinstance(part, ast.Name) else "_" for part in parts]
        return ast.Tuple([ast.Constant(name) for name in names], ast.Load())

    def _value(self, node: Any) -> Any:
        return self._hook("value", node, self._later(self.generic_visit(copy.copy(node))))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._value(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "range" and not node.keywords:
            return self._hook("range", node, *[self.visit(argument) for argument in node.args])
        return self._value(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self._hook("not_", node, self.visit(node.operand))
        return self._value(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        values = [self.visit(value) for value in [node.left, *node.comparators]]
        operators = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return self._hook("compare", node, ast.Tuple(values, ast.Load()), operators)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "all_" if isinstance(node.op, ast.And) else "any_"
        return self._hook(name, node, *[self._later(self.visit(value)) for value in node.values])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        then, otherwise = self._later(self.visit(node.body)), self._later(self.visit(node.orelse))
        return self._hook("choose", node, self.visit(node.test), then, otherwise)

    def _subscript(self, node: Any) -> Any:
        def part(item: Any) -> Any:
            if not isinstance(item, ast.Slice):
                return self.visit(item)
            bounds = [self.visit(bound) if bound else ast.Constant(None) for bound in (item.lower, item.upper, item.step)]
            return ast.Call(ast.Name("slice", ast.Load()), bounds, [])

        if isinstance(node, ast.Tuple):
            return ast.Tuple([part(item) for item in node.elts], ast.Load())
        return part(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        base = node.value if isinstance(node.value, ast.Name) else self.visit(node.value)
        return self._hook("load", node, base, self._subscript(node.slice))

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.assigned:
            return self._hook("read", node, node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def _body(self, body: list[Any]) -> list[Any]:
        out: list[Any] = []
        for statement in body:
            made = self.visit(statement)
            out += made if isinstance(made, list) else [made]
        return out

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant):
            return node
        inner = self.generic_visit(copy.copy(node.value)) if isinstance(node.value, ast.Call) else self.visit(node.value)
        return ast.copy_location(ast.Expr(self._hook("statement", node, self._later(inner))), node)

    def _assign(self, target: Any, value: Any, node: Any) -> list[Any]:
        if isinstance(target, ast.Name):
            arguments = [ast.Constant(target.id), self._later(value)]
            if target.id in self.assigned:
                old = self._later(ast.Name(target.id, ast.Load()))
                made = self._hook("rebind", node, *arguments, old)
            else:
                made = self._hook("bind", node, *arguments)
            self.assigned.add(target.id)
            return [ast.copy_location(ast.Assign([target], made), node)]
        if isinstance(target, ast.Subscript):
            base = _as_load(target.value)
            base = base if isinstance(base, ast.Name) else self.visit(base)
            made = self._hook("store", node, base, self._subscript(target.slice), self._later(value))
            return [ast.copy_location(ast.Expr(made), node)]
        if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in target.elts):
            self.count += 1
            names = [f"__part{self.count}_{position}" for position in range(len(target.elts))]
            unpacked = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            out: list[Any] = [ast.copy_location(ast.Assign([unpacked], value), node)]
            for element, name in zip(target.elts, names, strict=True):
                out += self._assign(element, ast.Name(name, ast.Load()), node)
            return out
        return [ast.copy_location(ast.Assign([target], value), node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value, out = self.visit(node.value), list[Any]()
        if len(node.targets) > 1:
            self.count += 1
            name = f"__value{self.count}"
            out.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node))
            value = ast.Name(name, ast.Load())
        for target in node.targets:
            out += self._assign(target, value, node)
        return out

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        left = self.visit(_as_load(node.target))
        binary = ast.copy_location(ast.BinOp(left, node.op, self.visit(node.value)), node)
        return self._assign(node.target, self._hook("value", node, self._later(binary)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            return self._assign(node.target, self.visit(node.value), node)
        if not isinstance(node.target, ast.Name):
            return []
        self.assigned.add(node.target.id)
        annotation = node.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        made = self._hook("bind", node, ast.Constant(node.target.id), self._later(self.visit(annotation)))
        return [ast.copy_location(ast.Assign([node.target], made), node)]

    def visit_For(self, node: ast.For) -> Any:
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                self.assigned.discard(name.id)
        iterator = self._hook("iterate", node, self._names(node.target), self.visit(node.iter))
        # The span of a loop is its head: the body has spans of its own.
        head = self.spans[iterator.args[0].value]
        last = node.iter
        self.spans[iterator.args[0].value] = Span(
            head.file, head.line, head.column, last.end_lineno or head.line, (last.end_col_offset or 0) + 1
        )
        return ast.copy_location(ast.For(node.target, iterator, self._body(node.body), self._body(node.orelse)), node)

    def visit_While(self, node: ast.While) -> Any:
        iterator = self._hook("while_", node.test, self._later(self.visit(node.test)))
        return ast.copy_location(ast.For(ast.Name("__turn", ast.Store()), iterator, self._body(node.body), []), node)

    def visit_If(self, node: ast.If) -> Any:
        self.count += 1
        name = f"__branch{self.count}"

        def attribute(what: str) -> ast.Attribute:
            return ast.Attribute(ast.Name(name, ast.Load()), what, ast.Load())

        def block(entered: Any, body: list[Any]) -> Any:
            return ast.copy_location(ast.With([ast.withitem(entered)], body), node)

        made = self._hook("branch", node.test, self.visit(node.test))
        out: list[Any] = [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], made), node)]
        entered = ast.Call(attribute("then"), [ast.Constant(bool(node.orelse))], [])
        out.append(ast.copy_location(ast.If(attribute("run_then"), [block(entered, self._body(node.body))], []), node))
        if node.orelse:
            entered = ast.Call(attribute("otherwise"), [], [])
            body = [block(entered, self._body(node.orelse))]
            out.append(ast.copy_location(ast.If(attribute("run_else"), body, []), node))
        return out

    def visit_Break(self, node: ast.Break) -> Any:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("break")), [node], []), node)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("continue")), [node], []), node)

    def visit_With(self, node: ast.With) -> Any:
        items: list[ast.withitem] = []
        for item in node.items:
            context = item.context_expr
            made = self._hook("with_", context, self._names(item.optional_vars), self.visit(context))
            items.append(ast.withitem(made, item.optional_vars))
        return ast.copy_location(ast.With(items, self._body(node.body)), node)

    def visit_Return(self, node: ast.Return) -> Any:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        return ast.copy_location(ast.Return(self._hook("return_", node, value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # a nested Python function: its own decorator may rewrite it

    def kernel(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node = copy.deepcopy(node)
        node.body = self._body(node.body)
        node.decorator_list, node.returns = [], None
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        return node


def _as_load(expression: Any) -> Any:
    expression = copy.deepcopy(expression)
    for node in ast.walk(expression):
        if hasattr(node, "ctx"):
            node.ctx = ast.Load()
    return expression


def definition(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with its file's own line numbers. Raises KernelError where there is no source."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    for node in ast.walk(ast.parse(text, file)) if text else ():
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == line:
                return node
    raise KernelError(
        f"the source of {function.__name__} cannot be found",
        hint="define the kernel in a file or in a notebook cell, not in exec() or the bare interpreter",
    )


def rewrite(function: types.FunctionType, display_file: str) -> tuple[types.FunctionType, Hooks]:
    """The kernel-building twin of `function` and its hooks."""
    rewriter = _Rewrite(display_file)
    node = rewriter.kernel(definition(function))
    code = function.__code__
    free = [name for name in code.co_freevars if name != "__hooks"]
    outer = ast.parse("def __outer(): return None").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.args = ast.arguments([], [ast.arg(name) for name in ["__hooks", *free]], None, [], [], None, [])
    outer.body = [node, ast.Return(ast.Name(node.name, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    made = compile(module, code.co_filename, "exec", dont_inherit=True)
    outer_code = next(item for item in made.co_consts if isinstance(item, types.CodeType))
    inner = next(
        item for item in outer_code.co_consts if isinstance(item, types.CodeType) and item.co_name == node.name
    )
    hooks = Hooks(rewriter.spans)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells["__hooks"] = types.CellType(hooks)
    twin = types.FunctionType(
        inner, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in inner.co_freevars)
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin, hooks
