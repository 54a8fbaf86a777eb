"""Kernels (T.prim_func, eager @jit functions, factories, macros) and tracing them to TIR."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import functools
import inspect
import itertools
import re
import sys
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm import ir, tirx

from ttexplore.errors import (
    KernelError,
    TTExploreError,
    Unsupported,
    UsageError,
    caller_too_deep,
    out_of_memory,
    said,
    shown,
    type_name,
)
from ttexplore.ir.adapter import is_buffer, span_of, to_tvm_span
from ttexplore.ir.arithmetic.words import not_held
from ttexplore.ir.build import statements
from ttexplore.ir.rewrite import walk
from ttexplore.language.api.annotations import Annotation, check_tensors
from ttexplore.language.api.reducers import with_plain_updates
from ttexplore.language.api.symbols import no_answer
from ttexplore.language.guard.instead import OPERATORS_AND_T, decided_by, hint_of
from ttexplore.language.guard.names import UnknownName
from ttexplore.language.guard.standins import StandIn, making
from ttexplore.language.guard.surroundings import Surroundings, surroundings_of
from ttexplore.language.tracer.arithmetic import floats_as_integers
from ttexplore.language.tracer.builder import Begun, Builder, TensorSpec, current, sequence, tracing
from ttexplore.language.tracer.containers import is_dict, is_sequence, items_of
from ttexplore.language.tracer.dtypes import as_argument, dtype
from ttexplore.language.tracer.rewrite import rewrite
from ttexplore.language.tracer.spans import caller_span, definition, display_file, error_span, node_span, source_listing
from ttexplore.language.tracer.wide_tensors import check_wide_tensors
from ttexplore.notes import Note, note
from ttexplore.ops import language as tl
from ttexplore.options import OPTIONS
from ttexplore.record import Listing, Span

# While an example file loads, a kernel that cannot be traced is no error until it is asked for, and calls of compiled
# kernels give stand-ins.
loading_file: ContextVar[bool] = ContextVar("an example file is loading", default=False)


# The attribute of a function in a TVM module that holds its TracedKernel.
_KERNEL_ATTRIBUTE = "ttexplore.kernel"
# Loops and branches inside one another, blocks and elements among them. Lowering adds a few, and Python, as which the
# interpreter runs them, has 20 at most.
_LARGEST_DEPTH = 16


@dataclass(frozen=True)
class Said:
    """What is said inside one T.Kernel beside its code: notes and annotations."""

    notes: tuple[Note, ...]
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True)
class TracedKernel:
    """A kernel as TIR: one nest of loops over blocks for each T.Kernel, in order.

    `outputs` are the indices of output parameters of `function`; if empty, outputs follow from the dataflow. `source`
    is the text of the kernel's function (all of an edited text), `first_line` the number of its first line in `file`
    (as given, or ``cell N``). `notes` list the GPU hints that were left out, each with its line; `annotations` are the
    options that the kernel sets; `said` are those of each T.Kernel. `allocated` are the tensors of T.alloc_global.
    """

    name: str
    function: tirx.PrimFunc
    outputs: tuple[int, ...]
    source: Listing
    first_line: int
    file: str
    notes: tuple[Note, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    said: tuple[Said, ...] = ()
    allocated: tuple[tirx.Buffer, ...] = ()
    # Where its text can be edited; None for a launch.
    surroundings: Surroundings | None = field(default=None, compare=False, repr=False)
    # The arguments of its factory, or its own, and what traces it again with some of them changed.
    arguments: Mapping[str, object] = field(default_factory=dict[str, object], compare=False, repr=False)
    traced_with: Callable[[Mapping[str, object]], TracedKernel] | None = field(default=None, compare=False, repr=False)

    @property
    def tensors(self) -> list[tirx.Buffer]:
        """The tensors of the kernel: parameters, then those that it allocates."""
        return [*filter(is_buffer, self.function.params), *self.allocated]

    def named(self, name: str) -> TracedKernel:
        """This kernel with another name: that of its factory, which its user knows."""
        return dataclasses.replace(self, name=name, function=self.function.with_attr("global_symbol", name))

    def with_arguments(self, arguments: Mapping[str, object]) -> TracedKernel:
        """This kernel with the arguments with which an edited text of it is traced."""
        assert self.surroundings is not None, "a kernel that has just been traced has them"
        return dataclasses.replace(self, surroundings=dataclasses.replace(self.surroundings, arguments=arguments))

    def annotated(self, annotations: tuple[Annotation, ...]) -> TracedKernel:
        """This kernel with more annotations. Raises UsageError for one of a tensor that it does not have."""
        names = (str(buffer.name) for buffer in [*self.function.params, *self.allocated])
        check_tensors(annotations, names)
        return dataclasses.replace(self, annotations=(*self.annotations, *annotations))


# -- errors of the user's Python -------------------------------------------------------------------------------------


@contextlib.contextmanager
def errors_at(files: Mapping[str, str], fallback: Span | None) -> Generator[None]:
    """Turn exceptions in the user's Python into a KernelError at its line, and give our own errors their line."""
    try:
        yield
    except TTExploreError as error:
        raise error.at(error_span(error, files) or fallback) from error.__cause__
    # A kernel that calls sys.exit ends itself, not the program that traces it.
    except (Exception, SystemExit) as error:
        span = error_span(error, files) or fallback
        raise _kernel_error(error, span) from error


