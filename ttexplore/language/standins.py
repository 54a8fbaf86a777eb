"""Stand-ins for values of modules that are not installed, while an example file loads."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any


class _AnyAttribute(type):
    """A class whose attributes that do not exist are stand-ins: ``class F(torch.autograd.Function); F.apply``."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{cls.__name__}.{name}")


class StandInBase(metaclass=_AnyAttribute):
    """What a class gets as base where its own base is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{type(self).__name__}.{name}")


class StandIn:
    """A value of a module that is not installed: whatever is done to it gives another stand-in.

    It is false, has no elements, and is 1 where a number is wanted.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        # A decorator gives back what it decorates.
        if len(args) == 1 and not options and isinstance(args[0], types.FunctionType | type):
            return args[0]
        return StandIn(f"{self._name}()")

    def __mro_entries__(self, _bases: Any) -> tuple[type, ...]:
        return (StandInBase,)

    def __repr__(self) -> str:
        return self._name

    def __format__(self, _specification: str) -> str:
        return self._name

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __int__(self) -> int:
        return 1

    def __float__(self) -> float:
        return 1.0

    def __contains__(self, _item: Any) -> bool:
        return False

    def __setitem__(self, _key: Any, _value: Any) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


def _itself(self: StandIn, *_operands: Any) -> StandIn:
    return self


for _name in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "matmul",
    "rmatmul",
    "neg",
    "pos",
    "abs",
    "invert",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "getitem",
    "lt",
    "le",
    "gt",
    "ge",
    "enter",
]:
    setattr(StandIn, f"__{_name}__", _itself)


class StandInModule(types.ModuleType):
    """A module that is not installed: every name in it is a stand-in."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__all__: list[str] = []
        self.__file__ = f"<stand-in for {name}>"
        self.__version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")
