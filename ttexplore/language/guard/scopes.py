"""Which names a Python function binds, and which of them other functions share."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Scope:
    """The names of a function: `stored` in it or in an enclosing function, `foreign` to it (``global``, ``nonlocal``),
    and `captured` by functions inside it."""

    stored: frozenset[str]
    foreign: frozenset[str]
    captured: frozenset[str]

    @staticmethod
    def of(function: ast.FunctionDef, around: frozenset[str]) -> Scope:
        nodes = list(_own_statements(function.body))
        foreign = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
        captured = {
            name.id
            for node in nodes
            if isinstance(node, _Function | ast.ClassDef)
            for name in ast.walk(node)
            if isinstance(name, ast.Name)
        }
        stored = set(stored_names(function.body))
        return Scope(frozenset(stored) | around, frozenset(foreign), frozenset(captured & stored))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes below it, without nested functions."""
    yield node
    if not isinstance(node, _Function):
        for child in ast.iter_child_nodes(node):
            yield from own_nodes(child)


def _own_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if not isinstance(node, _Function | ast.ClassDef):
            yield from _own_statements(ast.iter_child_nodes(node))


def stored_names(body: Iterable[ast.AST], expressions: Iterable[ast.AST] = ()) -> list[str]:
    """The names that statements bind in their function; those in `expressions` come first."""
    names: dict[str, None] = {}
    for node in [*expressions, *body]:
        _collect(node, names, in_comprehension=False)
    return list(names)


def _collect(node: ast.AST, names: dict[str, None], *, in_comprehension: bool) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if not in_comprehension:
            names[name] = None
        case ast.NamedExpr(target=ast.Name(id=name)):
            # In a comprehension too it is the function that gets the name.
            names[name] = None
            _collect(node.value, names, in_comprehension=in_comprehension)
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            names[node.name] = None
            return
        case ast.Lambda():
            return
        case ast.alias():
            names[(node.asname or node.name).partition(".")[0]] = None
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            names[name] = None
        case ast.MatchMapping(rest=str(name)):
            names[name] = None
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            in_comprehension = True
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        _collect(child, names, in_comprehension=in_comprehension)