def _kernel_error(error: BaseException, span: Span | None) -> TTExploreError:
    if isinstance(error, MemoryError):
        return out_of_memory("reading the kernel", span)
    if isinstance(error, RecursionError) and (of_the_caller := caller_too_deep("reading the kernel", span)):
        return of_the_caller
    text = said(error)
    if isinstance(error, UnknownName):
        return KernelError("K011", error.message, hint=error.hint, span=span)
    if "does not support item assignment" in text:
        return no_answer(span)
    if "Cannot use and / or / not" in text:
        return no_answer(span, decided_by(error))
    if "MatchesCode(DLDataTypeCode::kDLInt, DLDataTypeCode::kDLUInt)" in text:
        return floats_as_integers().at(span)
    beyond = re.search(r"Literal value (-?\d+) exceeds range of (\w+)", text)
    if beyond is not None:
        return not_held(beyond[2], int(beyond[1]), span)
    if "ffi.BigInt" in text:
        return not_held("int64", None, span)
    hint = hint_of(error)
    if hint is None:
        names_one = any(_is_expression(word) for word in re.findall(r"\w+", text))
        hint = OPERATORS_AND_T if names_one else "the kernel's own Python raised this while it was traced"
    return KernelError("K011", text, hint=hint, span=span)


def _is_expression(name: str) -> bool:
    """Whether this is the name of an expression class, as Python's own messages print it."""
    node_class = next((vars(module)[name] for module in (tirx, ir, tirx.expr) if vars(module).get(name)), None)
    return isinstance(node_class, type) and issubclass(node_class, ir.Expr | tirx.expr.EqualOp | tirx.expr.NotEqualOp)


# -- tracing one function --------------------------------------------------------------------------------------------


def _head_span(function: types.FunctionType, file: str) -> Span:
    """The ``def name`` of a function."""
    node = definition(function)
    return Span(file, node.lineno, node.col_offset + 1, node.lineno, node.col_offset + len(f"def {node.name}") + 1)


def _trace_function(
    function: types.FunctionType, file: str, constants: dict[str, object], arguments: dict[str, object]
) -> TracedKernel:
    """Run the rewritten function; `arguments` that are TensorSpec or dtype become kernel parameters."""
    twin = rewrite(function, file)
    builder = Builder(constants=constants, files={function.__code__.co_filename: file})
    node, head = definition(function), _head_span(function, file)
    argument_nodes = {
        argument.arg: argument for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    }
    with tracing(builder), errors_at(builder.files, head), making():
        values: dict[str, object] = {}
        for name, value in arguments.items():
            builder.span = node_span(file, argument_nodes[name])
            try:
                values[name] = _parameter(builder, name, value)
            except TTExploreError as error:
                raise error.at(builder.span) from error.__cause__
        positional = [values.pop(argument.arg) for argument in node.args.posonlyargs if argument.arg in values]
        twin(*positional, **values)
    return _finish(builder, function, file, head)


