"""The functions that a rewritten kernel calls: each of its statements and expressions passes through here."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import operator
import sys
import types
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, cast

import numpy as np
from tvm import ir, tirx

from ttexplore.control import look_around
from ttexplore.errors import KernelError, shown
from ttexplore.ir.adapter import is_buffer, set_span, to_expr
from ttexplore.ir.arithmetic.sizes import extents_of
from ttexplore.ir.arithmetic.waves import waves
from ttexplore.ir.build import dtype_of, statements
from ttexplore.ir.operations.by_thread import THREADS
from ttexplore.language.api.math import if_then_else
from ttexplore.language.api.symbols import decided as equal
from ttexplore.language.api.symbols import has_attribute, is_symbolic, no_answer, no_text, of_compiler
from ttexplore.language.api.tile import region
from ttexplore.language.guard.standins import StandIn
from ttexplore.language.guard.state import (
    Branches,
    CarriedName,
    LostName,
    Place,
    Turn,
    asked,
    changed,
    held,
    is_own,
    snapshot,
)
from ttexplore.language.tracer.builder import (
    AllocationRequest,
    Builder,
    ConditionOperand,
    Grid,
    Integer,
    LoopNest,
    SchedulerTiles,
    TensorSpec,
    condition,
    current,
    is_dynamic,
    is_integer,
    plain,
    refuse_unknown,
    sequence,
    unsupported,
    whole,
)
from ttexplore.language.tracer.containers import is_container, is_slice, is_tuple, items_of
from ttexplore.language.tracer.dtypes import dtype
from ttexplore.language.tracer.wide_tensors import wide_element
from ttexplore.record import Span

_COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne,
}  # fmt: skip
_IN_PLACE: dict[str, Callable[[object, object], object]] = {
    kind: vars(operator)[name]
    for kind, name in {
        "Add": "iadd", "Sub": "isub", "Mult": "imul", "MatMult": "imatmul", "Div": "itruediv",
        "FloorDiv": "ifloordiv", "Mod": "imod", "Pow": "ipow", "LShift": "ilshift", "RShift": "irshift",
        "BitAnd": "iand", "BitOr": "ior", "BitXor": "ixor",
    }.items()
}  # fmt: skip

# Python's functions of objects, which know nothing of a value that is known only when the kernel runs.
OF_OBJECTS: dict[str, Callable[..., object]] = {
    function.__name__: function for function in (isinstance, type, callable, id)
}

# The target of a loop or a with: names with their span indices, and whether it is a tuple.
Target = tuple[tuple[tuple[str, int], ...], bool]
# What part of an expression may do beside having a value: nothing, whatever a call does, or bind a name.
Effect = Literal["none", "call", "walrus"]


def is_variable(value: object) -> TypeGuard[tirx.Buffer]:
    """Whether a value is a scalar variable of T.alloc_var."""
    return is_buffer(value) and value.ty.storage_scope == "local.var"


class Hooks:
    """The hooks of one rewritten function. The first argument of each hook indexes `spans`. `owners` has the name to
    which an expression's result will be assigned, for allocations inside larger expressions; `places` has, for each
    loop or branch, where its body changes a name's value; `used` are the names that the code may look up in its module.
    """

    def __init__(
        self,
        spans: tuple[Span, ...],
        owners: dict[int, str],
        name_spans: Mapping[int, Mapping[str, int]],
        used: tuple[str, ...],
    ) -> None:
        self.used = used
        self.spans = spans
        self.owners = owners
        self.places = name_spans

    def _at(self, index: int) -> Builder:
        look_around()
        builder = current("this")
        builder.span = self.spans[index]
        return builder

    def value(self, index: int, result: object) -> object:
        """The value of an expression, with its span."""
        result = plain(result)
        if isinstance(result, ir.Expr):
            if result.span is None and not isinstance(result, ir.Var):
                span = self._at(index).tvm_span()
                if span is not None:
                    set_span(result, span)
        elif isinstance(result, AllocationRequest) or (isinstance(result, TensorSpec) and result.output):
            return result.make(self._at(index), self.owners.get(index, "buffer"))
        return result

    def name(self, index: int, value: object) -> object:
        """The value of a name. Raises KernelError if it is not known."""
        while type(value) is CarriedName:
            value.reads.append(self.spans[index])
            value = value.value
        if type(value) is LostName:
            self._at(index)
            raise value.refuse()
        return value

    def read(self, index: int, value: object) -> object:
        """Read a name as a value; scalar variables are loaded."""
        value = self.name(index, value)
        if is_variable(value):
            return self.value(index, self._at(index).read(value, (0,)))
        return value

    def statement(self, index: int, result: object) -> None:
        builder = self._at(index)
        if isinstance(result, ir.Call):
            builder.emit(tirx.Evaluate(result, builder.tvm_span()))
        elif isinstance(result, tirx.Stmt):
            builder.emit(result)
        elif isinstance(result, AllocationRequest):
            result.make(builder, "buffer")
        elif isinstance(result, StandIn):
            # What it would do to blocks is not known, so it is not left out.
            raise result.refuse("what a statement calls")

    def bind(self, index: int, name: str, result: object) -> object:
        return self._at(index).bind(name, result)

    def rebind(self, index: int, name: str, result: object, old: Callable[[], object]) -> object:
        """Assign to a name; if it is a scalar variable, store to it."""
        try:
            before = held(old())
        except NameError:
            before = None
        if is_variable(before) and not isinstance(result, AllocationRequest):
            self._at(index).store(before, (0,), result)
            return before
        return self.bind(index, name, result)

    def tensor(self, index: int, name: str, annotation: object) -> tirx.Buffer:
        """``A: T.Tensor(...)`` in the body of an eager kernel: a parameter."""
        if not isinstance(annotation, TensorSpec):
            raise KernelError(
                "K007",
                f"{name} is annotated with {shown(annotation)}, which is not a tensor",
                hint=f"write {name}: T.Tensor((M, N), dtype)",
            )
        return annotation.make(self._at(index), name)

    def store(self, index: int, base: Any, indices: object, result: object) -> None:
        builder = self._at(index)
        if is_buffer(base):
            builder.store(base, indices if is_tuple(indices) else (indices,), result)
        else:
            base[indices] = result

    def load(self, index: int, base: Any, indices: object) -> object:
        return self.value(index, subscript(self._at(index), base, indices) if is_buffer(base) else base[indices])

    def augmented(self, index: int, name: str, old: object, operand: object) -> object:
        """The value of ``old += operand``; mutable objects change in place."""
        return self.value(index, _IN_PLACE[name](old, operand))

    def remainder(self, index: int, left: Any, right: object) -> object:
        """``left % right``, which formats text if the left side is a string."""
        if isinstance(left, str):
            for argument in right if is_tuple(right) else (right,):
                self.text(index, argument)
        return self.value(index, left % right)

    def text(self, index: int, value: object) -> object:
        """A value that is converted to text."""
        if is_symbolic(value):
            raise no_text(str(plain(value)), self.spans[index])
        return value

    def of_object(self, index: int, function: Callable[..., object], *arguments: object) -> object:
        """A call of what has the name of one of Python's functions of objects. Raises KernelError for what that says of
        the compiler's expression, and would not say of its value."""
        if arguments and is_symbolic(plain(arguments[0])) and function in OF_OBJECTS.values():
            if function is callable:
                return False
            if function is not isinstance or _is_number_type(arguments[1:]):
                raise KernelError(
                    "K010",
                    f"{function.__name__} asks for the Python object of a value known only when the kernel runs",
                    hint="an index or an element is a number when the kernel runs: leave the question out, and compare "
                    "the value itself, as in x == 0",
                    span=self.spans[index],
                )
        return self.value(index, function(*arguments))

    def subject(self, index: int, value: object) -> object:
        """The subject of a ``match``."""
        if any(map(is_symbolic, items_of(value))):
            raise KernelError(
                "K010",
                "match depends on a value known only when the kernel runs",
                hint="write `if x == 0:` and `else:`, or T.if_then_else(x == 0, a, b)",
                span=self.spans[index],
            )
        return value

    def function(self, function: Callable[..., object]) -> Callable[..., object]:
        """A function inside the kernel: its `return`, `break` and `continue` belong to it."""

        @functools.wraps(function)
        def called(*args: object, **options: object) -> object:
            with current("this").inside("function"):
                return function(*args, **options)

        return called

    def attribute(self, base: object, name: str) -> object:
        """``A.shape`` of a buffer as ints and T.dynamic sizes; ``.dtype`` of a buffer or a value as a dtype of the
        language."""
        if is_buffer(base) and name == "shape":
            return extents_of(base)
        if name == "dtype" and isinstance(base, ir.Expr):
            return dtype(dtype_of(base) if is_buffer(base) else str(base.ty.dtype))
        return getattr(base, name)

    def owner(self, base: object, name: str) -> object:
        """The object whose attribute `name` is read. Raises KernelError for attributes that only TVM's object has."""
        if is_symbolic(base) and not has_attribute(name):
            raise of_compiler(name)
        return base

    def range(self, index: int, function: Callable[..., object], *bounds: object) -> object:
        """The iterable of ``for x in range(...)``: a kernel loop, if `function` is Python's own range."""
        if function is not builtins.range:
            return function(*bounds)
        if not 1 <= len(bounds) <= 3:
            raise KernelError("K004", f"range takes 1 to 3 bounds, not {len(bounds)}")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        return span_loop(tirx.ForKind.SERIAL, start, stop, bounds[2] if len(bounds) == 3 else 1)

    def loop(
        self,
        index: int,
        target: Target,
        has_else: bool,
        names: tuple[str, ...],
        captured: frozenset[str],
        iterable: Iterable[object] | Grid | ir.Expr,
    ) -> Turns:
        """The iterations of a loop: one inside a TIR loop, or all that Python runs."""
        builder = self._at(index)
        if isinstance(iterable, range):
            iterable = span_loop(tirx.ForKind.SERIAL, iterable.start, iterable.stop, iterable.step)
        if isinstance(iterable, LoopNest):
            if has_else:
                raise unsupported("`else` of a kernel loop", "set a T.alloc_var before `break` and test it afterwards")
            iteration = Turn(sys._getframe(1), self.used, self._names(target), names, captured)
            return Turns(self._loop(builder, iterable, target, iteration, index), iteration)
        if is_dynamic(iterable) or isinstance(iterable, Grid):
            raise KernelError(
                "K010", "this cannot be iterated over", hint="use range, T.serial, T.Parallel or T.Pipelined"
            )
        return Turns(self._python_loop(builder, iterable))

    @staticmethod
    def _names(target: Target) -> tuple[str, ...]:
        return tuple(name for name, _ in target[0])

    def _python_loop(self, builder: Builder, iterable: Iterable[object]) -> Iterator[object]:
        for item in iterable:
            with builder.inside("python"):
                yield item

    def _place(self, index: int, name: str) -> Span:
        """Where the body of a loop or branch changes the value of a name; the head if no line is known."""
        return self.spans[self.places[index].get(name, index)]

    def _variables(self, extents: tuple[Integer, ...], target: Target, default: str, callee: str) -> list[ir.Var]:
        names, is_tuple = target
        if is_tuple and len(names) != len(extents):
            raise KernelError(
                "K010",
                f"{callee} gives {len(extents)} {'index' if len(extents) == 1 else 'indices'} to {len(names)} names",
                hint="name each index",
            )
        builder = current(callee)
        outer, variables = builder.span, list[ir.Var]()
        for axis in range(len(extents)):
            name = default[axis] if len(default) > axis else f"i{axis}"
            if is_tuple or (names and len(extents) == 1):
                target_name, builder.span = names[axis][0], self.spans[names[axis][1]]
                name = target_name if target_name != "_" else name
            variables.append(tirx.Var(name, "int32", builder.tvm_span()))
        builder.span = outer
        return variables

    def _loop(self, builder: Builder, loop: LoopNest, target: Target, iteration: Turn, index: int) -> Iterator[object]:
        span = builder.tvm_span()
        variables = self._variables(loop.extents, target, "ijkl", "the loop")
        runs = all(isinstance(extent, int) and extent > 0 for extent in loop.extents) and loop.waves is None
        for variable, extent in zip(variables, loop.extents, strict=True):
            builder.counted.append((variable, loop.start if loop.step == 1 else 0, extent))

        def finish(nest: tirx.Stmt) -> tirx.Stmt | None:
            if any(isinstance(extent, int) and extent < 1 for extent in loop.extents):
                # A loop without iterations is no part of the kernel.
                return None
            if loop.waves is not None:
                return waves(variables, loop.extents, *loop.waves, statements(nest), span, loop.wave)
            for axis in reversed(range(len(variables))):
                annotations = loop.annotations if axis == 0 else {}
                low = whole(loop.start if loop.step == 1 else 0)
                nest = tirx.For(
                    variables[axis], low, whole(loop.extents[axis]), loop.kind, nest, None, annotations, None, span
                )
            return nest

        with builder.frame(finish), builder.inside_loop(loop.kind), self._turn(builder, iteration, index, runs):
            if loop.step != 1:
                stepped = to_expr(loop.start) + variables[0] * loop.step
                yield builder.bind(f"{variables[0].name}_value", stepped)
            else:
                yield tuple(variables) if target[1] or len(variables) > 1 else variables[0]

    @contextlib.contextmanager
    def _turn(self, builder: Builder, iteration: Turn, index: int, runs: bool) -> Generator[None]:
        builder.reads.enter_loop()
        if iteration.state.may_ask:
            builder.watch.start(builder.files, lambda: "tir" in builder.enclosing, is_own)
        with builder.inside("tir"):
            yield
        if builder.watch.found is not None:
            raise asked(*builder.watch.found)
        iteration.finish(runs, functools.partial(self._place, index))
        builder.reads.leave_loop()

    def while_(
        self,
        index: int,
        has_else: bool,
        names: tuple[str, ...],
        captured: frozenset[str],
        tested: tuple[str, ...],
        test: Callable[[], object],
    ) -> Turns:
        """The iterations of a ``while``; `tested` are the names that its condition reads."""
        builder = self._at(index)
        iteration = Turn(sys._getframe(1), self.used, (), names, captured)
        reads, emitted_before = len(builder.reads), builder.emitted
        value = test()
        if not is_dynamic(value) and not isinstance(value, SchedulerTiles):
            return Turns(self._python_while(builder, value, test))
        if has_else:
            raise unsupported("`else` of a kernel loop", "set a T.alloc_var before `break` and test it afterwards")
        if isinstance(value, SchedulerTiles):
            return Turns(self._over_tiles(builder, value, iteration, index), iteration)
        if builder.emitted != emitted_before:
            raise KernelError(
                "K014",
                "the condition of a kernel's while stores a value, but it is traced once, for all iterations",
                hint="store it in the body of the loop",
                span=self.spans[index],
            )
        iteration.read(tested, self.spans[index])
        return Turns(self._kernel_while(builder, value, iteration, index, reads), iteration)

    def _over_tiles(self, builder: Builder, tiles: SchedulerTiles, iteration: Turn, index: int) -> Iterator[None]:
        loop = LoopNest(tiles.extents, tirx.ForKind.SERIAL, waves=tiles.waves, wave=tiles.wave)
        names = (tuple((name, index) for name in ("n_idx", "m_idx")), True)
        for variables in self._loop(builder, loop, names, iteration, index):
            tiles.enter(builder, cast("tuple[ir.Var, ...]", variables))
            yield
            tiles.leave()

    def _python_while(self, builder: Builder, value: object, test: Callable[[], object]) -> Iterator[None]:
        while value:
            with builder.inside("python"):
                yield
            value = test()

    def _kernel_while(self, builder: Builder, value: object, iteration: Turn, index: int, reads: int) -> Iterator[None]:
        span = builder.tvm_span()
        # What was read before is kept; what the condition itself reads is read again for each turn.
        held_ = builder.reads.kept(condition(value), builder.frames, since=reads)
        with builder.frame(lambda body: tirx.While(held_, body, span)), self._turn(builder, iteration, index, False):
            yield

    @contextlib.contextmanager
    def with_(
        self, index: int, target: Target, manager: Grid | contextlib.AbstractContextManager[object]
    ) -> Generator[object]:
        if not isinstance(manager, Grid):
            with manager as value:
                yield value
            return
        builder = self._at(index)
        span = builder.tvm_span()
        if builder.blocks:
            raise KernelError(
                "K005", "T.Kernel is inside another T.Kernel", hint="end the first: launches follow one another"
            )
        # A loop that Python runs makes one launch in each turn.
        if any(around != "python" for around in builder.enclosing):
            raise KernelError(
                "K005", "T.Kernel is inside a loop or a branch", hint="put it at the top level of the kernel"
            )
        variables = self._variables(manager.extents, target, "", "T.Kernel")
        builder.begin_launch(variables, manager.threads)
        builder.counted += [(variable, 0, extent) for variable, extent in zip(variables, manager.extents, strict=True)]

        def finish(nest: tirx.Stmt) -> tirx.Stmt:
            for axis in reversed(range(len(variables))):
                annotations: dict[str, object] = {}
                if axis == 0 and builder.threads:
                    annotations["threads"] = math.prod(builder.threads)
                    if len(builder.threads) > 1:
                        annotations[THREADS] = [*builder.threads]
                binding = tirx.IterVar(None, tirx.Var(variables[axis].name, "int32"), 1, "blockIdx." + "xyz"[axis])
                nest = tirx.For(
                    variables[axis], tirx.const(0, "int32"), to_expr(manager.extents[axis]),
                    tirx.ForKind.THREAD_BINDING, nest, binding, annotations, None, span,
                )  # fmt: skip
            return nest

        with builder.frame(finish):
            yield tuple(variables) if target[1] or len(variables) > 1 else variables[0]
        builder.blocks = ()

    def branch(self, index: int, names: tuple[str, ...], test: object) -> TracedBranch:
        test = plain(test)
        branches = Branches(sys._getframe(1), self.used, names) if is_dynamic(test) else None
        return TracedBranch(self._at(index), test, branches, functools.partial(self._place, index))

    @staticmethod
    def chain() -> Chain:
        return Chain()

    # `a and b` becomes `h.joined(b) if h.goes_on(a) else h.decided()`, so that Python evaluates `b` where it would.

    def goes_on(self, index: int, is_and: bool, effect: Effect, left: object) -> bool:
        """Whether the right side of an ``and`` or ``or`` is evaluated."""
        left = plain(left)
        self._begin(index, left, effect)
        return is_dynamic(left) or bool(left) == is_and

    def decided(self, index: int) -> object:
        return self.value(index, self._end(index))

    def joined(self, index: int, is_and: bool, right: object) -> object:
        """``left and right`` or ``left or right`` after the right side has been evaluated."""
        left, right = self._end(index), plain(right)
        if not is_dynamic(left):
            return self.value(index, right)
        if not (_is_condition(left) and _is_condition(right)):
            # Of numbers it is one of both, not whether they are 0.
            left, right = _as_number(left, right), _as_number(right, left)
            then, otherwise = (right, left) if is_and else (left, right)
            return self.value(index, if_then_else(left, then, otherwise, what="`x and y`" if is_and else "`x or y`"))
        if not is_dynamic(right):
            # A known condition either decides the whole or drops out.
            return right if right != is_and else self.value(index, left)
        combine = tirx.And if is_and else tirx.Or
        return self.value(index, combine(condition(left), condition(right)))

    @contextlib.contextmanager
    def python_turn(self) -> Generator[None]:
        """One iteration of a ``while`` that Python runs."""
        with current("this").inside("python"):
            yield

    def not_(self, index: int, value: object) -> object:
        return self.value(index, tirx.Not(condition(value))) if is_dynamic(value) else not value

    # `x if c else y` becomes `h.chosen(x if h.takes(c) else None, y if h.takes_other() else None)`.

    def takes(self, index: int, effect: Effect, test: object) -> bool:
        """Whether the first value of ``x if test else y`` is evaluated."""
        test = plain(test)
        self._begin(index, test, effect)
        return is_dynamic(test) or bool(test)

    def takes_other(self, index: int) -> bool:
        test = current("this").operands[-1].value
        return is_dynamic(test) or not test

    def chosen(self, index: int, then: object, otherwise: object) -> object:
        test = self._end(index)
        if not is_dynamic(test):
            return self.value(index, then if test else otherwise)
        return self.value(index, if_then_else(test, then, otherwise, what="`x if c else y`"))

    def _begin(self, index: int, value: object, effect: Effect) -> None:
        """Remember the value that decides which part of an expression is evaluated, and the state before that."""
        builder, state = self._at(index), None
        if is_dynamic(value) and effect == "walrus":
            raise KernelError(
                "K014",
                "whether := binds its name depends on a value known only when the kernel runs",
                hint="assign the name in an earlier statement",
                span=self.spans[index],
            )
        if is_dynamic(value) and effect == "call":
            state = snapshot(sys._getframe(2), self.used)
        builder.operands.append(ConditionOperand(index, value, builder.emitted, state))

    def _end(self, index: int) -> object:
        """The remembered value. Raises KernelError if the conditionally evaluated part had side effects."""
        builder = self._at(index)
        while builder.operands[-1].index != index:
            # Left behind by an exception that the kernel's Python caught.
            builder.operands.pop()
        ended = builder.operands.pop()
        if is_dynamic(ended.value) and builder.emitted != ended.emitted:
            raise KernelError(
                "K014",
                "part of an expression stores a value, and whether it is evaluated is known only when the kernel runs",
                hint="write it as an `if` statement; join T.any_of and T.all_of by & and |, which ask both",
                span=self.spans[index],
            )
        if ended.state is not None:
            name = ended.state.changed(snapshot(sys._getframe(2), self.used), set())
            if name is not None:
                raise changed(name, self.spans[index], "branch")
        return ended.value

    def compare(self, index: int, operators: tuple[str, ...], *values: object) -> object:
        result: object = True
        for name, left, right in zip(operators, values, values[1:], strict=False):
            comparison = plain(_compared(name, plain(left), plain(right)))
            if is_dynamic(comparison) and is_dynamic(result):
                result = tirx.And(condition(result), condition(comparison))
            elif is_dynamic(comparison):
                result = comparison if result else False
            elif is_dynamic(result):
                result = result if comparison else False
            else:
                result = result and comparison
        return self.value(index, result)

    def truth(self, index: int, value: object) -> object:
        """The condition of an ``assert``."""
        if is_dynamic(value):
            raise unsupported("an assert on a value known only when the kernel runs", "leave it out")
        return value

    def passes(self, index: int, value: object) -> bool:
        """Whether an item passes the condition of a comprehension."""
        if is_dynamic(value):
            raise no_answer(self.spans[index])
        return bool(value)

    def known(self, index: int, value: object) -> object:
        """The condition of a ``while`` that binds names in it."""
        if is_dynamic(value):
            raise KernelError(
                "K014",
                "the condition of a kernel's while binds a name, but it is traced once, for all iterations",
                hint="bind it in the body of the loop",
                span=self.spans[index],
            )
        return value

    def jump(self, index: int, kind: str) -> bool:
        """Whether ``break`` or ``continue`` leaves a Python loop now; in a kernel loop, emit the statement instead."""
        builder, under_branch = self._at(index), False
        for around in reversed(builder.enclosing):
            match around:
                case "branch":
                    under_branch = True
                case "python":
                    if under_branch:
                        raise KernelError(
                            "K010",
                            f"`{kind}` depends on a value known only when the kernel runs, but Python runs this loop",
                            hint="loop with range or T.serial",
                        )
                    return True
                case "tir" | "call" | "function":
                    break
        builder.emit((tirx.Break if kind == "break" else tirx.Continue)(builder.tvm_span()))
        return False

    def return_(self, index: int, value: object) -> object:
        builder = self._at(index)
        for around in reversed(builder.enclosing):
            if around in ("call", "function"):
                return value
            if around in ("branch", "tir"):
                raise unsupported("`return` inside a kernel loop or a branch on run-time values", "use if and else")
        if value is not None:
            builder.outputs = list(items_of(value))
        return value


