"""Detect what a kernel's Python changes while a body is traced once for all iterations of a loop or for a branch.

One rule: a body that is traced once stands for all iterations only if it leaves Python's state unchanged. The names of
the function, and everything that its Python can reach, are compared before and after; changes that another iteration
would see are rejected. Names that an iteration binds before it reads them are its own and may change; after the loop
their values are lost.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import hashlib
import io
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeGuard, cast

import numpy as np
from tvm import ir

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import identity
from ttexplore.language.guard.clocks import may_ask, may_reach
from ttexplore.language.tracer.containers import is_dict, is_exactly_tuple, is_ordered, is_sequence, is_set, is_tuple
from ttexplore.record import Span

# What has no state that a kernel changes: the standard library, the language, and the packages under it.
_FOREIGN = frozenset(
    [*sys.stdlib_module_names, "tvm", "tvm_ffi", "ttexplore", "tilelang", "numpy", "ml_dtypes", "torch"]
)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))
# The folders of installed packages.
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# Larger arrays are taken as they are: what a kernel indexes while it is traced is small.
_ARRAY_BYTES = 1 << 26


@dataclass(eq=False)
class CarriedName:
    """The value that a name had before the loop being traced, until an iteration binds the name. `reads` are the places
    that read it."""

    value: object
    reads: list[Span] = field(default_factory=list[Span])


@dataclass(eq=False)
class LostName:
    """A name whose value is not known; reading it raises this error."""

    error: KernelError

    def refuse(self) -> KernelError:
        return KernelError(self.error.code, self.error.message, hint=self.error.hint)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.refuse()


def _refuse(self: LostName, *_operands: object) -> NoReturn:
    raise self.refuse()


for _name in [
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow",
    "rpow", "neg", "pos", "abs", "invert", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift",
    "rrshift", "lt", "le", "gt", "ge", "eq", "ne", "bool", "iter", "getitem", "setitem", "call", "index", "int",
    "float",
]:  # fmt: skip
    setattr(LostName, f"__{_name}__", _refuse)


def unbound(name: str) -> LostName:
    return LostName(KernelError("K014", f"{name} is read before it has a value", hint="bind it first"))


def held(value: object) -> object:
    """The value behind a name."""
    while type(value) is CarriedName:
        value = value.value
    return value


def same(first: object, second: object) -> bool:
    """Whether two names have the same value: one object, or equal numbers, strings and tuples of them."""
    first, second = held(first), held(second)
    if first is second:
        return True
    if isinstance(first, ir.Expr) and isinstance(second, ir.Expr):
        return first.same_as(second)
    return is_plain(first) and is_plain(second) and _key(first) == _key(second)


def is_plain(value: object) -> bool:
    """Whether a value is a number, a string or a tuple of these."""
    return isinstance(value, _PLAIN) or (is_exactly_tuple(value) and all(map(is_plain, value)))


def _key(value: object) -> object:
    """A key that is equal for equal numbers, strings and tuples: floats by their text, because 0.0 is not -0.0 and NaN
    is NaN."""
    if is_exactly_tuple(value):
        return tuple(map(_key, value))
    return type(value), repr(value) if isinstance(value, float | complex) else value


# -- all that Python can reach -----------------------------------------------------------------------------------------


@dataclass
class Snapshot:
    """The values of a function's names and of the module names it uses, and the parts of each object behind them.
    `kept` keeps the objects alive, which are identified by address. `may_ask` is whether the code may read something
    that no object holds."""

    names: dict[str, object]
    parts: dict[int, tuple[object, ...]]
    kept: list[object]
    may_ask: bool

    def changed(self, later: Snapshot, besides: set[str]) -> str | None:
        """The first name behind which something differs in `later`; names in `besides` may differ."""
        for name, before in self.names.items():
            if name not in besides and later.names.get(name, before) != before:
                return name
        different = {address for address, tokens in self.parts.items() if later.parts.get(address, tokens) != tokens}
        return next((name for name, before in self.names.items() if self._reaches(before, different)), None)

    def _reaches(self, start: object, addresses: set[int]) -> bool:
        todo, visited = [start], set[int]()
        while todo and addresses:
            token = todo.pop()
            if isinstance(token, _At):
                if token.address in addresses:
                    return True
                if token.address not in visited:
                    visited.add(token.address)
                    todo += self.parts.get(token.address, ())
            elif is_tuple(token) or is_set(token):
                todo += token
        return False


@dataclass(frozen=True, slots=True)
class _At:
    """An object that can change, identified by its address."""

    address: int


def snapshot(frame: types.FrameType, used: Sequence[str]) -> Snapshot:
    """The state that a running function can change. `used` are the names that its code may look up in its module."""
    local_values = dict(frame.f_locals)
    walk = _TokenWalk(f"{frame.f_code.co_qualname}.<locals>.", local_values)
    names = {name: walk.named(held(value), used) for name, value in local_values.items() if not name.startswith("__")}
    names |= walk.globals_of(used, frame.f_globals)
    while walk.todo:
        value = walk.todo.pop()
        walk.parts[id(value)] = walk.parts_of(value)
    return Snapshot(names, walk.parts, walk.kept, walk.may_ask)


class _TokenWalk:
    """Tokens of values: equal tokens mean equal to Python. Each object is walked once.

    `inner` is the prefix of functions nested in the running one: its names, `own`, are not part of their state.
    """

    def __init__(self, inner: str, local_values: Mapping[str, object]) -> None:
        self.inner, self.own = inner, local_values
        self.parts: dict[int, tuple[object, ...]] = {}
        self.kept: list[object] = []
        self.todo: list[object] = []
        self.may_ask = False

    def token(self, value: object) -> object:
        if isinstance(value, _PLAIN):
            return _key(value)
        if isinstance(value, ir.Expr):
            return identity(value)
        if is_exactly_tuple(value):
            return tuple(map(self.token, value))
        if isinstance(value, types.MethodType):
            return (self.token(value.__self__), self.token(value.__func__))
        if id(value) not in self.parts:
            self.may_ask = self.may_ask or may_ask(value)
            self.parts[id(value)] = ()
            self.kept.append(value)
            self.todo.append(value)
        return _At(id(value))

    def parts_of(self, value: object) -> tuple[object, ...]:
        if is_ordered(value):
            return tuple(map(self.token, value))
        if is_dict(value):
            return tuple((self.token(key), self.token(element)) for key, element in value.items())
        if is_set(value):
            return (frozenset(map(self.token, value)),)
        match value:
            case types.FunctionType():
                return self._function(value)
            case functools.partial():
                return tuple(map(self.token, (value.func, value.args, value.keywords)))
            case types.BuiltinMethodType() | types.MethodWrapperType():
                return () if isinstance(value.__self__, types.ModuleType) else (self.token(value.__self__),)
            case property():
                return tuple(map(self.token, (value.fget, value.fset)))
            case _ if _is_wrapped(value):
                return (self.token(value.__func__),)
            case types.GeneratorType():
                frame = value.gi_frame
                return (frame.f_lasti, *map(self.token, frame.f_locals.values())) if frame is not None else ()
            case np.ndarray():
                if value.nbytes > _ARRAY_BYTES:
                    return ()
                return (value.shape, hashlib.blake2b(value.tobytes()).digest())
            case memoryview():
                return (hashlib.blake2b(value.tobytes()).digest(),) if value.nbytes <= _ARRAY_BYTES else ()
            case io.IOBase():
                return _position(value)
            case type():
                return self._class(value) if is_own(value.__module__) else ()
            case _:
                return self._object(value)

    def _object(self, value: object) -> tuple[object, ...]:
        kind = type(value)
        if is_own(kind.__module__) or isinstance(value, types.SimpleNamespace):
            slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(value, name)]
            slot_tokens = tuple(self.token(getattr(value, name)) for name in slots)
            return (self.token(kind), *self._attributes(getattr(value, "__dict__", {}), kind), *slot_tokens)
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):
            # A macro of the language, a function with a cache.
            return (self.token(wrapped),)
        if isinstance(value, contextvars.ContextVar):
            return (self.token(cast("contextvars.ContextVar[object]", value).get(None)),)
        if isinstance(value, threading.local):
            return self._attributes(vars(value))
        if _has_state(kind.__module__):
            # Python's own objects tell how they would be copied, an iterator with that where it is.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    copied = value.__reduce_ex__(2)
                    return (self._copied(copied[1:3]),) if isinstance(copied, tuple) else ()
                except Exception:  # whatever an object raises that cannot be copied
                    return ()
        return ()

    def _copied(self, value: object) -> object:
        """A token of an object made for copying, whose parts may be new each time."""
        if is_sequence(value):
            return tuple(map(self._copied, value))
        if is_dict(value):
            return tuple((self.token(key), self._copied(element)) for key, element in value.items())
        match value:
            case bytearray():
                return bytes(value)
            case np.ndarray():
                return value.tobytes()
            case _:
                return self.token(value)

    def _class(self, kind: type) -> tuple[object, ...]:
        """The attributes of a class, its bases, and the functions that its instances call."""
        methods = tuple(
            self.token(value)
            for value in vars(kind).values()
            if isinstance(value, types.FunctionType | property) or _is_wrapped(value)
        )
        return (*self._attributes(vars(kind)), *map(self.token, kind.__bases__), *methods)

    def _attributes(self, names: Mapping[str, object], kind: type = object) -> tuple[object, ...]:
        """The attributes that are state: not methods, and not cached properties."""
        return tuple(
            (name, self.token(value))
            for name, value in names.items()
            if not name.startswith("__")
            and not isinstance(value, property | staticmethod | classmethod)
            and not isinstance(getattr(kind, name, None), functools.cached_property)
        )

    def _function(self, function: types.FunctionType) -> tuple[object, ...]:
        if not is_own(function.__module__):
            return ()
        is_inner = function.__qualname__.startswith(self.inner)
        shared: Mapping[str, object] = self.own if is_inner else {}
        closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        used = names_of(function.__code__)
        cells = tuple(self._cell(cell, shared.get(name, _TokenWalk), used) for name, cell in closure)
        defaults = (self.token(function.__defaults__), self.token(function.__kwdefaults__))
        names = self.globals_of(used, function.__globals__)
        imported = {name: sys.modules[name] for name in _imported(function.__code__) if name in sys.modules}
        names |= self.globals_of(tuple(imported), imported, used)
        return (*cells, *defaults, *self._attributes(function.__dict__), *names.items())

    def _cell(self, cell: types.CellType, shared: object, used: Sequence[str]) -> object:
        """A variable that a function shares with its enclosing function, unless that is the running one."""
        try:
            value = cell.cell_contents
        except ValueError:
            return None
        return None if value is shared else self.named(held(value), used)

    def globals_of(
        self, used: Sequence[str], names: Mapping[str, object], attributes: Sequence[str] | None = None
    ) -> dict[str, object]:
        """The values of used names of a module; `attributes` are names that code uses of modules, by default `used`."""
        self.may_ask = self.may_ask or may_reach(tuple(used))
        return {
            name: self.named(names[name], used if attributes is None else attributes) for name in used if name in names
        }

    def named(self, value: object, used: Sequence[str], around: Collection[str] = ()) -> object:
        """A token of a name's value; for a module, of the names in it that code uses. `around` are the modules through
        which it was reached, because modules refer to one another."""
        if not isinstance(value, types.ModuleType):
            return self.token(value)
        if value.__name__ in around or not (is_own(value.__name__) or _has_state(value.__name__)):
            return None
        members = vars(value)
        # os.getenv reads what os.environ holds.
        more = ("environ",) if value is os and "getenv" in used else ()
        inner = {*around, value.__name__}
        return tuple(
            (attribute, self.named(members[attribute], used, inner))
            for attribute in [*used, *more]
            if attribute in members
        )


def _is_wrapped(value: object) -> TypeGuard[staticmethod[..., object]]:
    """Whether a value is a static method or a class method: both hold a function."""
    return isinstance(value, staticmethod | classmethod)


def names_of(code: types.CodeType) -> tuple[str, ...]:
    """The names that code, including nested code, uses from outside."""
    inner = (names_of(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return tuple(dict.fromkeys([*code.co_names, *(name for names in inner for name in names)]))


@functools.lru_cache(maxsize=1024)
def _imported(code: types.CodeType) -> tuple[str, ...]:
    """The modules that code imports at run time."""
    return tuple(
        {instruction.argval for instruction in dis.get_instructions(code) if instruction.opname == "IMPORT_NAME"}
    )


def _position(file: io.IOBase) -> tuple[object, ...]:
    """The read position of a file; files that are only written do not affect a kernel."""
    try:
        return (file.tell(),) if file.readable() else ()
    except (OSError, ValueError):
        return ()


def _has_state(module: str | None) -> bool:
    """Whether objects of a module that is not the user's may hold the user's state."""
    top = (module or "").partition(".")[0]
    return top == "numpy" or (top in sys.stdlib_module_names and top != "weakref")  # weakref keeps caches


def is_own(module: str | None) -> bool:
    """Whether a module belongs to the user, so that its contents are state that a kernel may change. Installed packages
    do not: their caches, counters and options change for reasons of their own."""
    if module is None:
        return False
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package not in _FOREIGN and _INSTALLED.isdisjoint(file.split(os.sep))


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


# -- one turn for all, and both branches -------------------------------------------------------------------------------

Place = Callable[[str], Span]


class Turn:
    """The one iteration of a kernel loop that is traced. `names` are the names that its body binds; `place` gives the
    line that changes a name's value."""

    def __init__(
        self,
        frame: types.FrameType,
        used: Sequence[str],
        targets: tuple[str, ...],
        names: tuple[str, ...],
        captured: frozenset[str],
    ) -> None:
        self.used = used
        self.frame, self.targets, self.names, self.captured = frame, targets, names, captured
        self.before = dict(frame.f_locals)
        self.state = snapshot(frame, used)
        self.wrapped = {
            name: CarriedName(self.before[name])
            for name in names
            if name in self.before and name not in captured and not isinstance(held(self.before[name]), LostName)
        }
        self.after: dict[str, object] = {}

    def read(self, names: tuple[str, ...], span: Span) -> None:
        """Record that these names were read where the iteration begins."""
        for name in names:
            if name in self.wrapped:
                self.wrapped[name].reads.append(span)

    def enter(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """The values of the names where the iteration begins."""
        return tuple(self.wrapped.get(name, self.before.get(name, unbound(name))) for name in names)

    def finish(self, runs: bool, span_of: Place) -> None:
        """Raises KernelError at the line that changes what another iteration would see; `runs` is whether at least one
        iteration is certain."""
        now = dict(self.frame.f_locals)
        later = snapshot(self.frame, self.used)
        ids_before = {id(held(value)) for value in self.before.values()}
        for name in dict.fromkeys([*self.names, *self.targets]):
            before, value = self.before.get(name, unbound(name)), now.get(name, unbound(name))
            if name not in self.targets and same(before, value):
                self.after[name] = before
                continue
            is_new = isinstance(held(before), LostName)
            if not is_new and name not in self.targets:
                reads = self.wrapped[name].reads if name in self.wrapped else []
                if reads or name in self.captured:
                    raise carried(name, span_of(name), reads[0] if reads else None)
            is_kept = is_new and name not in self.targets and runs and (is_plain(value) or id(value) in ids_before)
            self.after[name] = value if is_kept else after_loop(name)
        # A frame that a name of its own leads to would keep itself.
        del self.frame
        name = self.state.changed(later, {*self.names, *self.targets})
        if name is not None:
            raise changed(name, span_of(name), "loop")

    def leave(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """The values of the names after the loop."""
        return tuple(self.after[name] for name in names)


def carried(name: str, span: Span, read: Span | None) -> KernelError:
    where = f", and line {read.line} reads it" if read is not None else ", and a function reads it"
    return KernelError(
        "K014",
        f"{name} changes in Python between iterations of a kernel loop{where}: "
        "the body is traced once, for all iterations",
        hint="compute it from the loop's variable, keep it in T.alloc_var or a buffer, or run the loop in Python: "
        "`for k in [*range(n)]` unrolls it",
        span=span,
    )


def changed(name: str, span: Span, where: str) -> KernelError:
    is_loop = where == "loop"
    why = "the body is traced once, for all iterations" if is_loop else "it is decided when the kernel runs"
    return KernelError(
        "K014",
        f"Python changes the value of {name} inside a {'kernel loop' if is_loop else 'branch'}: {why}",
        hint="change it outside, keep it in T.alloc_var or a buffer, or let Python run the loop: "
        "`for k in [*range(n)]` unrolls it; cache what a helper computes with @functools.cache",
        span=span,
    )


def asked(callee: str, span: Span | None) -> KernelError:
    return KernelError(
        "K014",
        f"{callee} returns a different value each time and is called inside a kernel loop: "
        "the body is traced once, for all iterations",
        hint="call it before the loop, or let Python run the loop: `for k in [*range(n)]` unrolls it",
        span=span,
    )


def after_loop(name: str) -> LostName:
    return LostName(
        KernelError(
            "K014",
            f"{name} is read after the loop that binds it: its last value is not known at compile time",
            hint="keep it in T.alloc_var or a buffer, or compute it from the loop bounds",
        )
    )


def after_branch(name: str) -> LostName:
    return LostName(
        KernelError(
            "K014",
            f"{name} is bound in a branch that is decided when the kernel runs: its value is not known at compile time",
            hint=f"write `{name} = a if condition else b`, or keep it in T.alloc_var",
        )
    )


class Branches:
    """The names that the two sides of a branch bind; each side starts with the values before the branch."""

    def __init__(self, frame: types.FrameType, used: Sequence[str], names: tuple[str, ...]) -> None:
        self.names, self.used, self.state = names, used, snapshot(frame, used)
        self.before = self._now(frame)
        self.sides: list[dict[str, object]] = []

    def _now(self, frame: types.FrameType) -> dict[str, object]:
        now = frame.f_locals
        return {name: now.get(name, unbound(name)) for name in self.names}

    def side(self, frame: types.FrameType, span_of: Place) -> None:
        """Finish tracing one side. Raises KernelError at the line where it changes what the other side would see."""
        self.sides.append(self._now(frame))
        name = self.state.changed(snapshot(frame, self.used), set(self.names))
        if name is not None:
            raise changed(name, span_of(name), "branch")

    def again(self) -> tuple[object, ...]:
        """The values of the names where the other side begins."""
        return tuple(self.before[name] for name in self.names)

    def merged(self) -> tuple[object, ...]:
        """The values of the names after the branch."""
        then_values, else_values = self.sides if len(self.sides) == 2 else (self.sides[0], self.before)
        return tuple(
            then_values[name] if same(then_values[name], else_values[name]) else after_branch(name)
            for name in self.names
        )