def _parameter(builder: Builder, name: str, value: object) -> object:
    if isinstance(value, TensorSpec):
        return value.make(builder, name)
    if isinstance(value, _Scalar) and value.dtype.startswith(("float", "bfloat")):
        # The host writes tensors; numbers that decide about work are sizes.
        builder.notes.append(note("number", parameter=name))
        return builder.read(TensorSpec((1,), value.dtype).make(builder, name), (0,))
    if isinstance(value, _Scalar):
        variable = tirx.Var(name, value.dtype, builder.tvm_span())
        builder.parameters.append(variable)
        return variable
    return value


def _finish(builder: Builder, function: types.FunctionType, file: str, head: Span) -> TracedKernel:
    name, body = function.__name__, builder.frames[0]
    builder.reads.put_names(body)
    builder.check_executed()
    if not builder.launches:
        raise KernelError("K004", 
            f"{name} launches no blocks", hint="write its statements inside `with T.Kernel(blocks) as bx:`",
            span=span_of(body[0]) if body else head,
        )  # fmt: skip
    for statement in body:
        if not isinstance(statement, tirx.For) or statement.kind != tirx.ForKind.THREAD_BINDING:
            raise KernelError(
                "K005",
                "a statement is outside T.Kernel",
                hint="move it into `with T.Kernel(...)`",
                span=span_of(statement),
            )
    outputs: list[int] = []
    for output in builder.outputs:
        index = next((i for i, parameter in enumerate(builder.parameters) if parameter is output), None)
        if index is None:
            raise KernelError(
                "K007",
                f"{name} returns {shown(output)}, which is not a tensor",
                hint="return tensors made by T.empty",
                span=builder.span,
            )
        outputs.append(index)
    # Sizes come after the tensors: they are no data of the user's.
    parameters = [*builder.parameters, *(s for s in builder.sizes if not any(s.same_as(p) for p in builder.parameters))]
    _check_free(body, parameters)
    _check_depth(body)
    check_wide_tensors(body, builder.wide_tensors)
    prim_function = with_plain_updates(tirx.PrimFunc(parameters, sequence(body), attrs=None, span=to_tvm_span(head)))
    source, first = source_listing(function, file)
    traced = TracedKernel(
        name, prim_function.with_attr("global_symbol", name), (), source, first, file,
        tuple(dict.fromkeys(builder.notes)),
        said=_said(builder), allocated=tuple(builder.allocated),
        surroundings=surroundings_of(function, str(Path(file).absolute().parent) if loading_file.get() else None),
    )  # fmt: skip
    return with_outputs(traced.annotated(tuple(builder.annotations)), outputs)


def _said(builder: Builder) -> tuple[Said, ...]:
    begun = [*builder.launches, Begun(len(builder.notes), len(builder.annotations))]
    return tuple(
        Said(
            tuple(builder.notes[start.notes : end.notes]),
            tuple(builder.annotations[start.annotations : end.annotations]),
        )
        for start, end in itertools.pairwise(begun)
    )


def _check_free(body: list[tirx.Stmt], parameters: list[ir.Var]) -> None:
    """Raises KernelError for a T.dynamic size that no tensor has: nothing would give it a value. The values of another
    launch are refused where launches are split."""
    for statement in body:
        for variable in tirx.analysis.undefined_vars(statement, parameters):
            if not is_buffer(variable) and not any(variable.same_as(bound) for bound in _bound_in(body)):
                raise KernelError(
                    "K013",
                    f"no tensor has the size {variable.name}, so nothing gives it a value",
                    hint="use it in the shape of a tensor, or make it an argument of the factory",
                    span=span_of(statement),
                )


def _bound_in(body: list[tirx.Stmt]) -> Iterable[ir.Var]:
    """The variables of the loops in the statements, and the names bound in them."""
    for statement in body:
        for stmt in walk(statement):
            if isinstance(stmt, tirx.For):
                yield stmt.loop_var
            elif isinstance(stmt, tirx.Bind):
                yield stmt.var