@dataclass
class Turns:
    """The iterations of a loop; `turn` is the iteration that is traced for a kernel loop."""

    items: Iterator[object]
    turn: Turn | None = None

    def __iter__(self) -> Iterator[object]:
        return self.items


def subscript(builder: Builder, base: tirx.Buffer, indices: object) -> ir.Expr:
    """``base[indices]`` for a buffer: the element's current value, or a region."""
    keys = indices if is_tuple(indices) else (indices,)
    if any(is_slice(key) for key in keys):
        return region(base, keys)
    load = builder.read(base, keys)
    return wide_element(load) if base in builder.wide_tensors else load


def _compared(name: str, left: object, right: Any) -> object:
    """One comparison; an expression if its result is known only when the kernel runs."""
    match name:
        case "Eq" | "NotEq":
            answer = equal(left, right) if is_dynamic(left) or is_dynamic(right) else None
            if answer is None:
                return _COMPARE[name](left, right)
            return answer if name == "Eq" else not answer
        case "Is" | "IsNot":
            return _is(left, right) == (name == "Is")
        case "In":
            return _contains(left, right)
        case "NotIn":
            membership = _contains(left, right)
            return tirx.Not(condition(membership)) if is_dynamic(membership) else not membership
        case _:
            return _COMPARE[name](left, right)


