"""Functions whose result differs on each call without any state that could be compared: clocks, the system's random
numbers, the keyboard.

The body of a kernel loop is traced once, so every iteration would get the first result. Python reports each call of a C
function while a profile function is set; it is set only if the kernel's code might call one of these.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import sys
import time
import types
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from ttexplore.language.tracer.spans import frame_span
from ttexplore.record import Span

if TYPE_CHECKING:
    from _typeshed import ProfileFunction

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def _functions(module: types.ModuleType, names: Collection[str]) -> dict[object, str]:
    """The functions with these names that the module has on this machine."""
    return {function: f"{module.__name__}.{name}" for name, function in vars(module).items() if name in names}


_ASKED: dict[object, str] = {
    **_functions(time, [*_CLOCKS, *(f"{name}_ns" for name in _CLOCKS)]),
    **_functions(time, ["localtime", "gmtime", "ctime", "asctime", "strftime"]),
    **{getattr(datetime.datetime, name): f"datetime.{name}" for name in ("now", "utcnow", "today")},
    datetime.date.today: "date.today",
    **_functions(os, ["urandom", "getrandom", "times"]),
    builtins.input: "input",
}
# By these names code may reach one of them, also by way of the standard library.
_NAMES = frozenset(
    [name.rpartition(".")[2] for name in _ASKED.values()]
    + ["uuid1", "uuid4", "secrets", "SystemRandom", "randbelow", "token_bytes", "token_hex", "token_urlsafe"]
)
# The modules that ask on behalf of who calls them; others (logging) have reasons of their own.
_ASKING = frozenset(["uuid", "secrets", "random"])


def may_ask(value: object) -> bool:
    """Whether a value that code can reach is one of these functions, or calls one."""
    return isinstance(value, random.SystemRandom) or (_is_of_c(value) and value in _ASKED)


def may_reach(names: tuple[str, ...]) -> bool:
    """Whether code that uses these names may call one of them."""
    return not _NAMES.isdisjoint(names)


def _is_of_c(value: object) -> bool:
    return type(value) is types.BuiltinFunctionType


class Watch:
    """Record the first call of such a function from the user's Python inside a kernel loop. It watches one thread."""

    def __init__(self) -> None:
        self.found: tuple[str, Span | None] | None = None
        self._before: ProfileFunction | None = None
        self._is_on = False

    def start(self, files: Mapping[str, str], is_inside: Callable[[], bool], is_own: Callable[[str], bool]) -> None:
        """Record calls while `is_inside` returns true, from modules that belong to the user."""
        if self._is_on:
            return

        def heard(frame: types.FrameType, event: str, function: object) -> None:
            if event != "c_call" or self.found or not _is_of_c(function) or function not in _ASKED or not is_inside():
                return
            asking: types.FrameType | None = frame
            while asking is not None and asking.f_globals.get("__name__") in _ASKING:
                asking = asking.f_back
            if asking is None or not is_own(str(asking.f_globals.get("__name__", ""))):
                return
            while asking is not None and asking.f_code.co_filename not in files:
                asking = asking.f_back
            span = frame_span(asking, asking.f_lasti, files[asking.f_code.co_filename]) if asking is not None else None
            self.found = (_ASKED[function], span)

        self._before, self._is_on = sys.getprofile(), True
        sys.setprofile(heard)

    def stop(self) -> None:
        if self._is_on:
            sys.setprofile(self._before)
            self._is_on = False