def _check_depth(body: list[tirx.Stmt]) -> None:
    """Raises Unsupported for loops and branches nested more deeply than recursive readers, and the interpreter as
    Python blocks, can handle."""
    waiting = [(statement, 1) for statement in body]
    while waiting:
        statement, depth = waiting.pop()
        if depth > _LARGEST_DEPTH:
            raise Unsupported(
                "L016",
                f"loops and branches are nested more than {_LARGEST_DEPTH} deep",
                hint="merge loops into one: for n in T.serial(rows * columns), with n // columns and n % columns",
                span=span_of(statement),
            )
        match statement:
            case tirx.For() | tirx.While():
                bodies = [statement.body]
            case tirx.IfThenElse():
                bodies = [branch for branch in (statement.then_case, statement.else_case) if branch is not None]
            case _:
                bodies = []
        inner = [stmt for body in bodies for stmt in statements(body)]
        waiting += [(stmt, depth + isinstance(stmt, tirx.For | tirx.While | tirx.IfThenElse)) for stmt in inner]


def with_outputs(traced: TracedKernel, outputs: Iterable[int]) -> TracedKernel:
    outputs = tuple(outputs)
    if not outputs:
        return traced
    return dataclasses.replace(
        traced, outputs=outputs, function=traced.function.with_attr(tl.OUTPUTS, list(outputs))
    )  # fmt: skip


# -- T.prim_func -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scalar:
    """A scalar parameter of a kernel."""

    dtype: str


class PrimFunc:
    """A kernel in the T.prim_func style, traced where it is defined."""

    def __init__(self, name: str, traced: TracedKernel | TTExploreError) -> None:
        self.__name__ = name
        self._traced = traced

    @property
    def traced(self) -> TracedKernel:
        """The kernel as TIR. Raises what was found wrong in it while its file was loaded."""
        if isinstance(self._traced, TTExploreError):
            raise self._traced
        return self._traced

    def __tvm_ffi_object__(self) -> tirx.PrimFunc:
        """The function for TVM: ``tvm.IRModule.from_expr(kernel)``. It carries what else is known of the kernel."""
        return self.traced.function.with_attr(_KERNEL_ATTRIBUTE, self.traced)

    def annotated(self, annotations: tuple[Annotation, ...]) -> PrimFunc:
        """This kernel with more annotations. Raises UsageError for one of a tensor that it does not have."""
        if isinstance(self._traced, TTExploreError):
            return self
        return PrimFunc(self.__name__, self._traced.annotated(annotations))

    def __call__(self, *args: object, **options: object) -> StandIn:
        return _not_run(self.__name__)

    def __getattr__(self, name: str) -> StandIn:
        return _attribute(self, name)


def _attribute(kernel: object, name: str) -> StandIn:
    """An attribute of a GPU compiler's kernel (its source, a profiler): a stand-in while an example file loads."""
    if name.startswith("__") or not loading_file.get():
        raise AttributeError(f"a kernel has no {name} here; explore it with ttexplore.explore(kernel)")
    return StandIn(name)


def _not_run(name: str) -> StandIn:
    """The result of calling a kernel: a stand-in while an example file loads, otherwise an error."""
    if loading_file.get():
        return StandIn(f"{name}()")
    raise UsageError(
        "U003",
        f"{name} cannot be called with data here",
        hint=f"run it with ttexplore.explore({name}, ...).run([a, b])",
    )


def _annotations(function: types.FunctionType) -> dict[str, object]:
    """The annotations of a function; string annotations are evaluated where the function is defined."""
    names: dict[str, object] = dict(function.__annotations__)
    if any(isinstance(value, str) and not isinstance(value, dtype) for value in names.values()):
        scope: dict[str, object] = {}
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == function.__code__.co_filename:
                scope |= dict(frame.f_locals)
                break
            frame = frame.f_back
        free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in free:
            with contextlib.suppress(ValueError):
                scope[name] = cell.cell_contents
        for name, value in names.items():
            if isinstance(value, str) and not isinstance(value, dtype):
                try:
                    names[name] = eval(value, function.__globals__, scope)
                except (NameError, AttributeError, SyntaxError):
                    # A name that only type checkers know: no tensor's annotation.
                    names[name] = value
    return names