def _is_number_type(classes: object) -> bool:
    """Whether a value that is a number would be one of these classes."""
    if isinstance(classes, tuple):
        return any(map(_is_number_type, cast("tuple[object, ...]", classes)))
    if isinstance(classes, types.UnionType):
        return any(map(_is_number_type, classes.__args__))
    return (
        isinstance(classes, type)
        and classes is not object
        and any(issubclass(number_type, classes) for number_type in _NUMBERS)
    )


# Of the numbers in Python and in NumPy.
_NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)


def _is_condition(value: object) -> bool:
    return isinstance(value, bool) or (
        isinstance(value, ir.Expr) and ir.is_prim_expr(value) and value.ty.dtype == "bool"
    )


def _as_number(value: object, counterpart: object) -> object:
    """The value; a condition next to a number becomes 1 or 0, as in Python."""
    if not _is_condition(value) or _is_condition(counterpart):
        return value
    return tirx.Cast(to_expr(counterpart).ty, value) if isinstance(value, ir.Expr) else int(bool(value))


def _is(left: object, right: object) -> bool:
    numbers = all(is_symbolic(operand) or isinstance(operand, bool | int | float) for operand in (left, right))
    if left is not right and numbers and (is_symbolic(left) or is_symbolic(right)):
        raise no_answer(instead="compare numbers with == and !=, as in x == 0: `is` asks for the same object of Python")
    if isinstance(left, ir.Expr) and isinstance(right, ir.Expr):
        return left.same_as(right)
    return left is right


