"""How many axes the blocks of a Triton kernel have.

A block of one axis is a row beside a block of two, even if it holds a value for each row: ``v / tl.sum(v, 1)`` lacks
``[:, None]``. Values do not say which it is, so it is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from ttexplore.porting.foreign.work import Refused

# What has as many axes as the largest of its arguments, beside functions of elements.
_ALIKE = {
    "load",
    "where",
    "fma",
    "cast",
    "zeros_like",
    "advance",
    "multiple_of",
    "max_contiguous",
    "trans",
    "dot",
    "cumsum",
}
_NUMBERS = {"program_id", "num_programs", "cdiv"}


class Ranks:
    """The numbers of axes of the variables of a function, in the order of its text; None for what is not known."""

    def __init__(
        self, parameters: Iterable[str], in_language: Callable[[ast.AST], str], of_elements: Collection[str]
    ) -> None:
        self.known: dict[str, int | None] = dict.fromkeys(parameters, 0)
        self.in_language, self.of_elements = in_language, of_elements

    def check(self, body: Iterable[ast.stmt]) -> None:
        """Check that blocks with one axis and with two do not meet. Raises Refused where they do."""
        for statement in body:
            match statement:
                case ast.Assign(targets, value):
                    for target in targets:
                        self.assign(target, value)
                case ast.AnnAssign(target, _, value) if value is not None:
                    self.assign(target, value)
                case ast.AugAssign(ast.Name(name) as target, _, value):
                    self.known[name] = self.joined(statement, [target, value])
                case ast.For(ast.Name(name), _, inner):
                    self.known[name] = 0
                    self.check(inner)
                case ast.If(_, then, otherwise):
                    self.check(then)
                    self.check(otherwise)
                case ast.Expr(value) | ast.Return(ast.expr() as value):
                    self.of(value)
                case _:
                    pass

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ((ast.Tuple(targets) | ast.List(targets)), (ast.Tuple(values) | ast.List(values))):
                ranks = [self.of(value) for value in values]
                for element, rank in zip(targets, ranks, strict=False):
                    self.known |= {element.id: rank} if isinstance(element, ast.Name) else {}
            case ast.Name(name), _:
                self.known[name] = self.of(value)
            case _:
                self.of(value)
                self.known |= {node.id: None for node in ast.walk(target) if isinstance(node, ast.Name)}

    def joined(self, node: ast.expr | ast.stmt, operands: Iterable[ast.expr]) -> int | None:
        """The number of axes of what an operation makes of some values."""
        ranks = {self.of(operand) for operand in operands}
        if len(ranks - {0, None}) > 1:
            raise Refused(
                f"blocks of different numbers of axes, `{ast.unparse(node)[:60]}`,", getattr(node, "lineno", 0)
            )
        return None if None in ranks else max((rank for rank in ranks if rank is not None), default=None)

    def of(self, node: ast.expr) -> int | None:
        """The number of axes of a value."""
        match node:
            case ast.Constant():
                return 0
            case ast.Name(name):
                return self.known.get(name)
            case ast.UnaryOp(_, operand) | ast.Attribute(operand, "T"):
                return self.of(operand)
            case ast.BinOp(left, _, right) | ast.Compare(left, _, [right]):
                return self.joined(node, (left, right))
            case ast.BoolOp(_, values):
                return self.joined(node, values)
            case ast.IfExp(_, then, otherwise):
                ranks = {self.of(then), self.of(otherwise)}
                return ranks.pop() if len(ranks) == 1 else None
            case ast.Subscript(value, ast.Tuple(indices)):
                self.of(value)
                return len(indices)
            case ast.Call():
                return self.call(node)
            case _:
                return None

    def call(self, node: ast.Call) -> int | None:
        name, keywords = (
            self.in_language(node.func),
            {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg},
        )
        match name, node.args:
            case "", values:
                match node.func:
                    case ast.Attribute(value, "to"):
                        return self.of(value)
                    case ast.Name("float" | "min" | "max" | "abs"):
                        return self.joined(node, values)
                    case _:
                        return None
            case "arange", _:
                return 1
            case (("zeros" | "full"), [ast.List(dimensions) | ast.Tuple(dimensions), *_]):
                return len(dimensions)
            case "make_block_ptr", _:
                shape = node.args[4] if len(node.args) > 4 else keywords.get("block_shape")
                return len(shape.elts) if isinstance(shape, ast.Tuple | ast.List) else None
            case (("sum" | "max" | "min"), [value, *rest]):
                rank, axis = self.of(value), rest[0] if rest else keywords.get("axis")
                if "keep_dims" in keywords:
                    return None
                return 0 if axis is None else None if rank is None else rank - 1
            case "expand_dims", [value, *_]:
                rank = self.of(value)
                return None if rank is None else rank + 1
            case "store", [address, value, *rest]:
                to, stored = self.of(address), self.joined(node, [value, *rest, *keywords.values()])
                if to is not None and stored is not None and stored not in (0, to):
                    raise Refused(f"a block with other axes than its address, `{ast.unparse(node)[:60]}`,", node.lineno)
                return 0
            case _, values if name in _ALIKE or name in self.of_elements:
                aligned = [argument for key, argument in keywords.items() if key in ("mask", "other", "acc", "x", "y")]
                return self.joined(
                    node, [*values[: 1 if name in ("cast", "advance", "trans", "cumsum") else None], *aligned]
                )
            case _:
                return 0 if name in _NUMBERS else None
