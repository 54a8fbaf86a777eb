"""Reject questions of plain Python that a value known only when the kernel runs cannot answer.

TVM answers too readily: `a == b` is true if both are the same object, and an expression is a dict key by its address.
In code that is not rewritten (helper functions, lambdas in other files, Python's own functions) such an answer would
silently be wrong, so these questions raise an error wherever the user's Python asks them. TVM's own code and the passes
may still compare expressions by identity.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TypeVar

from tvm import ir, tirx
from tvm.ir.expr import ExprWithOp

from ttexplore.errors import KernelError
from ttexplore.ir.adapter import is_buffer, set_members
from ttexplore.language.guard.instead import decided_by
from ttexplore.language.guard.names import CURRENT, HOOKS
from ttexplore.language.guard.state import is_own
from ttexplore.language.tracer.builder import Builder, traced_now
from ttexplore.record import Span

T = TypeVar("T")
# Whose questions are about objects, not about values.
_INTERNAL = ("tvm", "tvm_ffi", "ttexplore")
# The modules of ours that do what the user's Python asks for.
_ASKING_FOR_THE_USER = ("ttexplore.language",)


def no_answer(span: Span | None = None, instead: str | None = None) -> KernelError:
    """The error for Python that decides by a value known only when the kernel runs; `instead` says what to write in its
    place."""
    return KernelError(
        "K010",
        "plain Python uses a value known only when the kernel runs",
        hint=instead
        or "decorate the helper function with @T.macro, so that its if, loops and assignments become part of the "
        "kernel, or write T.if_then_else(condition, a, b)",
        span=span,
    )


def is_symbolic(value: object) -> bool:
    """Whether a value is a number known only when the kernel runs; blocks and tensors are not."""
    return isinstance(value, tirx.expr.EqualOp | tirx.expr.NotEqualOp) or (
        isinstance(value, ir.Expr)
        and not isinstance(value, ir.TensorRegion | ir.StringImm | tirx.IntImm | tirx.FloatImm)
        and not is_buffer(value)
    )


def decided(left: object, right: object) -> bool | None:
    """Whether two values are equal, or None if that is not known now."""
    lhs, rhs = (_number(value) for value in (left, right))
    if not isinstance(lhs, ir.Expr) and not isinstance(rhs, ir.Expr):
        return bool(lhs == rhs)
    if is_buffer(lhs) or is_buffer(rhs):
        return isinstance(lhs, ir.Expr) and lhs.same_as(rhs)
    if not all(isinstance(value, ir.Expr | bool | int | float) for value in (lhs, rhs)):
        return False
    if isinstance(lhs, ir.Expr) and lhs.same_as(rhs) and "float" not in str(lhs.ty):
        return True
    return None


def _number(value: object) -> object:
    return value.value if isinstance(value, tirx.IntImm | tirx.FloatImm) else value


def _asked_by_user(frame: types.FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] not in _INTERNAL or module.startswith(_ASKING_FOR_THE_USER)


def _truth(equal: bool) -> Callable[[tirx.expr.EqualOp | tirx.expr.NotEqualOp], bool]:
    def truth(self: tirx.expr.EqualOp | tirx.expr.NotEqualOp) -> bool:
        if not _asked_by_user(sys._getframe(1)):
            same = self.a.same_as(self.b)
            return same if equal else not same
        answer = decided(self.a, self.b)
        if answer is None:
            raise no_answer(instead=decided_by())
        return answer if equal else not answer

    return truth


def _hash(self: ExprWithOp) -> int:
    if CURRENT.get() is not None and _asked_by_user(sys._getframe(1)):
        if isinstance(self, tirx.IntImm | tirx.FloatImm):
            return hash(self.value)
        if is_symbolic(self):
            raise KernelError(
                "K010",
                "a dict or a set looks up a value known only when the kernel runs",
                hint="a dict or a set would find it by what it is called, not by its number: choose with "
                "T.if_then_else(x == 0, a, b), or look up by a number that is known now",
            )
    return _address(self)


_address = ExprWithOp.__hash__


def _texting(of: Callable[[T], str]) -> Callable[[T], str]:
    def text(self: T) -> str:
        asking = sys._getframe(1)
        # In a kernel itself the rewritten code asks for what becomes a text; what it leaves is only shown.
        if (
            CURRENT.get() is not None
            and is_own(str(asking.f_globals.get("__name__", "")))
            and HOOKS not in asking.f_code.co_freevars
            and is_symbolic(self)
        ):
            raise no_text(of(self))
        return of(self)

    return text


def no_text(value: str, span: Span | None = None) -> KernelError:
    """The error for converting a value known only when the kernel runs to text."""
    return KernelError(
        "K010",
        f"{value} is converted to text, but its value is known only when the kernel runs",
        hint="leave the value out, because text is made while the kernel is traced, or print it in the kernel itself",
        span=span,
    )


def of_compiler(name: str) -> KernelError:
    """The error for an attribute that TVM's object has, but not the value that it represents."""
    return KernelError(
        "K010",
        f".{name} belongs to the compiler's expression, not to its value, which is known only when the kernel runs",
        hint="use .dtype, .astype(dtype) and operators; decide by a number known at compile time, or "
        "compare the value itself: T.if_then_else(x == 0, a, b)",
    )


def has_attribute(name: str) -> bool:
    """Whether values known only when the kernel runs have this attribute."""
    return name in ("dtype", "astype") or (name.startswith("__") and name != "__class__")


def _name(self: ir.Var) -> str:
    if CURRENT.get() is not None and is_own(str(sys._getframe(1).f_globals.get("__name__", ""))) and is_symbolic(self):
        raise of_compiler("name")
    return _name_of.__get__(self)


_name_of = vars(ir.Var)["name"]


def install(subscript: Callable[[Builder, tirx.Buffer, object], object]) -> None:
    """Make symbolic values reject such questions, in the whole process and in every thread.

    `subscript` gives the element or region of a kernel's buffer.
    """

    def element(self: ir.Var, indices: object) -> object:
        builder = traced_now()
        if builder is not None and is_buffer(self) and _asked_by_user(sys._getframe(1)):
            return subscript(builder, self, indices)
        return _element(self, indices)

    equal, unequal = tirx.expr.EqualOp, tirx.expr.NotEqualOp
    set_members(equal, __bool__=_truth(True), __repr__=_texting(equal.__repr__))
    set_members(unequal, __bool__=_truth(False), __repr__=_texting(unequal.__repr__))
    set_members(ExprWithOp, __hash__=_hash)
    set_members(tirx.IntImm, __hash__=_hash)
    set_members(ir.Node, __repr__=_texting(ir.Node.__repr__))
    # Without an iterator a block of no known end would be taken apart element by element.
    set_members(ir.TensorLoad, __iter__=None)
    set_members(ir.Var, __iter__=None, __getitem__=element, name=property(_name))


_element = vars(ir.Expr)["__getitem__"]
