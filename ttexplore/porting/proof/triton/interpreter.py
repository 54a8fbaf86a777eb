"""Running a Triton kernel from its text: a small interpreter over NumPy, program by program.

It shares nothing with the reader of ports but Python's parser and the words of errors, so that each finds the other's
mistakes. What it does not know is an error with its line.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttexplore.control import FREE, Control, look_around
from ttexplore.porting.foreign.work import short
from ttexplore.porting.proof.running import Argument, CannotRun, Launch, SourceRun
from ttexplore.porting.proof.triton.blocks import (
    NAMES,
    NUMPY,
    Arithmetic,
    Block,
    BlockPointer,
    Dtype,
    Pointer,
    Unrunnable,
    is_block,
    is_number,
    is_tuple,
)
from ttexplore.porting.proof.triton.calls import ProgramInstance, bound, integer, integers
from ttexplore.porting.proof.triton.functions import ASSERTED, call_function
from ttexplore.porting.proof.triton.memory import CheckedMemory
from ttexplore.porting.proof.triton.names import Imported, TritonModule

# How many statements and calls one run executes at most, and how deep functions call each other.
_MOST_STEPS = 400_000
_DEEPEST = 20
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_RANGES = {"range", "static_range"}
_DESCRIPTOR_LOADS = {"_experimental_descriptor_load", "load_tensor_descriptor"}
_DESCRIPTOR_STORES = {"_experimental_descriptor_store", "store_tensor_descriptor"}
_METHODS = {"to": "cast"} | {
    name: name
    for name in ("trans", "reshape", "view", "sum", "max", "min", "permute", "ravel", "broadcast_to", "expand_dims")
}


class _Returned(Exception):
    """The end of a function, with what it gives."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass(frozen=True)
class TritonRunner:
    """A kernel of a module, ready to be run. Where nothing `rounds`, floating-point numbers are float64."""

    module: TritonModule
    kernel: ast.FunctionDef
    rounds: bool = True

    def run(self, launch: Launch, arguments: Mapping[str, Argument], control: Control = FREE) -> SourceRun:
        """Run the kernel once, one program after the other, as SourceRunner says."""
        arithmetic = Arithmetic(self.rounds)
        arrays = {name: value for name, value in arguments.items() if is_block(value)}
        memory = CheckedMemory.of(arrays, arithmetic)
        grid = (*launch.grid, 1, 1, 1)[:3]
        steps = _Steps()
        with np.errstate(all="ignore"), control.watched("the proof"):
            programs = [*itertools.product(range(grid[2]), range(grid[1]), range(grid[0]))]
            for number, (z, y, x) in enumerate(reversed(programs) if launch.is_reversed else programs):
                memory.program = number
                program = ProgramInstance((x, y, z), (grid[0], grid[1], grid[2]), memory, arithmetic)
                _Evaluation(self.module, program, steps).start(self.kernel, arguments)
        results = {name: memory.arrays[name] for name in arrays}
        return SourceRun(results, tuple(memory.outside.values()), memory.lines, memory.races, memory.stored)


def triton_runner(text: str, kernel: str, *, rounds: bool = True) -> TritonRunner:
    """The runner of a kernel of a module. Raises CannotRun."""
    module = TritonModule.of(text)
    if kernel not in module.functions or kernel in module.twice:
        raise CannotRun(f"{kernel}, which the module does not define, or more than once,")
    return TritonRunner(module, module.functions[kernel], rounds)


@dataclass
class _Steps:
    """How much of a run is done."""

    count: int = 0

    def step(self, line: int) -> None:
        self.count += 1
        if self.count > _MOST_STEPS:
            raise CannotRun(f"more than {_MOST_STEPS:,} statements and calls", line)
        if self.count % 64 == 0:
            look_around()


