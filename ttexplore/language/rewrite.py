"""Rewriting a kernel's Python so that running it builds TIR, each statement with its source span.

The statements and expressions of the function become calls of :class:`ttexplore.language.hooks.Hooks` (the name
``__hooks``), and it is compiled again with the original's closure cells and its file's own line numbers. Plain Python
in a kernel stays plain Python.
"""

from __future__ import annotations

import ast
import copy
import functools
import types
from typing import Any, cast

from ttexplore.language.hooks import Hooks
from ttexplore.language.spans import definition, node_span, source_text
from ttexplore.record import Span

_HOOKS = "__hooks"


class _Rewriter(ast.NodeTransformer):
    """Turns the body of one kernel into calls of the hooks."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spans: list[Span] = []
        self.owners: dict[int, str] = {}
        self.owner = ""
        # Names that were assigned before in the text: they may be scalar variables.
        self.assigned: set[str] = set()
        self.temporaries = 0
        self.is_nested = False

    # -- making calls ------------------------------------------------------------------------------------------------

    def _index(self, node: Any, last: Any = None) -> ast.Constant:
        self.spans.append(node_span(self.file, node, last))
        if self.owner:
            self.owners[len(self.spans) - 1] = self.owner
        return ast.Constant(len(self.spans) - 1)

    def _hook(self, name: str, node: Any, *args: ast.expr, last: Any = None) -> Any:
        function = ast.Attribute(ast.Name(_HOOKS, ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(function, [self._index(node, last), *args], []), node)

    @staticmethod
    def _later(body: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), body), body)

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"__temporary{self.temporaries}"

    def _target(self, target: Any) -> ast.Constant:
        """The names that a loop or a with binds, each with its span's index, and whether they are a tuple."""
        is_tuple = isinstance(target, ast.Tuple | ast.List)
        parts: list[Any] = target.elts if is_tuple else [] if target is None else [target]
        names = tuple((part.id if isinstance(part, ast.Name) else "_", self._index(part).value) for part in parts)
        for _, node in ((0, inner) for part in parts for inner in ast.walk(part)):
            if isinstance(node, ast.Name):
                self.assigned.discard(node.id)
        return ast.Constant(cast(Any, (names, is_tuple)))

    def _body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made += result if isinstance(result, list) else [result]
        return made

    # -- expressions -------------------------------------------------------------------------------------------------

    def _value(self, node: Any) -> Any:
        made = self._hook("value", node)
        made.args.append(self.generic_visit(copy.copy(node)))
        return made

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._value(node)

    def visit_Call(self, node: ast.Call) -> Any:
        return self._value(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self._hook("not_", node, self.visit(node.operand))
        return self._value(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        operators = ast.Constant(cast(Any, tuple(type(op).__name__ for op in node.ops)))
        return self._hook("compare", node, operators, *[self.visit(value) for value in [node.left, *node.comparators]])

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
            bounds: list[Any] = [
                self.visit(bound) if bound else ast.Constant(None) for bound in (item.lower, item.upper, item.step)
            ]
            return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), bounds, []), item)

        if isinstance(node, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in node.elts):
            return ast.copy_location(ast.Tuple([part(item) for item in node.elts], ast.Load()), node)
        return part(node)

    def _base(self, node: Any) -> Any:
        """What is indexed: a scalar variable by its name is itself, not its value."""
        return node if isinstance(node, ast.Name) else self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        return self._hook("load", node, self._base(node.value), self._subscript(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.ctx, ast.Load) and node.attr in ("shape", "dtype"):
            function = ast.Attribute(ast.Name(_HOOKS, ast.Load()), "attribute", ast.Load())
            call = ast.Call(function, [self._base(node.value), ast.Constant(node.attr)], [])
            return ast.copy_location(call, node)
        if isinstance(node.value, ast.Name):
            return node
        return self.generic_visit(copy.copy(node))

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.assigned:
            return self._hook("read", node, node)
        return node

    # -- statements --------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Constant | ast.Yield | ast.Await):
            return node
        return ast.copy_location(ast.Expr(self._hook("statement", node, self._unhooked(node.value))), node)

    def _unhooked(self, node: ast.expr) -> Any:
        """A value that is a whole statement's: a call needs no hook of its own."""
        return self.generic_visit(copy.copy(node)) if isinstance(node, ast.Call) else self.visit(node)

    def _assign(self, target: Any, value: Any, node: Any) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            name = ast.Constant(target.id)
            if target.id in self.assigned:
                made = self._hook("rebind", node, name, value, self._later(ast.Name(target.id, ast.Load())))
            else:
                made = self._hook("bind", node, name, value)
            self.assigned.add(target.id)
            return [ast.copy_location(ast.Assign([target], made), node)]
        if isinstance(target, ast.Attribute):
            made = self._hook("bind", node, ast.Constant(target.attr), value)
            return [ast.copy_location(ast.Assign([target], made), node)]
        if isinstance(target, ast.Subscript):
            base = self._base(_as_load(target.value))
            made = self._hook("store", node, base, self._subscript(target.slice), value)
            return [ast.copy_location(ast.Expr(made), node)]
        if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(part, ast.Starred) for part in target.elts):
            names = [self._temporary() for _ in target.elts]
            unpacked = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            made = [cast(ast.stmt, ast.copy_location(ast.Assign([unpacked], value), node))]
            for element, name in zip(target.elts, names, strict=True):
                made += self._assign(element, ast.Name(name, ast.Load()), node)
            return made
        return [ast.copy_location(ast.Assign([target], value), node)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        first = node.targets[0]
        self.owner = first.id if isinstance(first, ast.Name) else ""
        value = self._unhooked(node.value) if isinstance(first, ast.Name) else self.visit(node.value)
        self.owner = ""
        made = self._assign(first, value, node)
        for target in node.targets[1:]:
            # The further names of `a = b = value` stand for the same thing.
            if isinstance(first, ast.Name):
                made += self._assign(target, ast.Name(first.id, ast.Load()), node)
            else:
                made += self._assign(target, self.visit(_as_load(first)), node)
        return made

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        old = self.visit(_as_load(node.target))
        binary = ast.copy_location(ast.BinOp(old, node.op, self.visit(node.value)), node)
        return self._assign(node.target, self._hook("value", node, binary), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            return self._assign(node.target, self._unhooked(node.value), node)
        if not isinstance(node.target, ast.Name):
            return ast.copy_location(ast.Pass(), node)
        annotation = node.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.copy_location(ast.parse(annotation.value, mode="eval").body, annotation)
            for inner in ast.walk(annotation):
                ast.copy_location(inner, node.annotation)
        made = self._hook("tensor", node, ast.Constant(node.target.id), self._unhooked(annotation))
        return ast.copy_location(ast.Assign([node.target], made), node)

    def visit_For(self, node: ast.For) -> Any:
        target = self._target(node.target)
        # The span of a loop is its head: the statements of its body have spans of their own.
        iterable: Any = node.iter
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range":
            bounds = [iterable.func, *[self.visit(argument) for argument in iterable.args]]
            iterable = self._hook("range", iterable, *bounds)
        else:
            iterable = self._unhooked(iterable)
        made = self._hook("iterate", node, target, ast.Constant(bool(node.orelse)), iterable, last=node.iter)
        return ast.copy_location(ast.For(node.target, made, self._body(node.body), self._body(node.orelse)), node)

    def visit_While(self, node: ast.While) -> Any:
        made = self._hook(
            "while_", node, ast.Constant(bool(node.orelse)), self._later(self.visit(node.test)), last=node.test
        )
        turn = ast.Name(self._temporary(), ast.Store())
        return ast.copy_location(ast.For(turn, made, self._body(node.body), self._body(node.orelse)), node)

    def visit_If(self, node: ast.If) -> Any:
        name = self._temporary()

        def attribute(what: str) -> ast.Attribute:
            return ast.Attribute(ast.Name(name, ast.Load()), what, ast.Load())

        def block(entered: ast.expr, body: list[ast.stmt]) -> ast.stmt:
            return ast.copy_location(ast.With([ast.withitem(entered)], body), node)

        made = self._hook("branch", node, self.visit(node.test), last=node.test)
        out: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], made), node)]
        entered = ast.Call(attribute("then"), [ast.Constant(bool(node.orelse))], [])
        out.append(ast.copy_location(ast.If(attribute("run_then"), [block(entered, self._body(node.body))], []), node))
        if node.orelse:
            entered = ast.Call(attribute("otherwise"), [], [])
            body = [block(entered, self._body(node.orelse))]
            out.append(ast.copy_location(ast.If(attribute("run_else"), body, []), node))
        return out

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = self.visit(node.msg) if node.msg else None
        return ast.copy_location(ast.Assert(self._hook("truth", node, self.visit(node.test)), message), node)

    def visit_Break(self, node: ast.Break) -> Any:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("break")), [node], []), node)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("continue")), [node], []), node)

    def visit_With(self, node: ast.With) -> Any:
        items: list[ast.withitem] = []
        for item in node.items:
            context, bound = item.context_expr, item.optional_vars
            start = node if item is node.items[0] else context
            target = self._target(bound)
            made = self._hook("with_", start, target, self._unhooked(context), last=bound or context)
            items.append(ast.withitem(made, bound))
        return ast.copy_location(ast.With(items, self._body(node.body)), node)

    def visit_Return(self, node: ast.Return) -> Any:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        if self.is_nested:
            return ast.copy_location(ast.Return(value), node)
        return ast.copy_location(ast.Return(self._hook("return_", node, value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """A function inside the kernel: rewritten too, unless a decorator (T.macro) does that itself."""
        if node.decorator_list:
            return node
        node, outer = copy.copy(node), (self.assigned, self.is_nested)
        self.assigned, self.is_nested = set(self.assigned), True
        node.body = self._body(node.body)
        self.assigned, self.is_nested = outer
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def kernel(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The rewritten function, without decorators and annotations."""
        node = copy.deepcopy(node)
        node.body = self._body(node.body)
        node.decorator_list, node.returns = [], None
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            argument.annotation = None
        # Defaults are copied to the rewritten function as values.
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [default and ast.Constant(None) for default in arguments.kw_defaults]
        return node


def _as_load(expression: Any) -> Any:
    expression = copy.deepcopy(expression)
    for node in ast.walk(expression):
        if hasattr(node, "ctx"):
            node.ctx = ast.Load()  # pyright: ignore[reportAttributeAccessIssue]
    return expression


@functools.lru_cache(maxsize=256)
def _compiled(
    file: str, text: str, name: str, line: int, free: tuple[str, ...], display: str, node: ast.FunctionDef
) -> tuple[types.CodeType, tuple[Span, ...], dict[int, str]]:
    """The code of a rewritten function. `node` follows from `file`, `text`, `name` and `line`."""
    del text, line
    rewriter = _Rewriter(display)
    made = rewriter.kernel(node)
    outer = cast(ast.FunctionDef, ast.parse("def __outer(): return None").body[0])
    outer.args = ast.arguments([], [ast.arg(free_name) for free_name in [_HOOKS, *free]], None, [], [], None, [])
    outer.body = [made, ast.Return(ast.Name(made.name, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
    code = _inner(compile(module, file, "exec", dont_inherit=True), "__outer")
    return _inner(code, name), tuple(rewriter.spans), rewriter.owners


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(item for item in code.co_consts if isinstance(item, types.CodeType) and item.co_name == name)


def rewrite(function: types.FunctionType, display: str) -> types.FunctionType:
    """The kernel-building twin of `function`, whose file is shown as `display`.

    Raises KernelError where the function's source cannot be found.
    """
    code = function.__code__
    free = tuple(name for name in code.co_freevars if name != _HOOKS)
    made, spans, owners = _compiled(
        code.co_filename, source_text(function), code.co_name, code.co_firstlineno, free, display, definition(function)
    )
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[_HOOKS] = types.CellType(Hooks(spans, owners))
    closure = tuple(cells[name] for name in made.co_freevars)
    twin = types.FunctionType(made, function.__globals__, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin
