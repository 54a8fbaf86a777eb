"""What a rewritten kernel calls while it runs: every statement and expression of it passes through here."""

from __future__ import annotations

import builtins
import contextlib
import operator
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

from tvm import ir, tirx

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import is_buffer, set_span, to_expr
from ttexplore.ir.sizes import extents_of
from ttexplore.language.builder import (
    Allocation,
    Builder,
    Grid,
    Loop,
    TensorSpec,
    check_rank,
    condition,
    current,
    element,
    is_dynamic,
    plain,
    refuse_unknown,
    sequence,
    unsupported,
)
from ttexplore.language.dtypes import dtype
from ttexplore.language.math import if_then_else
from ttexplore.language.tile import region
from ttexplore.record import Span

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip

# The target of a loop or a with: names with their span indices, and whether it is a tuple.
Target = tuple[tuple[tuple[str, int], ...], bool]


def is_variable(value: Any) -> bool:
    """Whether a value is a scalar variable of T.alloc_var."""
    return is_buffer(value) and value.ty.storage_scope == "local.var"


class Hooks:
    """The hooks of one rewritten function. `spans` is indexed by the first argument of each hook; `owners` has the
    name that an expression's result will belong to, for allocations that are no assignment of their own."""

    def __init__(self, spans: tuple[Span, ...], owners: dict[int, str]) -> None:
        self.spans = spans
        self.owners = owners

    def _at(self, index: int) -> Builder:
        builder = current("this")
        builder.span = self.spans[index]
        return builder

    def value(self, index: int, result: Any) -> Any:
        """The value of an expression, with its span."""
        result = plain(result)
        if isinstance(result, ir.Expr):
            if result.span is None and not isinstance(result, ir.Var):
                set_span(result, self._at(index).tvm_span())
        elif isinstance(result, Allocation) or (isinstance(result, TensorSpec) and result.output):
            return result.make(self._at(index), self.owners.get(index, "buffer"))
        return result

    def read(self, index: int, value: Any) -> Any:
        """A name read as a value: scalar variables are loads."""
        if is_variable(value):
            return self.value(index, tirx.BufferLoad(value, [tirx.const(0, "int32")]))
        return value

    def statement(self, index: int, result: Any) -> None:
        builder = self._at(index)
        if isinstance(result, ir.Call):
            builder.emit(tirx.Evaluate(result, builder.tvm_span()))
        elif isinstance(result, tirx.Stmt):
            builder.emit(result)
        elif isinstance(result, Allocation):
            result.make(builder, "buffer")

    def bind(self, index: int, name: str, result: Any) -> Any:
        return self._at(index).bind(name, result)

    def rebind(self, index: int, name: str, result: Any, old: Callable[[], Any]) -> Any:
        """An assignment to a name that may be a scalar variable: then it is a store."""
        try:
            before = old()
        except NameError:
            before = None
        if is_variable(before) and not isinstance(result, Allocation):
            self._at(index).store(before, (0,), result)
            return before
        return self.bind(index, name, result)

    def tensor(self, index: int, name: str, annotation: Any) -> Any:
        """``A: T.Tensor(...)`` in the body of an eager kernel: a parameter."""
        if not isinstance(annotation, TensorSpec):
            raise KernelError(
                f"{name} is annotated with {annotation!r}, which is no tensor",
                hint=f"write {name}: T.Tensor((M, N), dtype)",
            )
        return annotation.make(self._at(index), name)

    def store(self, index: int, base: Any, indices: Any, result: Any) -> None:
        builder = self._at(index)
        if is_buffer(base):
            builder.store(base, indices if isinstance(indices, tuple) else (indices,), result)
        else:
            base[indices] = result

    def load(self, index: int, base: Any, indices: Any) -> Any:
        if not is_buffer(base):
            return self.value(index, base[indices])
        parts = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(part, slice) for part in parts):
            return self.value(index, region(base, parts))
        check_rank(base, parts)
        places = [element(part, f"an index of {base.name}") for part in parts]
        return self.value(index, tirx.BufferLoad(base, places))

    def attribute(self, base: Any, name: str) -> Any:
        """``A.shape`` as ints and T.dynamic sizes, for buffers; ``.dtype`` as one of the language, for values too."""
        if is_buffer(base) and name == "shape":
            return extents_of(base)
        if name == "dtype" and isinstance(base, ir.Expr) and not is_buffer(base):
            return dtype(str(base.ty.dtype))
        return getattr(base, name)

    def range(self, index: int, function: Any, *bounds: Any) -> Any:
        """The iterable of ``for x in range(...)``: a kernel loop, if `function` is Python's own range."""
        if function is not builtins.range:
            return function(*bounds)
        if not 1 <= len(bounds) <= 3:
            raise KernelError(f"range takes 1 to 3 bounds, not {len(bounds)}")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        return span_loop(tirx.ForKind.SERIAL, start, stop, bounds[2] if len(bounds) == 3 else 1)

    def iterate(self, index: int, target: Target, has_else: bool, iterable: Any) -> Iterator[Any]:
        """Run the body of a loop: once under a TIR loop, or as Python would."""
        builder = self._at(index)
        if isinstance(iterable, range):
            iterable = span_loop(tirx.ForKind.SERIAL, iterable.start, iterable.stop, iterable.step)
        if isinstance(iterable, Loop):
            if has_else:
                raise unsupported("`else` of a kernel loop", "set a T.alloc_var before `break` and test it afterwards")
            yield from self._loop(builder, iterable, target)
            return
        if is_dynamic(iterable) or isinstance(iterable, Grid):
            raise KernelError("this cannot be iterated over", hint="use range, T.serial, T.Parallel or T.Pipelined")
        for item in iterable:
            with builder.inside("python"):
                yield item

    def _variables(self, extents: tuple[Any, ...], target: Target, default: str, what: str) -> list[Any]:
        names, is_tuple = target
        if is_tuple and len(names) != len(extents):
            raise KernelError(
                f"{what} gives {len(extents)} {'index' if len(extents) == 1 else 'indices'} to {len(names)} names",
                hint="name each index",
            )
        builder = current(what)
        outer, made = builder.span, list[Any]()
        for axis in range(len(extents)):
            name = default[axis] if len(default) > axis else f"i{axis}"
            if is_tuple or (names and len(extents) == 1):
                own, builder.span = names[axis][0], self.spans[names[axis][1]]
                name = own if own != "_" else name
            made.append(tirx.Var(name, "int32", builder.tvm_span()))
        builder.span = outer
        return made

    def _loop(self, builder: Builder, loop: Loop, target: Target) -> Iterator[Any]:
        span = builder.tvm_span()
        variables = self._variables(loop.extents, target, "ijkl", "the loop")

        def finish(nest: Any) -> Any:
            for axis in reversed(range(len(variables))):
                annotations = loop.annotations if axis == 0 else {}
                low = to_expr(loop.start if loop.step == 1 else 0)
                nest = tirx.For(
                    variables[axis], low, to_expr(loop.extents[axis]), loop.kind, nest, None, annotations, None, span
                )
            return nest

        with builder.frame(finish), builder.inside("tir"):
            if loop.step != 1:
                stepped = to_expr(loop.start) + variables[0] * loop.step
                yield builder.bind(f"{variables[0].name}_value", stepped)
            else:
                yield tuple(variables) if target[1] or len(variables) > 1 else variables[0]

    def while_(self, index: int, has_else: bool, test: Callable[[], Any]) -> Iterator[None]:
        builder = self._at(index)
        value = test()
        if not is_dynamic(value):
            while value:
                with builder.inside("python"):
                    yield
                value = test()
            return
        if has_else:
            raise unsupported("`else` of a kernel loop", "set a T.alloc_var before `break` and test it afterwards")
        span = builder.tvm_span()
        with builder.frame(lambda body: tirx.While(condition(value), body, span)), builder.inside("tir"):
            yield

    @contextlib.contextmanager
    def with_(self, index: int, target: Target, manager: Any) -> Generator[Any]:
        if not isinstance(manager, Grid):
            with manager as value:
                yield value
            return
        builder = self._at(index)
        span = builder.tvm_span()
        if builder.blocks:
            raise unsupported("a second T.Kernel in one function", "write one kernel for each launch")
        if builder.enclosing:
            raise KernelError("T.Kernel is inside a loop or a branch", hint="put it at the top level of the kernel")
        variables = self._variables(manager.extents, target, "", "T.Kernel")
        builder.blocks = tuple(variables)

        def finish(nest: Any) -> Any:
            for axis in reversed(range(len(variables))):
                annotations: dict[str, Any] = (
                    {"threads": manager.threads} if axis == 0 and isinstance(manager.threads, int) else {}
                )
                binding = tirx.IterVar(
                    cast(Any, None), tirx.Var(variables[axis].name, "int32"), 1, "blockIdx." + "xyz"[axis]
                )
                nest = tirx.For(
                    variables[axis], tirx.const(0, "int32"), to_expr(manager.extents[axis]),
                    tirx.ForKind.THREAD_BINDING, nest, binding, annotations, None, span,
                )  # fmt: skip
            return nest

        with builder.frame(finish):
            yield tuple(variables) if target[1] or len(variables) > 1 else variables[0]

    def branch(self, index: int, test: Any) -> Branch:
        return Branch(self._at(index), plain(test))

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
            if not is_dynamic(right):
                # A known operand either decides the whole or drops out.
                if decides(right):
                    return bool(right)
                continue
            value = combine(condition(value), condition(right))
        return self.value(index, value)

    def not_(self, index: int, value: Any) -> Any:
        return self.value(index, tirx.Not(condition(value))) if is_dynamic(value) else not value

    def choose(self, index: int, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if not is_dynamic(test):
            return then() if test else otherwise()
        return self.value(index, if_then_else(test, then(), otherwise(), what="`x if c else y`"))

    def compare(self, index: int, operators: tuple[str, ...], *values: Any) -> Any:
        result: Any = True
        for name, left, right in zip(operators, values, values[1:], strict=False):
            one = plain(_COMPARE[name](left, right))
            if is_dynamic(one) and is_dynamic(result):
                result = tirx.And(condition(result), condition(one))
            elif is_dynamic(one):
                result = one if result else False
            elif is_dynamic(result):
                result = result if one else False
            else:
                result = result and one
        return self.value(index, result)

    def truth(self, index: int, value: Any) -> Any:
        """The condition of an ``assert``."""
        if is_dynamic(value):
            raise unsupported("an assert on a value known only when the kernel runs", "leave it out")
        return value

    def jump(self, index: int, kind: str) -> bool:
        """Whether ``break`` or ``continue`` leaves a Python loop now; a kernel loop gets the statement instead."""
        builder, under_branch = self._at(index), False
        for around in reversed(builder.enclosing):
            match around:
                case "branch":
                    under_branch = True
                case "python":
                    if under_branch:
                        raise KernelError(
                            f"`{kind}` depends on a value known only when the kernel runs, but Python runs this loop",
                            hint="loop with range or T.serial",
                        )
                    return True
                case "tir" | "call":
                    break
        builder.emit((tirx.Break if kind == "break" else tirx.Continue)(builder.tvm_span()))
        return False

    def return_(self, index: int, value: Any) -> Any:
        builder = self._at(index)
        around = builder.enclosing
        own = around[len(around) - around[::-1].index("call") :] if "call" in around else around
        if "branch" in own or "tir" in own:
            raise unsupported("`return` inside a kernel loop or a branch on run-time values", "use if and else")
        if "call" not in around and value is not None:
            builder.outputs = list(value) if isinstance(value, tuple | list) else [value]
        return value


class Branch:
    """An ``if``: decided now where the condition is plain Python, else a TIR branch."""

    def __init__(self, builder: Builder, test: Any) -> None:
        self.builder, self.test, self.dynamic = builder, test, is_dynamic(test)
        self.run_then = self.dynamic or bool(test)
        self.run_else = self.dynamic or not test
        self.span = builder.span
        self.then_body: Any = None

    @contextlib.contextmanager
    def then(self, has_else: bool) -> Generator[None]:
        if not self.dynamic:
            yield
            return
        with self.builder.collect() as body, self.builder.inside("branch"):
            yield
        self.builder.span = self.span
        self.then_body = sequence(body, self.builder.tvm_span())
        if not has_else:
            self._finish(None)

    @contextlib.contextmanager
    def otherwise(self) -> Generator[None]:
        if not self.dynamic:
            yield
            return
        with self.builder.collect() as body, self.builder.inside("branch"):
            yield
        self.builder.span = self.span
        self._finish(sequence(body, self.builder.tvm_span()))

    def _finish(self, else_body: Any) -> None:
        self.builder.emit(tirx.IfThenElse(condition(self.test), self.then_body, else_body, self.builder.tvm_span()))


def span_loop(kind: Any, start: Any, stop: Any, step: Any, annotations: dict[str, Any] | None = None) -> Loop:
    """A loop from `start` to before `stop`. Raises KernelError for a step that is no constant or is zero."""
    start, stop = (plain(bound) for bound in (start, stop))
    for bound in (start, stop):
        refuse_unknown(bound, "a loop bound")
        if not isinstance(bound, int | ir.Expr) or is_buffer(bound):
            raise KernelError(f"a loop bound is {bound!r}, which is no integer", hint="use // for integer division")
    if not isinstance(step, int) or step == 0:
        raise KernelError(f"a loop steps by {step!r}", hint="a step is a constant that is not 0")
    extent = stop - start
    if step != 1:
        extent = -((start - stop) // step) if isinstance(extent, int) else (extent + (step - 1)) // step
        if not isinstance(extent, int) and step < 0:
            raise unsupported("a loop that counts down from a value known only when the kernel runs", "count up")
    if isinstance(extent, int):
        extent = max(extent, 0)
    return Loop((extent,), kind, start, step, annotations or {})