def prim_func(function: types.FunctionType | None = None, **options: object) -> Any:
    """``@T.prim_func``: trace a function whose parameters are annotated tensors.

    Raises KernelError for a parameter that is not a tensor and for errors in the kernel, Unsupported for constructs
    that are not lowered. While an example file loads, they are raised only when the kernel is used.
    """
    if function is None:
        return functools.partial(prim_func, **options)
    file = display_file(function)
    annotations = _annotations(function)
    try:
        parameters: dict[str, object] = {}
        argument_nodes = {
            argument.arg: argument for argument in ast.walk(definition(function).args) if isinstance(argument, ast.arg)
        }
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = annotations.get(name)
            if (
                annotation is None
                and parameter.kind is parameter.KEYWORD_ONLY
                and parameter.default is not parameter.empty
            ):
                # Its default is a constant of the kernel.
                continue
            if isinstance(annotation, dtype):
                annotation = _Scalar(str(annotation))
            if not isinstance(annotation, TensorSpec | _Scalar):
                how = f"annotated with {shown(annotation)}" if annotation is not None else "not annotated"
                raise KernelError(
                    "K007",
                    f"parameter {name} is {how}, so it is not a tensor",
                    hint=f"write {name}: T.Tensor((M, N), T.bfloat16)",
                    span=node_span(file, argument_nodes[name]),
                )
            parameters[name] = annotation
        return PrimFunc(function.__name__, _trace_function(function, file, {}, parameters))
    except TTExploreError as error:
        if not loading_file.get():
            raise
        return PrimFunc(function.__name__, error)


# -- T.macro ---------------------------------------------------------------------------------------------------------


class Macro:
    """A function whose statements are traced where it is called; each statement records both places."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.file = display_file(function)
        functools.update_wrapper(self, function)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., object]:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: object, **options: object) -> Any:
        builder = current(f"T.macro {self.function.__name__}")
        here = caller_span(builder.files) or builder.span
        builder.files.setdefault(self.function.__code__.co_filename, self.file)
        twin = rewrite(self.function, self.file)
        if here is not None:
            builder.calls.append(here)
        with builder.inside("call"):
            result = twin(*args, **options)
        if here is not None:
            builder.calls.pop()
        builder.span = here
        return result


def macro(function: types.FunctionType | None = None, **_options: object) -> Any:
    """``@T.macro``: a function that is part of the kernels that call it."""
    return Macro(function) if function is not None else Macro


# -- @jit: eager kernels and factories -------------------------------------------------------------------------------


def _decorated_with(node: ast.FunctionDef, name: str) -> bool:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")) == name:
            return True
    return False


def _called(node: ast.AST) -> str:
    """The last name of the function that a call calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


