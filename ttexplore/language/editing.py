"""Kernels with another text: the text of a kernel's function is executed in the place of the old one.

The text sees what the old one saw: the names of its module or of the notebook, and those of the functions around it,
such as the arguments of a factory. These are not changed. What was done to the kernel after its definition (outputs
that ``out_idx`` selects, annotations from outside) is done to the new one.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import linecache
import types
from pathlib import Path

import tvm_ffi
from tvm import tirx

from ttexplore.errors import KernelError, UsageError
from ttexplore.language.alias import tilelang_alias
from ttexplore.language.guard.surroundings import Surroundings
from ttexplore.language.tracer.kernel import PrimFunc, TracedKernel, errors_at, trace_named, with_outputs
from ttexplore.language.tracer.spans import code_file, display_name, numbered_listing
from ttexplore.record import Span, lines_of

OF_ALL_LAUNCHES = "the text of a launch belongs to all launches of its kernel"
_ELSEWHERE = "edit the kernel's cell or file, and explore it again"
_NAME = "__edited"


def edited(kernel: TracedKernel, text: str) -> TracedKernel:
    """The kernel with another text of its function; the very kernel that was first explored, for its text.

    Raises KernelError, at its line, for a text that is not valid Python, defines no kernel or raises, UsageError for a
    kernel whose text alone does not define it, and what tracing raises.
    """
    surroundings = kernel.surroundings
    if surroundings is None:
        raise UsageError(
            "U020", f"{kernel.name} cannot be edited: {OF_ALL_LAUNCHES}", hint="edit that of the whole: ex.edited(text)"
        )
    first = surroundings.unedited or kernel
    if lines_of(text) == [line.text for line in first.source.lines]:
        return first
    with contextlib.nullcontext() if surroundings.folder is None else tilelang_alias(Path(surroundings.folder)):
        plain = _defined(first, surroundings, first.source.text)
        return _completed(_defined(first, surroundings, text), plain, first)


def _defined(kernel: TracedKernel, surroundings: Surroundings, text: str) -> TracedKernel:
    """Execute a text where the kernel's own text is, and trace the kernel that it defines."""
    # Lines keep their numbers; what stood inside of a function stays indented.
    above = "\n" * (kernel.first_line - 2)
    if kernel.first_line > 1:
        above += "if True:\n" if _is_indented(text) else "\n"
    full_text = above + text
    digest = hashlib.sha256(full_text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    file = code_file(kernel.file, digest, edited=text != kernel.source.text)
    linecache.cache[file] = (len(full_text), None, [line + "\n" for line in lines_of(full_text)], file)
    try:
        name, code = _compiled(full_text, file, kernel.first_line, surroundings)
        namespace = dict(surroundings.module)
        with errors_at({file: display_name(file)}, None):
            exec(code, namespace)
            defined = namespace[_NAME](**_visible(surroundings))
        traced = trace_named(defined, {} if isinstance(defined, PrimFunc) else dict(surroundings.arguments), name)
        if kernel.name != kernel.source.name:
            # The name is that of the factory, which is not executed.
            traced = traced.named(kernel.name)
        # Also what stands around the function in the text, such as a comment above it.
        source = numbered_listing(lines_of(text), kernel.first_line, traced.file, traced.source.name)
        return dataclasses.replace(traced, source=source, first_line=kernel.first_line)
    finally:
        linecache.cache.pop(file, None)


def _is_indented(text: str) -> bool:
    code = (line for line in lines_of(text) if line.strip() and not line.lstrip().startswith("#"))
    return next(code, "")[:1].isspace()


def _visible(surroundings: Surroundings) -> dict[str, object]:
    return {name: value for name, value in surroundings.around.items() if name.isidentifier()}


def _compiled(full_text: str, file: str, first: int, surroundings: Surroundings) -> tuple[str, types.CodeType]:
    """The name of the last function of a text, and code that defines a function which gives it. The text begins at line
    `first`."""
    try:
        body = ast.parse(full_text, file).body
        if body and isinstance(body[0], ast.If):
            body = [*body[0].body, *body[1:]]
        names = [statement.name for statement in body if isinstance(statement, ast.FunctionDef)]
        if not names:
            raise KernelError(
                "K011",
                "the text defines no kernel",
                hint="keep the function of the kernel, with its decorators",
                span=_line(file, first),
            )
        parameters = [ast.arg(name) for name in _visible(surroundings)]
        around = ast.FunctionDef(
            _NAME, ast.arguments([], parameters, None, [], [], None, []),
            [*body, ast.Return(ast.Name(names[-1], ast.Load()))], [], None,
        )  # fmt: skip
        module = ast.fix_missing_locations(ast.Module([around], []))
        return names[-1], compile(module, file, "exec", flags=surroundings.flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        said, line = (error.msg, error.lineno) if isinstance(error, SyntaxError) else (str(error), None)
        raise KernelError(
            "K011",
            said,
            hint="fix the line: the text is not valid Python",
            span=_line(file, max(first, line or first)),
        ) from error


def _line(file: str, line: int) -> Span:
    return Span(display_name(file), line, 1, line, 1)


def _completed(traced: TracedKernel, plain: TracedKernel, first: TracedKernel) -> TracedKernel:
    """The kernel of an edited text with what was done to the `first` one after its definition, which `plain` lacks.

    Raises UsageError if the first text alone does not give the first kernel: it depends on more than its surroundings.
    """
    assert first.surroundings is not None, "an edited kernel has them"
    again = zip((first.notes, first.annotations), (plain.notes, plain.annotations), strict=True)
    if not _same(first, plain) or any(
        first_items[: len(plain_items)] != plain_items for first_items, plain_items in again
    ):
        raise UsageError(
            "U020",
            f"{first.name} cannot be edited: its text, executed alone, defines another kernel",
            hint=_ELSEWHERE,
        )
    notes = (*traced.notes, *first.notes[len(plain.notes) :])
    surroundings = dataclasses.replace(first.surroundings, unedited=first)
    completed = dataclasses.replace(traced, notes=notes, surroundings=surroundings)
    completed = completed.annotated(first.annotations[len(plain.annotations) :])
    if first.outputs == plain.outputs:
        return completed
    if len(traced.function.params) != len(first.function.params):
        raise UsageError(
            "U020",
            f"the outputs of {first.name} are selected by their positions, and its text now has other parameters",
            hint=_ELSEWHERE,
        )
    return with_outputs(completed, first.outputs)


def _same(first: TracedKernel, plain: TracedKernel) -> bool:
    first_func, second_func = (tirx.PrimFunc(list(each.function.params), each.function.body) for each in (first, plain))
    return bool(tvm_ffi.structural_equal(first_func, second_func))
