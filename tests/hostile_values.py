"""Values whose methods raise something: of a user's classes, and of subclasses of Python's and NumPy's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_METHODS = (
    "__eq__", "__ne__", "__repr__", "__str__", "__bool__", "__hash__", "__array__", "__len__", "__iter__",
    "__getitem__", "__contains__", "__index__", "__int__", "__float__", "__format__", "__lt__", "__gt__", "__le__",
    "__ge__", "__fspath__", "__call__", "__add__", "__mul__", "__mod__", "__sub__", "__reduce_ex__", "__deepcopy__",
    "__copy__", "__round__", "__neg__", "__abs__", "keys", "items", "astype", "tolist",
)  # fmt: skip


def _raising(name: str, error: type[BaseException]) -> Any:
    def method(self: object, *values: object, **options: object) -> object:
        raise error(f"no {name}")

    return method


def hostile(base: type, *methods: str, error: type[BaseException] = RuntimeError) -> Any:
    """A subclass of `base` whose methods, by default all, raise an error."""
    return type("Hostile", (base,), {name: _raising(name, error) for name in methods or _METHODS})


class _NoMapping(Mapping[str, int]):
    __getitem__ = __iter__ = __len__ = _raising("access", RuntimeError)


class _NoSequence(Sequence[int]):
    __getitem__ = __len__ = _raising("access", RuntimeError)


class _Named(type):
    @property
    def __name__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise RuntimeError("no name")


class _NoName(metaclass=_Named):
    __repr__ = _raising("__repr__", RuntimeError)


def _objects() -> Any:
    array = np.empty(2, object)
    array[:] = [hostile(object, "__repr__")(), 1]
    return array


def _call(*values: object, **options: object) -> object:
    raise SystemExit(2)


_ANYTHING = hostile(object)
HOSTILE: dict[str, Any] = {
    **{f"__{name}__": hostile(object, f"__{name}__")() for name in ("eq", "repr", "bool", "hash", "array", "str")},
    "attributes": hostile(object, "__getattr__")(), "object": _ANYTHING(),
    "exits": hostile(object, error=SystemExit)(), "int": hostile(int)(5), "float": hostile(float)(5.0),
    "str": hostile(str)("emulator"), "list": hostile(list)([1, 2]), "tuple": hostile(tuple)((1, 2)),
    "dict": hostile(dict)(), "dict of one": hostile(dict, "__eq__", "__repr__", "__bool__", "__len__")({"a": 1}),
    "in a list": [_ANYTHING()], "in a dict": {"a": _ANYTHING()}, "number in a list": [hostile(int)(5)],
    "array": np.zeros((2, 2)).view(hostile(np.ndarray, "__eq__", "__repr__", "__bool__", "__array__", "tolist")),
    "array of objects": _objects(), "mapping": _NoMapping(), "sequence": _NoSequence(), "no name": _NoName(),
    "call": _call,
}  # fmt: skip
