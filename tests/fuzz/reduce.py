"""Making a failing kernel small: whatever can be left out or made plainer, as long as it fails the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.description import (
    Allocate,
    Bind,
    Branch,
    Call,
    Copy,
    Expression,
    Fill,
    Gemm,
    Kernel,
    Load,
    Loop,
    Parallel,
    Position,
    Reduce,
    Scalar,
    Schedule,
    Statement,
    Store,
    Tensor,
    loaded,
    statements,
    unused,
)

Fails = Callable[[Kernel, Schedule], bool]


def reduced(kernel: Kernel, schedule: Schedule, fails: Fails, *, attempts: int = 120) -> tuple[Kernel, Schedule]:
    """The smallest kernel and schedule found that `fails` accepts; it is asked at most `attempts` times."""
    while True:
        for smaller in _smaller(kernel, schedule):
            if attempts == 0:
                return kernel, schedule
            attempts -= 1
            if fails(*smaller):
                kernel, schedule = smaller
                break
        else:
            return kernel, schedule


def _smaller(kernel: Kernel, schedule: Schedule) -> Iterator[tuple[Kernel, Schedule]]:
    for name in schedule.options:
        yield kernel, replace(schedule, options={k: v for k, v in schedule.options.items() if k != name})
    if schedule.few_buffers:
        yield kernel, replace(schedule, few_buffers=False)
    if schedule.target != "wormhole_n150":
        yield kernel, replace(schedule, target="wormhole_n150")
    for body in _bodies(kernel.body):
        yield _tidy(replace(kernel, body=body), unused(kernel)), schedule
    for axis, extent in enumerate(kernel.grid):
        if isinstance(extent, int) and extent > 1:
            yield replace(kernel, grid=(*kernel.grid[:axis], 1, *kernel.grid[axis + 1 :])), schedule
    for number in range(len(kernel.annotations)):
        yield replace(kernel, annotations=(*kernel.annotations[:number], *kernel.annotations[number + 1 :])), schedule
    for size in kernel.sizes:
        yield kernel.fixed(size.name), schedule
    for tensor in unused(kernel):
        yield replace(kernel, tensors=tuple(one for one in kernel.tensors if one != tensor)), schedule
    if kernel.name != "kernel":
        yield replace(kernel, name="kernel"), schedule
    for number, tensor in enumerate(kernel.tensors):
        if tensor.dtype != "bfloat16":
            made = (*kernel.tensors[:number], replace(tensor, dtype="bfloat16"), *kernel.tensors[number + 1 :])
            yield replace(kernel, tensors=made), schedule


def _bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    """Bodies with one thing less, the largest parts first."""
    for number, statement in enumerate(body):
        if not isinstance(statement, Allocate):
            yield (*body[:number], *body[number + 1 :])
    for number, statement in enumerate(body):
        for made in _plainer(statement):
            yield (*body[:number], *made, *body[number + 1 :])


def _plainer(statement: Statement) -> Iterator[tuple[Statement, ...]]:
    match statement:
        case Loop(variable, extent, stages, body):
            if not any(variable in text for one in statements(body) for text in _texts(one)):
                yield body
            if stages is not None:
                yield (replace(statement, stages=None),)
            if statement.in_python:
                yield (replace(statement, in_python=False),)
            for bound in ("own", "first", "shift", "test"):
                if getattr(statement, bound):
                    yield (replace(statement, **{bound: ""}),)
            if isinstance(extent, int) and extent > 2:
                yield (replace(statement, extent=2),)
            for inner in _bodies(body):
                if inner:
                    yield (replace(statement, body=inner),)
        case Branch(test, body, other):
            yield body
            if other:
                yield other
                yield (Branch(test, body),)
            for inner in _bodies(body):
                yield (replace(statement, body=inner),)
            for inner in _bodies(other):
                yield (replace(statement, other=inner),)
        case Parallel(_, _, body):
            for number, one in enumerate(body):
                rest = (*body[:number], *body[number + 1 :])
                if rest:
                    yield (replace(statement, body=rest),)
                if isinstance(one, Store) and one.test is not None:
                    for made in (replace(one, test=None, other=None), replace(one, value=one.other or one.value)):
                        yield (replace(statement, body=(*body[:number], made, *body[number + 1 :])),)
                    for test in _plainer_values(one.test):
                        made = (*body[:number], replace(one, test=test), *body[number + 1 :])
                        yield (replace(statement, body=made),)
                if isinstance(one, Bind) and one.form != "name":
                    made = (*body[:number], replace(one, form="name"), *body[number + 1 :])
                    yield (replace(statement, body=made),)
                for value in _plainer_values(one.value):
                    made = (*body[:number], replace(one, value=value), *body[number + 1 :])
                    yield (replace(statement, body=made),)
        case Allocate(_, _, dtype, scope):
            if dtype != "bfloat16":
                yield (replace(statement, dtype="bfloat16"),)
            # What is stored to a variable has no index: in another scope, the store would only bind a name.
            if scope not in ("shared", "var"):
                yield (replace(statement, scope="shared"),)
        case Gemm(_, _, _, transpose_a, transpose_b, clear):
            if transpose_a or transpose_b or clear:
                yield (replace(statement, transpose_a=False, transpose_b=False, clear=False),)
        case Scalar(_, value):
            for made in _plainer_values(value):
                yield (replace(statement, value=made),)
        case Reduce(clear=False):
            yield (replace(statement, clear=True),)
        case Copy() | Fill() | Reduce():
            pass


def _plainer_values(value: Expression) -> Iterator[Expression]:
    """Parts of the expression, and the expression with one part made plainer."""
    if isinstance(value, Call):
        yield from value.arguments
        for number, argument in enumerate(value.arguments):
            for made in _plainer_values(argument):
                yield Call(value.name, (*value.arguments[:number], made, *value.arguments[number + 1 :]))


def _texts(statement: Statement) -> list[str]:
    match statement:
        case Copy(source, target):
            return [*source.starts, *target.starts]
        case Parallel():
            stores = [one for one in statement.body if isinstance(one, Store)]
            values = [one.value for one in statement.body]
            values += [one for store in stores for one in (store.test, store.other) if one is not None]
            return [
                *(text for value in values for text in _value_texts(value)),
                *(text for store in stores for text in store.indices),
            ]
        case Branch(test):
            return [test]
        case _:
            return []


def _value_texts(value: Expression) -> list[str]:
    match value:
        case Load(_, indices):
            return list(indices)
        case Position(text):
            return [text]
        case Call(_, arguments):
            return [text for one in arguments for text in _value_texts(one)]
        case _:
            return []


def _tidy(kernel: Kernel, kept: tuple[Tensor, ...]) -> Kernel:
    """The kernel without tensors and buffers that nothing touches, but with those `kept`."""
    used = {one.name for one in kept}
    for one in statements(kernel.body):
        used |= _names(one)
    body = tuple(one for one in kernel.body if not isinstance(one, Allocate) or one.name in used)
    return replace(kernel, tensors=tuple(one for one in kernel.tensors if one.name in used), body=body)


def _names(statement: Statement) -> set[str]:
    match statement:
        case Copy(source, target):
            return {source.name, target.name}
        case Fill(buffer):
            return {buffer}
        case Gemm(a, b, c):
            return {a, b, c}
        case Scalar(name, value):
            return {name} | loaded(value)
        case Loop(test=test) | Branch(test=test):
            return set(re.findall(r"[^\W\d]\w*", test))
        case Reduce(_, source, target):
            return {source, target}
        case Parallel():
            names: set[str] = set()
            for one in statement.body:
                names |= one.loaded | {one.buffer} if isinstance(one, Store) else loaded(one.value)
            return names
        case _:
            return set()