@dataclass
class _Evaluation:
    """One call of a function of the module in one program."""

    module: TritonModule
    program: ProgramInstance
    steps: _Steps
    depth: int = 0
    variables: dict[str, Any] = field(default_factory=dict[str, Any])

    def start(self, kernel: ast.FunctionDef, arguments: Mapping[str, Argument]) -> None:
        """Run a kernel with what it is launched with."""
        for parameter, default in _parameters(kernel):
            name = parameter.arg
            if name not in arguments:
                if default is None:
                    raise CannotRun(f"the parameter {name}, which has no value,", parameter.lineno)
                self.variables[name] = self.value(default)
                continue
            argument = arguments[name]
            if isinstance(argument, np.ndarray):
                self.variables[name] = Pointer(name, np.asarray(0, np.int64))
            elif self.is_constant(parameter) or isinstance(argument, str):
                self.variables[name] = argument
            else:
                self.variables[name] = self.program.arithmetic.argument(argument)
        self.function(kernel)

    def is_constant(self, parameter: ast.arg) -> bool:
        annotation = parameter.annotation
        if isinstance(annotation, ast.Subscript):
            annotation = annotation.value
        if annotation is None or isinstance(annotation, ast.Constant):
            return False
        try:
            meaning = self.meaning(annotation)
        except Unrunnable as error:
            raise _cannot_run(error, annotation) from error
        return isinstance(meaning, Imported) and meaning.is_triton and meaning.path.endswith(".constexpr")

    def function(self, function: ast.FunctionDef) -> Any:
        try:
            self.block(function.body)
        except _Returned as returned:
            return returned.value
        return None

    # Statements

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.steps.step(statement.lineno)
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets, expression):
                value = self.value(expression)
                for target in targets:
                    self.assign(target, value)
            case ast.AnnAssign(target, _, expression) if expression is not None:
                self.assign(target, self.value(expression))
            case ast.AnnAssign():
                pass
            case ast.AugAssign(ast.Name(name) as target, operator, expression):
                before = self.value(ast.copy_location(ast.Name(name, ast.Load()), target))
                added = self.value(expression)
                try:
                    result = self.program.arithmetic.binary(_OPERATORS[type(operator)], before, added)
                except (Unrunnable, *_NUMERIC) as error:
                    raise _cannot_run(error, statement) from error
                self.assign(target, result)
            case ast.Expr(expression):
                self.value(expression)
            case ast.For(target, iterated, body, []):
                for number in self.iterations(iterated):
                    self.steps.step(statement.lineno)
                    self.assign(target, number)
                    self.block(body)
            case ast.While(test, body, []):
                while self.holds(test):
                    self.steps.step(statement.lineno)
                    self.block(body)
            case ast.If(test, then, otherwise):
                self.block(then if self.holds(test) else otherwise)
            case ast.Return(expression):
                raise _Returned(None if expression is None else self.value(expression))
            case ast.Pass():
                pass
            case ast.Assert(test):
                if not self.holds(test):
                    raise CannotRun(ASSERTED, test.lineno)
            case _:
                raise CannotRun(short(statement), statement.lineno)

    def assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name):
                self.variables[name] = value
            case ast.Tuple(targets) | ast.List(targets):
                if not is_tuple(value) or len(value) != len(targets):
                    raise CannotRun(f"the assignment to {short(target)}", target.lineno)
                for inner, element in zip(targets, value, strict=True):
                    self.assign(inner, element)
            case _:
                raise CannotRun(f"the assignment to {short(target)}", target.lineno)

    def iterations(self, iterated: ast.expr) -> Sequence[Any]:
        if isinstance(iterated, ast.Call):
            name = self.language_name(self.meaning(iterated.func))
            if name in _RANGES:
                arguments = [self.value(argument) for argument in iterated.args]
                keywords = {keyword.arg: self.value(keyword.value) for keyword in iterated.keywords if keyword.arg}
                try:
                    values = bound("range", ("first", "second?", "third?"), arguments, keywords)
                    numbers = range(*map(integer, values.values()))
                except (Unrunnable, *_NUMERIC) as error:
                    raise _cannot_run(error, iterated) from error
                if len(numbers) > _MOST_STEPS:
                    raise CannotRun(f"a loop of {len(numbers):,} iterations", iterated.lineno)
                # The variable of an unrolled loop is a constant of the compiler.
                if name == "static_range":
                    return numbers
                return [np.asarray(number, np.int32) for number in numbers]
        raise CannotRun(f"a loop over {short(iterated)}", iterated.lineno)

    def holds(self, test: ast.expr) -> bool:
        value = self.value(test)
        try:
            return self.truth(value)
        except Unrunnable as error:
            raise _cannot_run(error, test) from error

    def truth(self, value: Any) -> bool:
        if isinstance(value, Pointer | BlockPointer | ast.FunctionDef | Imported):
            return True
        if is_block(value):
            if value.size != 1:
                raise Unrunnable("a condition of a whole block")
            return bool(value.reshape(()))
        return bool(value)

    # Expressions

    def value(self, node: ast.expr) -> Any:
        """What an expression gives. Raises CannotRun with its line."""
        match node:
            case ast.Name(name) if name in self.variables:
                return self.variables[name]
            case ast.Constant(bool() | int() | float() | str() | None as value):
                return value
            case _:
                pass
        try:
            return self.evaluated(node)
        except (Unrunnable, RecursionError, *_NUMERIC) as error:
            raise _cannot_run(error, node) from error

    def evaluated(self, node: ast.expr) -> Any:
        arithmetic = self.program.arithmetic
        match node:
            case ast.Name() | ast.Attribute():
                return self.meaning(node)
            case ast.BinOp(left_side, operator, right_side):
                if type(operator) not in _OPERATORS:
                    raise Unrunnable(short(node))
                first, second = self.value(left_side), self.value(right_side)
                if is_tuple(first) and is_tuple(second) and isinstance(operator, ast.Add):
                    return first + second
                return arithmetic.binary(_OPERATORS[type(operator)], first, second)
            case ast.UnaryOp(operator, operand):
                return self.unary(operator, self.value(operand))
            case ast.BoolOp(operator, operands):
                return self.logical(isinstance(operator, ast.And), operands)
            case ast.Compare(left_side, operators, comparators):
                return self.compared(left_side, operators, comparators)
            case ast.IfExp(test, then, otherwise):
                return self.value(then if self.holds(test) else otherwise)
            case ast.Tuple(elements) | ast.List(elements):
                return tuple(self.value(element) for element in elements)
            case ast.Subscript(inner, index):
                return self.indexed(self.value(inner), index)
            case ast.Call():
                return self.call(node)
            case _:
                raise Unrunnable(short(node))

    def unary(self, operator: ast.unaryop, value: Any) -> Any:
        arithmetic = self.program.arithmetic
        match operator:
            case ast.USub():
                return -value if is_number(value) else arithmetic.binary("-", 0, value)
            case ast.UAdd():
                return value if is_number(value) else arithmetic.block(value)
            case ast.Not():
                if is_block(value) and value.ndim:
                    return ~(value != 0)
                return not self.truth(value)
            case _:
                if is_block(value):
                    return np.asarray(np.invert(value))
                if not isinstance(value, int):
                    raise Unrunnable("~ of what is no integer")
                return ~value

    def logical(self, every: bool, operands: list[ast.expr]) -> Any:
        result: Any = None
        for operand in operands:
            value = self.value(operand)
            if is_block(value) and value.ndim:
                value = value != 0
                result = value if result is None else result & value if every else result | value
                continue
            if result is not None and is_block(result) and result.ndim:
                truth = self.truth(value)
                result = result & truth if every else result | truth
                continue
            result = value
            if self.truth(value) != every:
                return value
        return result

    def compared(self, left_side: ast.expr, operators: list[ast.cmpop], comparators: list[ast.expr]) -> Any:
        result: Any = True
        first = self.value(left_side)
        for operator, comparator in zip(operators, comparators, strict=True):
            second = self.value(comparator)
            match operator:
                case ast.In() | ast.NotIn():
                    if not is_tuple(second):
                        raise Unrunnable("`in` of what is no tuple")
                    holds = any(
                        self.truth(self.program.arithmetic.compared("==", first, element)) for element in second
                    )
                    holds = holds == isinstance(operator, ast.In)
                case _:
                    holds = self.program.arithmetic.compared(_COMPARISONS[type(operator)], first, second)
            if len(operators) > 1 and is_block(holds) and holds.ndim:
                raise Unrunnable("several comparisons of blocks in one")
            result = holds if len(operators) == 1 else bool(result) and self.truth(holds)
            first = second
        return result

    def indexed(self, value: Any, index: ast.expr) -> Any:
        if is_tuple(value):
            return value[integer(self.value(index))]
        axes: list[Any] = []
        for element in index.elts if isinstance(index, ast.Tuple) else [index]:
            match element:
                case ast.Constant(None):
                    axes.append(None)
                case ast.Slice(None, None, None):
                    axes.append(slice(None))
                case _:
                    raise Unrunnable(short(index))
        block = value.offsets if isinstance(value, Pointer) else self.program.arithmetic.block(value)
        if sum(axis is not None for axis in axes) > block.ndim:
            raise Unrunnable("an index of more axes than a block has")
        block = block[tuple(axes)]
        return Pointer(value.tensor, block) if isinstance(value, Pointer) else block

    # Names and calls

    def meaning(self, node: ast.expr) -> Any:
        """What a name or an attribute stands for: a value, a function of the module, or something imported."""
        match node:
            case ast.Name(name):
                return self.named(name)
            case ast.Attribute(inner, attribute):
                base = self.value(inner) if not isinstance(inner, ast.Name | ast.Attribute) else self.meaning(inner)
                return self.attribute(base, attribute)
            case _:
                return self.value(node)

    def named(self, name: str) -> Any:
        if name in self.variables:
            return self.variables[name]
        if name in self.module.twice:
            raise Unrunnable(f"{name}, which the module binds more than once")
        if name in self.module.functions:
            return self.module.functions[name]
        if name in self.module.imported:
            return self.resolved(self.module.imported[name])
        if name in self.module.assigned:
            if self.depth > _DEEPEST:
                raise Unrunnable(f"{name}, which is made of itself")
            # Constants of the module are computed without what the kernel has.
            return _Evaluation(self.module, self.program, self.steps, self.depth + 1).value(self.module.assigned[name])
        if name in dir(builtins):
            return Imported(f"builtins.{name}")
        raise Unrunnable(f"{name}, which is not known")

    def attribute(self, base: Any, attribute: str) -> Any:
        if is_block(base):
            return self.attribute_of_block(base, attribute)
        match base, attribute:
            case Imported(), _:
                return self.resolved(Imported(f"{base.path}.{attribute}"))
            case ((Pointer() | BlockPointer()), ("dtype" | "type")):
                return base
            case ((Pointer() | BlockPointer()), "element_ty"):
                tensor = base.tensor if isinstance(base, Pointer) else base.base.tensor
                return Dtype(NAMES[self.program.memory.arrays[tensor].dtype])
            case Dtype(), ("element_ty" | "scalar"):
                return base
            case _, "value" if is_number(base):
                return base
            case _:
                raise Unrunnable(f".{attribute}")

    def attribute_of_block(self, block: Block, attribute: str) -> Any:
        match attribute:
            case "dtype" | "type":
                return Dtype(NAMES[block.dtype])
            case "T":
                return np.transpose(block)
            case "shape":
                return tuple(map(int, block.shape))
            case _:
                raise Unrunnable(f".{attribute}")

    def resolved(self, meaning: Imported) -> Any:
        name = meaning.path.rpartition(".")[2]
        if meaning.is_triton and name in NUMPY:
            return Dtype(name)
        if meaning.path in ("math.inf", "numpy.inf", "torch.inf"):
            return float("inf")
        return meaning

    def language_name(self, meaning: Any) -> str:
        """The name of a function of the language, or of Python, empty for another meaning."""
        if isinstance(meaning, Imported):
            name = meaning.path.rpartition(".")[2]
            if meaning.is_triton or (meaning.path.startswith("builtins.") and name == "range"):
                return name
        return ""

    def call(self, node: ast.Call) -> Any:
        self.steps.step(node.lineno)
        if not all(keyword.arg for keyword in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
            raise Unrunnable(short(node))
        if isinstance(node.func, ast.Attribute) and not self.is_imported(node.func):
            return self.method(self.value(node.func.value), node.func.attr, node)
        meaning = self.meaning(node.func)
        positional, keywords = self.arguments(node)
        if isinstance(meaning, ast.FunctionDef):
            return self.local(meaning, positional, keywords)
        if isinstance(meaning, Dtype):
            return call_function(self.program, "cast", [*positional, meaning], keywords, node.lineno)
        name = self.language_name(meaning)
        if name:
            return self.language(name, positional, keywords, node)
        if isinstance(meaning, Imported) and meaning.path.startswith("builtins."):
            return self.builtin(meaning.path.removeprefix("builtins."), positional, keywords, node)
        raise Unrunnable(short(node.func))

    def is_imported(self, node: ast.expr) -> bool:
        """Whether a dotted name begins with what is imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.variables and node.id in self.module.imported

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        positional = [self.value(argument) for argument in node.args]
        return positional, {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg}

    def language(self, name: str, positional: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        if name in _DESCRIPTOR_LOADS or name in _DESCRIPTOR_STORES:
            pointer, *rest = positional
            if name in _DESCRIPTOR_LOADS:
                return call_function(self.program, "load", [self.at_offsets(pointer, rest[0])], {}, node.lineno)
            return call_function(self.program, "store", [self.at_offsets(pointer, rest[1]), rest[0]], {}, node.lineno)
        return call_function(self.program, name, positional, keywords, node.lineno)

    def method(self, value: Any, name: str, node: ast.Call) -> Any:
        positional, keywords = self.arguments(node)
        if isinstance(value, BlockPointer) and name in ("load", "store"):
            pointer = self.at_offsets(value, positional[0])
            return call_function(self.program, name, [pointer, *positional[1:]], keywords, node.lineno)
        if name in _METHODS and not isinstance(value, BlockPointer):
            return call_function(self.program, _METHODS[name], [value, *positional], keywords, node.lineno)
        if name.startswith("is_") and isinstance(value, Dtype) and not positional:
            return np.dtype(NUMPY[value.name]).kind in ("iub" if name == "is_int" else "fV")
        raise Unrunnable(f".{name}()")

    def at_offsets(self, pointer: Any, offsets: Any) -> BlockPointer:
        if not isinstance(pointer, BlockPointer):
            raise Unrunnable("a tensor descriptor that the caller makes")
        if not pointer.is_descriptor or len(integers(offsets)) != len(pointer.shape):
            raise Unrunnable("an access to a tensor descriptor with other axes")
        return BlockPointer(
            pointer.base, pointer.shape, pointer.strides, integers(offsets), pointer.block_shape, is_descriptor=True
        )

    def builtin(self, name: str, positional: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        numbers = all(map(is_number, positional)) and not keywords
        match name, positional:
            case "float", [str(word)]:
                return float(word)
            case (("float" | "int" | "bool"), [value]) if numbers:
                return {"float": float, "int": int, "bool": bool}[name](value)
            case "float", [value]:
                return self.program.arithmetic.cast(value, "float32")
            case "len", [values] if is_tuple(values):
                return len(values)
            case "abs", [value]:
                return call_function(self.program, "abs", [value], {}, node.lineno)
            case (("min" | "max"), [_, _]) if not keywords:
                return call_function(self.program, f"{name}imum", positional, {}, node.lineno)
            case (("tuple" | "list"), [values]) if is_tuple(values):
                return values
            case "print", _:
                return None
            case _:
                raise Unrunnable(short(node))

    def local(self, function: ast.FunctionDef, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """Call a function of the module."""
        if self.depth > _DEEPEST:
            raise Unrunnable(f"calls inside of each other, of {function.name}")
        parameters = _parameters(function)
        signature = [f"{parameter.arg}{'' if default is None else '?'}" for parameter, default in parameters]
        inner = _Evaluation(self.module, self.program, self.steps, self.depth + 1)
        values = bound(function.name, signature, positional, keywords)
        for parameter, default in parameters:
            name = parameter.arg
            if name in values:
                value = values[name]
                # What is no constant of the compiler has a dtype in the function that is called.
                is_variable = is_number(value) and not self.is_constant(parameter) and isinstance(value, float)
                inner.variables[name] = self.program.arithmetic.argument(value) if is_variable else value
            elif default is not None:
                inner.variables[name] = self.value(default)
        return inner.function(function)


def _parameters(function: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """The parameters of a function with their defaults. Raises CannotRun for those with * or /."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
        raise CannotRun("a parameter with * or /", function.lineno)
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + [*arguments.defaults]
    return list(zip(arguments.args, defaults, strict=True))


# What NumPy and Python raise for values that do not fit to each other.
_NUMERIC = (ValueError, TypeError, IndexError, ArithmeticError, MemoryError, KeyError, AttributeError)


def _cannot_run(error: Exception, node: ast.expr | ast.stmt) -> CannotRun:
    """What an operation cannot do, with the line of its node."""
    match error:
        case Unrunnable():
            return CannotRun(str(error), node.lineno)
        case RecursionError():
            return CannotRun("an expression that nests too deep", node.lineno)
        case _:
            return CannotRun(f"{short(node)}, which does not fit,", node.lineno)