def _contains(value: object, values: Container[object]) -> object:
    """``value in values``: an `or` of equalities if the result is known only when the kernel runs."""
    if isinstance(values, range) and len(values) > 1 and abs(values.step) == 1 and is_dynamic(value):
        value = plain(value)
        return tirx.And(condition(value >= min(values)), condition(value <= max(values)))
    if not is_container(values):
        if is_dynamic(value) or is_dynamic(values):
            raise no_answer()
        return value in values
    membership: object = False
    for member in values:
        answer = plain(_compared("Eq", value, member))
        if not is_dynamic(answer):
            if answer:
                return True
        else:
            membership = tirx.Or(condition(membership), condition(answer)) if is_dynamic(membership) else answer
    return membership


class TracedBranch:
    """An ``if``: decided now if the condition is plain Python, otherwise a TIR branch."""

    def __init__(self, builder: Builder, test: object, branches: Branches | None, place: Place) -> None:
        self.builder, self.dynamic = builder, is_dynamic(test)
        self.branches, self.place = branches, place
        self.run_then = self.dynamic or bool(test)
        self.run_else = self.dynamic or not test
        self.span = builder.span
        self.condition = builder.reads.kept(condition(test), builder.frames) if self.dynamic else None
        self.then_body: tirx.Stmt | None = None

    def again(self) -> tuple[object, ...]:
        """The values of the names that the sides bind, where the second side begins."""
        assert self.branches is not None
        self.branches.side(sys._getframe(1), self.place)
        return self.branches.again()

    def merged(self) -> tuple[object, ...]:
        """The values of these names after the branch."""
        assert self.branches is not None
        self.branches.side(sys._getframe(1), self.place)
        return self.branches.merged()

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

    def _finish(self, else_body: tirx.Stmt | None) -> None:
        assert self.condition is not None
        assert self.then_body is not None
        self.builder.emit(tirx.IfThenElse(self.condition, self.then_body, else_body, self.builder.tvm_span()))