# Trees of functions are kept by their source, and nobody changes them.
@functools.lru_cache(maxsize=256)
def _own_nodes(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a function, without those of nested functions."""
    nodes: list[ast.AST] = []
    waiting = [*ast.iter_child_nodes(node)][::-1]
    while waiting:
        child = waiting.pop()
        nodes.append(child)
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += [*ast.iter_child_nodes(child)][::-1]
    return tuple(nodes)


def is_eager(function: types.FunctionType) -> bool:
    """Whether a function is itself a kernel, and not a factory that returns one."""
    node = definition(function)
    return not _holds_prim_func(node) and any(
        _called(inner) in ("Kernel", "const", "empty") for inner in _own_nodes(node)
    )


def is_kernel_function(function: types.FunctionType) -> bool:
    """Whether an undecorated function looks like an eager kernel or a factory."""
    try:
        node = definition(function)
    except KernelError:
        return False
    return is_eager(function) or _holds_prim_func(node)


@functools.lru_cache(maxsize=256)
def _holds_prim_func(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.FunctionDef) and _decorated_with(inner, "prim_func") for inner in ast.walk(node))


@functools.lru_cache(maxsize=256)
def _constant_names(kernel: ast.AST) -> tuple[str, ...]:
    """The names in the ``T.const("M, N")`` of a kernel."""
    names: list[str] = []
    for node in _own_nodes(kernel):
        if isinstance(node, ast.Call) and _called(node) == "const" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names += _split(first.value)
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=256)
def _annotated_names(kernel: ast.AST) -> frozenset[str]:
    """The names that the body of a kernel annotates: ``A: T.Tensor(...)``."""
    return frozenset(
        node.target.id
        for node in _own_nodes(kernel)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )


def _split(names: str) -> list[str]:
    return names.replace(",", " ").split()


class JitKernel:
    """A function under ``@tilelang.jit``: an eager kernel, or a factory that returns a T.prim_func."""

    def __init__(self, function: types.FunctionType, **options: object) -> None:
        self.function, self.options = function, options
        self.file = display_file(function)
        self.signature = inspect.signature(function)
        self.annotations = _annotations(function)
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__

    def __getattr__(self, name: str) -> StandIn:
        return _attribute(self, name)

    @property
    def eager(self) -> bool:
        """Whether the function is a kernel itself, not a factory."""
        return is_eager(self.function)

    def _named(self, args: tuple[object, ...], options: dict[str, object]) -> dict[str, object]:
        names = list(self.signature.parameters)
        if len(args) > len(names):
            raise UsageError(
                "U003", f"{self.__name__} takes {len(names)} arguments, not {len(args)}", hint=", ".join(names)
            )
        return {**dict(zip(names, args, strict=False)), **options}

    def get_tir(self, *args: object, **options: object) -> TracedKernel:
        """The kernel traced with these arguments."""
        return self.trace(self._named(args, options))

    def compile(self, *args: object, **options: object) -> PrimFunc:
        """The kernel for these arguments, to be explored."""
        try:
            return PrimFunc(self.__name__, self.get_tir(*args, **options))
        except TTExploreError as error:
            if not loading_file.get():
                raise
            return PrimFunc(self.__name__, error)

    def __call__(self, *args: object, **options: object) -> PrimFunc | StandIn:
        """A factory's kernel. An eager kernel would run, which example files do while they load."""
        if self.eager:
            return _not_run(self.__name__)
        return self.compile(*args, **options)

    def trace(self, arguments: dict[str, object], reference: str = "") -> TracedKernel:
        """Trace with `arguments` for parameters and T.const names. `reference` is how the user named the kernel.

        Raises UsageError for missing and unknown arguments.
        """
        arguments = {name: as_argument(value) for name, value in arguments.items()}
        reference = reference or self.__name__
        traced = self._trace_eager(arguments, reference) if self.eager else self._trace_factory(arguments, reference)
        parameters = self.signature.parameters.values()
        defaults = {each.name: each.default for each in parameters if each.default is not each.empty}

        def traced_with(changed: Mapping[str, object]) -> TracedKernel:
            return self.trace({**arguments, **changed}, reference)

        return dataclasses.replace(traced, arguments=defaults | arguments, traced_with=traced_with)

    def _trace_factory(self, arguments: dict[str, object], reference: str) -> TracedKernel:
        parameters = self.signature.parameters
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        required = [
            name
            for name, parameter in parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        ]
        if not open_ended:
            _check_known(arguments, list(parameters), reference)
        _check_missing([name for name in required if name not in arguments], arguments, reference)
        files = {self.function.__code__.co_filename: self.file}
        with errors_at(files, _head_span(self.function, self.file)), making():
            returned = self.function(**arguments)
        traced = _factory_result(returned, reference).named(self.__name__)
        return (
            with_outputs(traced, _output_indices(self.options.get("out_idx"), traced)) if not traced.outputs else traced
        )

    def _trace_eager(self, arguments: dict[str, object], reference: str) -> TracedKernel:
        parameters, constants = self.signature.parameters, _constant_names(definition(self.function))
        tensors = self._tensor_parameters()
        _check_known(arguments, [*(name for name in parameters if name not in tensors), *constants], reference, tensors)
        required = [
            name
            for name, parameter in parameters.items()
            if name not in tensors and parameter.default is parameter.empty
        ]
        _check_missing([name for name in [*constants, *required] if name not in arguments], arguments, reference)
        values = {
            name: arguments.get(name, None if parameter.default is parameter.empty else parameter.default)
            for name, parameter in parameters.items()
        }
        for name, annotation in self.annotations.items():
            if isinstance(annotation, TensorSpec) and name in values:
                values[name] = annotation
        constant_values = {name: value for name, value in arguments.items() if name in constants}
        return _trace_function(self.function, self.file, constant_values, values).with_arguments(arguments)

    def _tensor_parameters(self) -> list[str]:
        """Parameters that the signature or the kernel's body annotates as tensors."""
        signature = {name for name, annotation in self.annotations.items() if isinstance(annotation, TensorSpec)}
        names = _annotated_names(definition(self.function)) | signature
        return [name for name in self.signature.parameters if name in names]


def _factory_result(returned: object, reference: str) -> TracedKernel:
    match returned:
        case TracedKernel():
            return returned
        case PrimFunc():
            return returned.traced
        case JitKernel() | Tuned():
            raise UsageError(
                "U002",
                f"{reference} returns the kernel {returned.__name__}, which takes arguments of its own",
                hint=f"explore that kernel: ttexplore.explore({returned.__name__}, ...)",
            )
        case _:
            raise UsageError(
                "U002",
                f"{reference} returns {type(returned).__name__}, not a kernel",
                hint="return the T.prim_func from the factory",
            )


def _output_indices(out_idx: object, traced: TracedKernel) -> tuple[int, ...]:
    """The parameters that ``out_idx=`` selects; negative indices count from the end."""
    if out_idx is None:
        return ()
    count = len(traced.function.params)
    indices: list[int] = []
    for index in items_of(out_idx):
        if not isinstance(index, int) or not -count <= index < count:
            raise KernelError(
                "K007", f"out_idx={out_idx!r}, but {traced.name} has {count} parameters", hint="count from 0"
            )
        indices.append(index % count)
    return tuple(indices)


def _example(name: str) -> str:
    """A plausible value for an argument, for hints."""
    if "dtype" in name:
        return "'bfloat16'"
    if name.lower().startswith(("block", "bm", "bn", "bk")):
        return "32"
    return {"threads": "128", "num_stages": "2"}.get(name, "1024")


def _check_missing(missing: list[str], arguments: Mapping[str, object], reference: str) -> None:
    if missing:
        words = [*(f"{name}={shown(value)}" for name, value in arguments.items())]
        words += [f"{name}={_example(name)}" for name in missing]
        quoted = f'"{reference}"' if "::" in reference else reference
        raise UsageError(
            "U003", f"{reference} needs {', '.join(missing)}", hint=f"explore({quoted}, {', '.join(words)})"
        )


def _check_known(names: Iterable[str], accepted: list[str], reference: str, tensors: Iterable[str] = ()) -> None:
    for name in names:
        if name in tensors:
            raise UsageError(
                "U003",
                f"{reference}: {name} is a tensor: its data is not an argument of the kernel",
                hint=f"pass it when the kernel runs: explore(...).run([{name}, ...])",
            )
        if name in OPTIONS and name not in accepted:
            raise UsageError(
                "U003",
                f"{reference} takes no argument {name}",
                hint=f'pass it as an option: explore(..., options={{"{name}": ...}}), or --option {name}=...',
            )
        if name not in accepted:
            close = difflib.get_close_matches(name, accepted, 1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(accepted) or 'no arguments'}"
            raise UsageError("U003", f"{reference} takes no argument {name}", hint=hint)


def jit(function: object = None, **options: object) -> Any:
    """``@tilelang.jit``, with or without options. `out_idx` selects the output parameters; the other options are for
    GPU compilers."""
    match function:
        case types.FunctionType():
            return JitKernel(function, **options)
        case Tuned():
            return Tuned(jit(function.kernel, **options), function.configs)
        case PrimFunc():
            return compiled(function, **options)
        case None:
            return functools.partial(jit, **options)
        case _:
            return function


def compiled(kernel: object, out_idx: object = None, **_options: object) -> object:
    """``tilelang.compile(kernel, out_idx=...)``: the same kernel with its outputs selected."""
    if not isinstance(kernel, PrimFunc) or out_idx is None:
        return kernel
    try:
        traced = kernel.traced
        return PrimFunc(kernel.__name__, with_outputs(traced, _output_indices(out_idx, traced)))
    except TTExploreError as error:
        if not loading_file.get():
            raise
        return PrimFunc(kernel.__name__, error)


class Tuned:
    """A kernel under ``@autotune``. Tuning needs a GPU, so missing arguments come from the first configuration, with a
    note."""

    def __init__(self, kernel: object, configs: object = None) -> None:
        self.kernel = jit(kernel)
        self.configs = configs
        self.__name__ = str(getattr(kernel, "__name__", "kernel"))

    def __getattr__(self, name: str) -> object:
        return getattr(self.kernel, name)

    def __call__(self, *args: object, **options: object) -> object:
        return self.kernel(*args, **options)

    def trace(self, arguments: dict[str, object], reference: str = "") -> TracedKernel:
        """Trace with `arguments`, completed from the first configuration."""
        first = self.configs[0] if is_sequence(self.configs) and self.configs else None
        parameters = parameters_of(self.kernel)
        chosen = {
            name: value
            for name, value in (first if is_dict(first) else {}).items()
            if isinstance(name, str)
            and name in parameters
            and name not in arguments
            and parameters[name].default in (parameters[name].empty, None)
        }
        traced = trace_named(self.kernel, {**arguments, **chosen}, reference)
        # Another text may have other configurations.
        traced = traced.with_arguments(arguments)
        if not chosen:
            return traced
        configuration = ", ".join(f"{name}={value}" for name, value in chosen.items())
        return dataclasses.replace(
            traced, notes=(*traced.notes, note("first configuration", configuration=configuration))
        )


def parameters_of(kernel: object) -> Mapping[str, inspect.Parameter]:
    """The parameters of a kernel or factory; a T.prim_func has none to be given."""
    match kernel:
        case JitKernel():
            return kernel.signature.parameters
        case Tuned():
            return parameters_of(kernel.kernel)
        case types.FunctionType():
            return inspect.signature(kernel).parameters
        case _:
            return {}


def autotune(kernel: object = None, *, configs: object = None, **_options: object) -> Any:
    """``@tilelang.autotune(configs=...)``, with or without options."""
    if kernel is not None and not isinstance(kernel, list | dict):
        return Tuned(kernel, configs)
    return functools.partial(Tuned, configs=configs)


def const(names: str, _dtype: object = "int32") -> Any:
    """The values of ``T.const("M, N, K")``, which are given when the kernel is explored.

    Raises KernelError if one is missing.
    """
    builder = current("T.const")
    values: list[object] = []
    for name in _split(names):
        if name not in builder.constants:
            raise KernelError("K007", f"T.const {name} has no value", hint=f"pass it: explore(kernel, {name}=1024)")
        values.append(builder.constants[name])
    return values[0] if len(values) == 1 else tuple(values)


def trace(kernel: object, /, **arguments: object) -> TracedKernel:
    """Trace a T.prim_func, an eager kernel or a factory with its arguments.

    Raises UsageError for missing or unknown arguments and for objects that are not kernels, KernelError for errors in
    the kernel, Unsupported for constructs that are not lowered.
    """
    return trace_named(kernel, arguments, "")


def trace_named(kernel: object, arguments: dict[str, object], reference: str) -> TracedKernel:
    """Trace a kernel; `reference` is how the user named it (``file.py::name``), for messages."""
    match kernel:
        case TracedKernel():
            _check_known(arguments, [], reference or kernel.name)
            return kernel
        case PrimFunc():
            _check_known(arguments, [], reference or kernel.__name__)
            return kernel.traced
        case JitKernel() | Tuned():
            return kernel.trace(arguments, reference)
        case types.FunctionType():
            return JitKernel(kernel).trace(arguments, reference)
        case ir.IRModule():
            traced = _in_module(kernel)
            _check_known(arguments, [], reference or traced.name)
            return traced
        case _ if type(kernel).__module__.partition(".")[0] in ("tilelang", "tvm", "tirx"):
            raise UsageError(
                "U002",
                f"{reference or type(kernel).__name__} is a kernel of the installed TileLang or TVM",
                hint="write `import ttexplore.language as T` above the kernel, or explore its file: 'file.py::name'",
            )
        case _:
            raise UsageError(
                "U002",
                f"{reference or shown(kernel)} is not a kernel but a value of type {type_name(kernel)}",
                hint="pass a T.prim_func, a @tilelang.jit function with its arguments, or 'file.py::name'",
            )


def _in_module(module: ir.IRModule) -> TracedKernel:
    """The kernel in a TVM module. Raises UsageError unless there is exactly one."""
    functions = [module[name] for name in module.get_global_vars()]
    kernels = [
        function.attrs[_KERNEL_ATTRIBUTE]
        for function in functions
        if function.attrs and _KERNEL_ATTRIBUTE in function.attrs
    ]
    if len(kernels) != 1 or len(functions) != 1:
        raise UsageError(
            "U002",
            f"the module holds {len(functions)} functions, of which {len(kernels)} are kernels of this language",
            hint="create it from one kernel: tvm.IRModule.from_expr(kernel)",
        )
    return kernels[0]
