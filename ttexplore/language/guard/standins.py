"""Stand-ins for values from modules that are not installed, while an example file loads."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Generator, Iterator, Mapping
from contextvars import ContextVar

from ttexplore.errors import KernelError

# Whether a kernel is being made, by its factory or by tracing: then nothing may depend on what is not there.
_MAKING: ContextVar[bool] = ContextVar("a kernel is being made", default=False)

# The operators of Python, without equality, by the names of their methods.
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
ARITHMETIC = [*_BINARY, *(f"r{name}" for name in _BINARY), "neg", "pos", "abs", "invert", "getitem"]
COMPARISONS = ["lt", "le", "gt", "ge"]


@contextlib.contextmanager
def making() -> Generator[None]:
    """Reject stand-ins, inside the `with` block, where Python asks for their value."""
    token = _MAKING.set(True)
    try:
        yield
    finally:
        _MAKING.reset(token)


class _AnyAttribute(type):
    """A class whose missing attributes are stand-ins: ``class F(torch.autograd.Function); F.apply``."""

    def __getattr__(cls, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{cls.__name__}.{name}")


class StandInBase(metaclass=_AnyAttribute):
    """The base that a class gets in place of a stand-in."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{type(self).__name__}.{name}")


class StandIn:
    """A value from a module that is not installed: every operation on it gives another stand-in.

    It is false and empty, so that the rest of a file loads. It is not a number, and while a kernel is being built, its
    truth value, its items and comparisons with it raise KernelError.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __call__(self, *args: object, **options: object) -> object:
        # A decorator gives back what it decorates.
        if len(args) == 1 and not options and isinstance(args[0], types.FunctionType | type):
            return args[0]
        return StandIn(f"{self._name}()")

    def __mro_entries__(self, _bases: object) -> tuple[type, ...]:
        return (StandInBase,)

    def __repr__(self) -> str:
        return self._name

    def __format__(self, _specification: str) -> str:
        return self._name

    def refuse(self, operation: str) -> KernelError:
        """The error for a value from a module that is not installed."""
        return KernelError(
            "K012",
            f"{operation} is {self!r}, from a module that is not installed",
            hint="install the module, or pass the value as an argument of the kernel",
        )

    def _asked(self, operation: str) -> None:
        if _MAKING.get():
            raise self.refuse(operation)

    def __iter__(self) -> Iterator[object]:
        self._asked("the iterated value")
        return iter(())

    def __len__(self) -> int:
        self._asked("the argument of len")
        return 0

    def __bool__(self) -> bool:
        self._asked("a condition")
        return False

    def __int__(self) -> int:
        raise self.refuse("a number")

    def __float__(self) -> float:
        raise self.refuse("a number")

    def __index__(self) -> int:
        raise self.refuse("a number")

    def __contains__(self, _item: object) -> bool:
        self._asked("the searched value")
        return False

    def __eq__(self, other: object) -> bool:
        if other is not self:
            self._asked("a compared value")
        return other is self

    def __hash__(self) -> int:
        return id(self)

    def __setitem__(self, _key: object, _value: object) -> None:
        self._asked("what a statement stores to")

    def __enter__(self) -> StandIn:
        self._asked("the context of a with statement")
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _itself(self: StandIn, *_operands: object) -> StandIn:
    return self


def _compared(self: StandIn, _other: object) -> StandIn:
    self._asked("a compared value")
    return self


for _name in ARITHMETIC:
    setattr(StandIn, f"__{_name}__", _itself)
for _name in COMPARISONS:
    setattr(StandIn, f"__{_name}__", _compared)


class StandInModule(types.ModuleType):
    """A module that is not installed: every name in it is a stand-in, except known ones."""

    def __init__(self, name: str, members: Mapping[str, object] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(members or {})
        self.__path__ = []
        self.__all__: list[str] = []
        self.__file__ = f"<stand-in for {name}>"
        self.__version__ = "0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")