class Chain(contextlib.AbstractContextManager["Chain"]):
    """The branches of a chain of `elif`: each one that is reached is in the second side of the one before."""

    def __init__(self) -> None:
        self.branches: list[TracedBranch] = []
        self.sides: list[contextlib.AbstractContextManager[None]] = []
        # Whether the next branch is reached, and the branch that was left last.
        self.goes_on = True
        self.left: TracedBranch | None = None

    def enter(self, branch: TracedBranch) -> None:
        """Enter the second side of a branch, if it is traced."""
        self.branches.append(branch)
        self.goes_on = branch.run_else
        if self.goes_on:
            side = branch.otherwise()
            side.__enter__()
            self.sides.append(side)

    def end(self, branch: TracedBranch) -> None:
        """Add the last branch of a chain without `else`."""
        self.branches.append(branch)

    def leaves(self, index: int) -> bool:
        """Leave the second side of a branch, by its place; whether names have other values now, which `left` knows."""
        if index >= len(self.branches):
            return False
        if index < len(self.sides):
            self.sides.pop().__exit__(None, None, None)
        self.left = self.branches.pop()
        return self.left.dynamic

    def __exit__(self, *error: Any) -> None:
        # What jumps leaves all sides.
        while self.sides:
            self.sides.pop().__exit__(*error)


def span_loop(
    kind: tirx.ForKind, start: object, stop: object, step: object, annotations: dict[str, object] | None = None
) -> LoopNest:
    """A loop from `start` up to `stop`, exclusive. Raises KernelError unless the step is a nonzero constant."""
    first, last = _bound(start), _bound(stop)
    if not isinstance(step, int) or step == 0:
        raise KernelError("K004", f"a loop steps by {shown(step)}", hint="use a constant step other than 0")
    extent = last - first
    if step != 1:
        extent = -(-extent // step) if isinstance(extent, int) else (extent + (step - 1)) // step
        if not isinstance(extent, int) and step < 0:
            raise unsupported("a loop that counts down from a value known only when the kernel runs", "count up")
    if isinstance(extent, int):
        extent = max(extent, 0)
    return LoopNest((extent,), kind, first, step, annotations or {})


def _bound(bound: object) -> Integer:
    bound = plain(bound)
    refuse_unknown(bound, "a loop bound")
    if not is_integer(bound):
        raise KernelError(
            "K004",
            f"a loop bound is {shown(bound)}, which is not an integer",
            hint='use // for integer division, or cast: T.cast(x, "int32")',
        )
    return whole(bound) if isinstance(bound, ir.Expr) else bound
