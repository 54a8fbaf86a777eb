"""Rewrite a kernel's Python so that running it builds TIR, each statement with its source span.

Statements and expressions become calls of :class:`ttexplore.language.tracer.hooks.Hooks` (named ``__hooks``). The
function is compiled again with the original's closure cells and line numbers. Plain Python in a kernel stays plain
Python.
"""

from __future__ import annotations

import ast
import copy
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ttexplore.errors import Unsupported, caller_too_deep
from ttexplore.language.guard.names import HOOKS
from ttexplore.language.guard.scopes import Scope, own_nodes, stored_names
from ttexplore.language.guard.state import names_of
from ttexplore.language.tracer.hooks import OF_OBJECTS, Hooks
from ttexplore.language.tracer.spans import Located, definition, node_span, source_text
from ttexplore.record import Span

_TWIN = "__twin"


class _Rewriter(ast.NodeTransformer):
    """Turn the body of one kernel into calls of the hooks."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.spans: list[Span] = []
        self.owners: dict[int, str] = {}
        self.places: dict[int, dict[str, int]] = {}
        self.owner = ""
        # Names that were assigned before in the text: they may be scalar variables.
        self.assigned: set[str] = set()
        self.scope = Scope(frozenset(), frozenset(), frozenset())
        # Names of ours are used again after their statement: all names of a function are looked at around its loops.
        self.temporaries = 0
        self.depth = 0
        # Inside the arguments of print: a text that is only shown decides nothing.
        self.is_shown = False

    # -- making calls ------------------------------------------------------------------------------------------------

    def _index(self, node: Located, last: Located | None = None) -> int:
        """Record the span of a node, or from a node to `last`, and return its index."""
        self.spans.append(node_span(self.file, node, last))
        if self.owner:
            self.owners[len(self.spans) - 1] = self.owner
        return len(self.spans) - 1

    def _hook(
        self, name: str, node: Located, *args: ast.expr, last: Located | None = None, index: int | None = None
    ) -> ast.Call:
        """A call of a hook for a node, with a new span or the span at `index`."""
        function = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
        span_index = ast.Constant(self._index(node, last) if index is None else index)
        hook_call = ast.copy_location(ast.Call(function, [span_index, *args], []), node)
        if last is not None:
            hook_call.end_lineno, hook_call.end_col_offset = last.end_lineno, last.end_col_offset
        return hook_call

    @staticmethod
    def _later(body: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), body), body)

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"__temporary{self.temporaries}"

    def _target(self, target: ast.expr | None) -> ast.Constant:
        """The names that a loop or a `with` binds, each with its span's index, and whether they form a tuple."""
        is_tuple = isinstance(target, ast.Tuple | ast.List)
        elements = target.elts if is_tuple else [] if target is None else [target]
        names = tuple(
            (element.id if isinstance(element, ast.Name) else "_", self._index(element)) for element in elements
        )
        return _constant((names, is_tuple))

    def _settle(
        self, owner: str, method: str, names: tuple[str, ...], node: ast.stmt, *, arguments: bool = True
    ) -> ast.stmt:
        """``names = owner.method(names)``: set the names at the start or end of a body that is traced once."""
        function: ast.expr = ast.Name(owner, ast.Load())
        for attribute in method.split("."):
            function = ast.Attribute(function, attribute, ast.Load())
        call = ast.Call(function, [_constant(names)] if arguments else [], [])
        statement: ast.stmt = ast.Expr(call)
        if names:
            statement = ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())], call)
        return ast.copy_location(statement, node)

    def _find_places(self, index: int, body: list[ast.stmt]) -> None:
        """Record where the body binds each name, changes its value, or otherwise first mentions it."""
        bound, changed, mentioned = dict[str, ast.stmt](), dict[str, ast.stmt](), dict[str, ast.stmt]()
        for statement in _simple_statements(body):
            for name in stored_names([statement]):
                bound[name] = statement
            for node in ast.walk(statement):
                base = _changed_base(node)
                if base is not None:
                    changed.setdefault(base, statement)
                if isinstance(node, ast.Name):
                    mentioned.setdefault(node.id, statement)
        statement_of = mentioned | changed | bound
        indices = {statement: self._index(statement) for statement in dict.fromkeys(statement_of.values())}
        self.places[index] = {name: indices[statement] for name, statement in statement_of.items()}

    def _body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            statements += result if isinstance(result, list) else [result]
        return statements

    # -- expressions -------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> ast.expr:
        index = self._index(node)
        return self._hook("value", node, self._inside(node), index=index)

    def _inside(self, node: ast.expr) -> ast.expr:
        """A copy of an expression whose parts have been rewritten."""
        return cast(ast.expr, self.generic_visit(copy.copy(node)))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Mod):
            return self._hook("remainder", node, self.visit(node.left), self.visit(node.right))
        return self._value(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _makes_text(node.func):
            node = copy.copy(node)
            node.args = [self._hook("text", argument, self.visit(argument)) for argument in node.args]
            return node
        if isinstance(node.func, ast.Name) and node.func.id in OF_OBJECTS and not node.keywords:
            return self._hook("of_object", node, node.func, *map(self.visit, node.args))
        return self._value(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self._hook("not_", node, self.visit(node.operand))
        return self._value(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operators = _constant(tuple(type(op).__name__ for op in node.ops))
        return self._hook("compare", node, operators, *[self.visit(value) for value in [node.left, *node.comparators]])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        is_and = ast.Constant(isinstance(node.op, ast.And))
        expression = self.visit(node.values[0])
        for value in node.values[1:]:
            index = self._index(node)
            goes_on = self._hook("goes_on", node, is_and, ast.Constant(_effect(value)), expression, index=index)
            joined = self._hook("joined", node, is_and, self.visit(value), index=index)
            decided = self._hook("decided", node, index=index)
            expression = ast.copy_location(ast.IfExp(goes_on, joined, decided), node)
        return expression

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        effect = max(_effect(node.body), _effect(node.orelse), key=_EFFECTS.index)
        index = self._index(node)
        takes = self._hook("takes", node, ast.Constant(effect), self.visit(node.test), index=index)
        takes_other = self._hook("takes_other", node, index=index)
        then = ast.IfExp(takes, self.visit(node.body), ast.Constant(None))
        otherwise = ast.IfExp(takes_other, self.visit(node.orelse), ast.Constant(None))
        return self._hook(
            "chosen", node, ast.copy_location(then, node), ast.copy_location(otherwise, node), index=index
        )

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        bound = self._bound(node.target.id, self._unhooked(node.value), node)
        return self._hook("read", node, ast.copy_location(ast.NamedExpr(node.target, bound), node))

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node = cast(ast.comprehension, self.generic_visit(copy.copy(node)))
        node.ifs = [self._hook("passes", test, test) for test in node.ifs]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        node, value = copy.copy(node), self.visit(node.value)
        node.value = value if self.is_shown else self._hook("text", node.value, value)
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    def _subscript(self, node: ast.expr) -> ast.expr:
        def rewritten(item: ast.expr) -> ast.expr:
            if not isinstance(item, ast.Slice):
                return self.visit(item)
            bounds: list[ast.expr] = [
                self.visit(bound) if bound else ast.Constant(None) for bound in (item.lower, item.upper, item.step)
            ]
            return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), bounds, []), item)

        if isinstance(node, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in node.elts):
            return ast.copy_location(ast.Tuple([rewritten(item) for item in node.elts], ast.Load()), node)
        return rewritten(node)

    def _base(self, node: ast.expr) -> ast.expr:
        """The object that is indexed: the name of a scalar variable means the variable, not its value."""
        if not isinstance(node, ast.Name):
            return self.visit(node)
        return self._hook("name", node, node) if node.id in self.scope.stored else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        return self._hook("load", node, self._base(node.value), self._subscript(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        def asked(hook: str) -> ast.expr:
            function = ast.Attribute(ast.Name(HOOKS, ast.Load()), hook, ast.Load())
            call = ast.Call(function, [self._base(node.value), ast.Constant(node.attr)], [])
            return ast.copy_location(call, node)

        is_read = isinstance(node.ctx, ast.Load)
        if is_read and node.attr in ("shape", "dtype"):
            return asked("attribute")
        attribute = copy.copy(node)
        is_global = isinstance(node.value, ast.Name) and node.value.id not in self.scope.stored
        is_asked = is_read and (not is_global or node.attr == "__class__")
        attribute.value = asked("owner") if is_asked else self._base(node.value)
        return attribute

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.scope.stored:
            return self._hook("read", node, node)
        return node

    # -- statements --------------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Constant | ast.Yield | ast.Await):
            return node
        call = node.value
        self.is_shown = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
        hook_call = self._hook("statement", node, self._unhooked(call))
        self.is_shown = False
        return ast.copy_location(ast.Expr(hook_call), node)

    def _unhooked(self, node: ast.expr) -> ast.expr:
        """A value that fills a whole statement: a call needs no hook of its own."""
        return self._inside(node) if isinstance(node, ast.Call) else self.visit(node)

    def _bound(self, name: str, value: ast.expr, node: Located) -> ast.expr:
        """The value of a name after an assignment; a scalar variable is stored to instead."""
        may_be_variable = name in self.assigned
        self.assigned.add(name)
        if may_be_variable:
            return self._hook("rebind", node, ast.Constant(name), value, self._later(ast.Name(name, ast.Load())))
        return self._hook("bind", node, ast.Constant(name), value)

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return [ast.copy_location(ast.Assign([target], self._bound(target.id, value, node)), node)]
        if isinstance(target, ast.Attribute):
            hook_call = self._hook("bind", node, ast.Constant(target.attr), value)
            target = copy.copy(target)
            target.value = self._base(target.value)
            return [ast.copy_location(ast.Assign([target], hook_call), node)]
        if isinstance(target, ast.Subscript):
            base = self._base(_as_load(target.value))
            hook_call = self._hook("store", node, base, self._subscript(target.slice), value)
            return [ast.copy_location(ast.Expr(hook_call), node)]
        if isinstance(target, ast.Tuple | ast.List):
            names = [self._temporary() for _ in target.elts]
            targets: list[ast.expr] = []
            for element, name in zip(target.elts, names, strict=True):
                stored_name = ast.Name(name, ast.Store())
                targets.append(
                    ast.Starred(stored_name, ast.Store()) if isinstance(element, ast.Starred) else stored_name
                )
            out: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Tuple(targets, ast.Store())], value), node)]
            for element, name in zip(target.elts, names, strict=True):
                inner = element.value if isinstance(element, ast.Starred) else element
                out += self._assign(inner, ast.Name(name, ast.Load()), node)
            return out
        return [ast.copy_location(ast.Assign([target], value), node)]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        first = node.targets[0]
        self.temporaries = 0
        self.owner = first.id if isinstance(first, ast.Name) else ""
        value = self._unhooked(node.value) if isinstance(first, ast.Name) else self.visit(node.value)
        self.owner = ""
        if len(node.targets) == 1:
            return self._assign(first, value, node)
        # Each target gets the value, not what another one made of it.
        name = next((target.id for target in node.targets if isinstance(target, ast.Name)), "value")
        temporary = self._temporary()
        bound = self._hook("bind", node, ast.Constant(name), value)
        statements: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(temporary, ast.Store())], bound), node)]
        for target in node.targets:
            statements += self._assign(target, ast.Name(temporary, ast.Load()), node)
        return statements

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        self.temporaries = 0
        target, statements = node.target, list[ast.stmt]()
        if isinstance(target, ast.Subscript | ast.Attribute):
            # What says which element is evaluated once.
            target = copy.copy(target)
            target.value = self._once(target.value, statements)
            if isinstance(target, ast.Subscript):
                target.slice = self._once(target.slice, statements)
        old = self.visit(_as_load(target))
        value = self._hook("augmented", node, ast.Constant(type(node.op).__name__), old, self.visit(node.value))
        return [*statements, *self._assign(target, value, node)]

    def _once(self, node: ast.expr, statements: list[ast.stmt]) -> ast.expr:
        """The expression, or a name for its value if evaluating it has side effects."""
        if _effect(node) == "none":
            return node
        name = self._temporary()
        statements.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], self._subscript(node)), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        if node.value is not None:
            return self._assign(node.target, self._unhooked(node.value), node)
        if not isinstance(node.target, ast.Name):
            return ast.copy_location(ast.Pass(), node)
        annotation = node.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.copy_location(ast.parse(annotation.value, mode="eval").body, annotation)
            for inner in ast.walk(annotation):
                ast.copy_location(inner, node.annotation)
        hook_call = self._hook("tensor", node, ast.Constant(node.target.id), self._unhooked(annotation))
        return ast.copy_location(ast.Assign([node.target], hook_call), node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        target = self._target(node.target)
        # The span of a loop is its head: the statements of its body have spans of their own.
        iterable = node.iter
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range":
            bounds = [iterable.func, *[self.visit(argument) for argument in iterable.args]]
            iterable = self._hook("range", iterable, *bounds)
        else:
            iterable = self._unhooked(iterable)
        local_names = self._own(stored_names(node.body, expressions=[node.target]))
        has_else = ast.Constant(bool(node.orelse))
        index = self._index(node, node.iter)
        hook_call = self._hook(
            "loop", node, target, has_else, _constant(local_names), _constant(self.scope.captured), iterable,
            last=node.iter, index=index,
        )  # fmt: skip
        self._find_places(index, node.body)
        for inner in ast.walk(node.target):
            if isinstance(inner, ast.Name):
                self.assigned.discard(inner.id)
        bound = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
        return self._loop(
            node, node.target, hook_call, local_names, tuple(name for name in local_names if name not in bound)
        )

    def _loop(
        self,
        node: ast.For | ast.While,
        target: ast.expr,
        turns: ast.expr,
        names: tuple[str, ...],
        entered: tuple[str, ...],
    ) -> list[ast.stmt]:
        """The loop over iterations, with the values of names at the start of an iteration and after the loop."""
        owner = f"__turns{self.depth}"
        out: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(owner, ast.Store())], turns), node)]
        self.depth += 1
        body = self._body(node.body)
        self.depth -= 1
        is_once: ast.expr = ast.Attribute(ast.Name(owner, ast.Load()), "turn", ast.Load())

        def when_once(statement: ast.stmt) -> ast.stmt:
            return ast.copy_location(ast.If(is_once, [statement], []), node)

        if entered:
            body.insert(0, when_once(self._settle(owner, "turn.enter", entered, node)))
        loop = ast.For(target, ast.Name(owner, ast.Load()), body, self._body(node.orelse))
        out.append(ast.copy_location(loop, node))
        if names:
            out.append(when_once(self._settle(owner, "turn.leave", names, node)))
        return out

    def _own(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names that belong to this function."""
        return tuple(name for name in dict.fromkeys(names) if name not in self.scope.foreign)

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        if _effect(node.test) == "walrus":
            return self._python_while(node)
        names = self._own(stored_names(node.body))
        tested = {inner.id for inner in ast.walk(node.test) if isinstance(inner, ast.Name)}
        read = tuple(name for name in names if name in tested)
        index = self._index(node, node.test)
        hook_call = self._hook(
            "while_", node, ast.Constant(bool(node.orelse)), _constant(names), _constant(self.scope.captured),
            _constant(read), self._later(self.visit(node.test)), last=node.test, index=index,
        )  # fmt: skip
        self._find_places(index, node.body)
        return self._loop(node, ast.Name("__turn", ast.Store()), hook_call, names, names)

    def _python_while(self, node: ast.While) -> ast.stmt:
        """A loop whose condition binds names: Python runs it, because the condition of a kernel loop binds nothing."""
        test = self._hook("known", node, self.visit(node.test), last=node.test)
        inside = ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), "python_turn", ast.Load()), [], [])
        body = ast.copy_location(ast.With([ast.withitem(inside)], self._body(node.body)), node)
        return ast.copy_location(ast.While(test, [body], self._body(node.orelse)), node)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """A branch; one after another those of a chain of `elif`, of which Python nests each in the one before."""
        branches, is_chain = [node], _elif_of(node) is not None
        while (following := _elif_of(branches[-1])) is not None:
            branches.append(following)
        name, chain = f"__branch{self.depth}", f"__chain{self.depth}"
        self.depth += 1
        out: list[ast.stmt] = []
        settled: list[ast.stmt] = []
        for position, branch in enumerate(branches):
            names = self._own(stored_names([*branch.body, *branch.orelse]))
            begun = self._branch(name, names, branch)
            if not is_chain:
                # Branches in the second side have names of their own, too.
                second = self._otherwise(name, names, branch)
                self.depth -= 1
                return [*begun, *second, self._merged(name, names, branch)]
            entered: list[ast.stmt] = []
            if branch.orelse:
                entered = [
                    self._again(name, names, branch),
                    _statement(_call(chain, "enter", ast.Name(name, ast.Load())), branch),
                ]
            else:
                entered = [_statement(_call(chain, "end", ast.Name(name, ast.Load())), branch)]
            out += self._going_on(chain, [*begun, *entered], branch) if position else [*begun, *entered]
            merged = self._settle(chain, "left.merged", names, branch, arguments=False)
            leaves = _call(chain, "leaves", ast.Constant(position))
            settled.insert(0, ast.copy_location(ast.If(leaves, [merged], []), branch))
        if branches[-1].orelse:
            out += self._going_on(chain, self._body(branches[-1].orelse), branches[-1])
        self.depth -= 1
        chain_call = ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), "chain", ast.Load()), [], [])
        within = ast.withitem(chain_call, ast.Name(chain, ast.Store()))
        return [ast.copy_location(ast.With([within], [*out, *settled]), node)]

    def _branch(self, name: str, names: tuple[str, ...], node: ast.If) -> list[ast.stmt]:
        """The decision of a branch, and its first side."""
        index = self._index(node, node.test)
        hook_call = self._hook("branch", node, _constant(names), self.visit(node.test), last=node.test, index=index)
        self._find_places(index, [*node.body, *node.orelse])
        entered = _call(name, "then", ast.Constant(bool(node.orelse)))
        then_block = ast.copy_location(ast.With([ast.withitem(entered)], self._body(node.body)), node)
        return [
            ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], hook_call), node),
            ast.copy_location(ast.If(_attribute(name, "run_then"), [then_block], []), node),
        ]

    def _otherwise(self, name: str, names: tuple[str, ...], node: ast.If) -> list[ast.stmt]:
        """The second side of a branch, if it has one."""
        if not node.orelse:
            return []
        side = ast.With([ast.withitem(_call(name, "otherwise"))], self._body(node.orelse))
        body = [self._again(name, names, node), ast.copy_location(side, node)]
        return [ast.copy_location(ast.If(_attribute(name, "run_else"), body, []), node)]

    def _again(self, name: str, names: tuple[str, ...], node: ast.If) -> ast.stmt:
        settling = self._settle(name, "again", names, node, arguments=False)
        return ast.copy_location(ast.If(_attribute(name, "dynamic"), [settling], []), node)

    def _merged(self, name: str, names: tuple[str, ...], node: ast.If) -> ast.stmt:
        settling = self._settle(name, "merged", names, node, arguments=False)
        return ast.copy_location(ast.If(_attribute(name, "dynamic"), [settling], []), node)

    @staticmethod
    def _going_on(chain: str, body: list[ast.stmt], node: ast.If) -> list[ast.stmt]:
        return [ast.copy_location(ast.If(_attribute(chain, "goes_on"), body, []), node)]

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node = copy.copy(node)
        node.subject = self._hook("subject", node.subject, self.visit(node.subject))
        node.cases = [self.visit(case) for case in node.cases]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = self.visit(node.msg) if node.msg else None
        return ast.copy_location(ast.Assert(self._hook("truth", node, self.visit(node.test)), message), node)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("break")), [node], []), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.copy_location(ast.If(self._hook("jump", node, ast.Constant("continue")), [node], []), node)

    def visit_With(self, node: ast.With) -> ast.stmt:
        items: list[ast.withitem] = []
        for item in node.items:
            context, bound = item.context_expr, item.optional_vars
            start = node if item is node.items[0] else context
            target = self._target(bound)
            hook_call = self._hook("with_", start, target, self._unhooked(context), last=bound or context)
            items.append(ast.withitem(hook_call, bound))
        return ast.copy_location(ast.With(items, self._body(node.body)), node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value else ast.Constant(None)
        return ast.copy_location(ast.Return(self._hook("return_", node, value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A function inside the kernel is rewritten too, unless a decorator (T.macro) does that."""
        if node.decorator_list:
            return node
        node, outer = copy.copy(node), (self.assigned, self.scope)
        node.args = copy.copy(node.args)
        node.args.defaults = [self.visit(value) for value in node.args.defaults]
        node.args.kw_defaults = [value and self.visit(value) for value in node.args.kw_defaults]
        self.assigned, self.scope = set(self.assigned), Scope.of(node, self.scope.stored)
        node.body = self._body(node.body)
        self.assigned, self.scope = outer
        node.decorator_list = [ast.Attribute(ast.Name(HOOKS, ast.Load()), "function", ast.Load())]
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.pattern:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def kernel(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The rewritten function, without decorators and annotations."""
        node = copy.deepcopy(node)
        self.scope = Scope.of(node, frozenset())
        node.body = self._body(node.body)
        node.decorator_list, node.returns = [], None
        arguments = node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            argument.annotation = None
        # Defaults are copied to the rewritten function as values.
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [default and ast.Constant(None) for default in arguments.kw_defaults]
        return node


def _elif_of(node: ast.If) -> ast.If | None:
    """The `elif` that follows, or an `if` alone in the `else`, which is the same."""
    return node.orelse[0] if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) else None


def _attribute(name: str, attribute: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(name, ast.Load()), attribute, ast.Load())


def _call(name: str, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_attribute(name, method), [*arguments], [])


def _statement(value: ast.expr, node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(value), node)


def _as_load(expression: ast.expr) -> ast.expr:
    expression = copy.deepcopy(expression)
    for node in ast.walk(expression):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Starred | ast.Tuple | ast.List):
            node.ctx = ast.Load()
    return expression


def _makes_text(function: ast.expr) -> bool:
    """Whether a call converts its arguments to text: ``str(x)``, ``"{}".format(x)``."""
    if isinstance(function, ast.Attribute):
        return function.attr == "format" and isinstance(function.value, ast.Constant)
    return isinstance(function, ast.Name) and function.id in ("str", "repr", "format")


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _simple_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in a body that have no body themselves, in order."""
    for statement in body:
        inner = [
            child
            for child in ast.iter_child_nodes(statement)
            if isinstance(child, ast.stmt | ast.match_case | ast.ExceptHandler)
        ]
        if isinstance(statement, ast.FunctionDef) or not inner:
            yield statement
        for child in inner if not isinstance(statement, ast.FunctionDef) else []:
            yield from _simple_statements([child] if isinstance(child, ast.stmt) else child.body)


def _changed_base(node: ast.AST) -> str | None:
    """The name whose element or attribute is stored to, or whose method is called."""
    if isinstance(node, ast.Call):
        node = node.func
        if not isinstance(node, ast.Attribute):
            return None
    elif not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
        return None
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


_EFFECTS = ("none", "call", "walrus")


def _effect(expression: ast.expr) -> str:
    """The side effects that evaluating an expression may have."""
    kinds = [type(node) for node in own_nodes(expression)]
    if ast.NamedExpr in kinds:
        return "walrus"
    return "call" if any(kind in (ast.Call, ast.Await) for kind in kinds) else "none"


Compiled = tuple[types.CodeType, tuple[Span, ...], dict[int, str], dict[int, dict[str, int]], tuple[str, ...]]


@functools.lru_cache(maxsize=256)
def _compiled(
    file: str, text: str, name: str, line: int, free: tuple[str, ...], display: str, node: ast.FunctionDef
) -> Compiled:
    """Compile a rewritten function. `node` follows from `file`, `text`, `name` and `line`.

    Raises Unsupported if Python cannot compile it: each loop or branch of the kernel becomes a `with` block, and Python
    allows 20 nested ones.
    """
    del text, line
    try:
        return _compiled_twin(file, name, free, display, node)
    except (SyntaxError, RecursionError) as error:
        if isinstance(error, RecursionError) and (of_the_caller := caller_too_deep(f"reading {name}")):
            raise of_the_caller from error
        deep = error.lineno if isinstance(error, SyntaxError) and error.lineno else node.lineno
        raise Unsupported(
            "L016",
            f"the loops and branches of {name} are nested too deeply",
            hint="move some of them into a function decorated with @T.macro",
            span=Span(display, deep, 1, deep, 1),
        ) from error


def _compiled_twin(file: str, name: str, free: tuple[str, ...], display: str, node: ast.FunctionDef) -> Compiled:
    rewriter = _Rewriter(display)
    rewritten = rewriter.kernel(node)
    outer = cast(ast.FunctionDef, ast.parse("def __outer(): return None").body[0])
    outer.args = ast.arguments([], [ast.arg(free_name) for free_name in [HOOKS, *free]], None, [], [], None, [])
    # Under its own name the function would hide that of the module from itself.
    rewritten.name = _TWIN
    outer.body = [rewritten, ast.Return(ast.Name(_TWIN, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, node)], []))
    code = _inner(compile(module, file, "exec", dont_inherit=True), "__outer")
    twin = _inner(code, _TWIN)
    return twin, tuple(rewriter.spans), rewriter.owners, rewriter.places, names_of(twin)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(item for item in code.co_consts if isinstance(item, types.CodeType) and item.co_name == name)


def rewrite(function: types.FunctionType, display: str) -> types.FunctionType:
    """The kernel-building twin of `function`, whose file is displayed as `display`.

    Raises KernelError if the function's source cannot be found.
    """
    code = function.__code__
    free = tuple(name for name in code.co_freevars if name != HOOKS)
    twin_code, spans, owners, name_spans, used = _compiled(
        code.co_filename, source_text(function), code.co_name, code.co_firstlineno, free, display, definition(function)
    )
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HOOKS] = types.CellType(Hooks(spans, owners, name_spans, used))
    closure = tuple(cells[name] for name in twin_code.co_freevars)
    twin = types.FunctionType(twin_code, function.__globals__, function.__name__, function.__defaults__, closure)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin
