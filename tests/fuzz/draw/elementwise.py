"""T.Parallel over a block: stores of expressions and names for them, whose operands stay in their domains."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz.description import Bind, BindForm, Call, Constant, Expression, Load, Named, Parallel, Position, Store
from tests.fuzz.draw.direct import element_of_tensor, places_of
from tests.fuzz.draw.draft import DTYPES, Draft, scaled
from tests.fuzz.draw.ranges import expression_range, follow
from tests.fuzz.meaning import Interval

# Operations of one operand.
UNARY = (
    "abs", "exp", "negative", "exp2", "log", "log2", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "erf", "sin",
    "cos", "floor", "ceil", "round", "float32", "bfloat16",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "max", "min", "divide")
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


def parallel(draft: Draft) -> None:
    """An element-wise block with up to four names and stores."""
    variables = _variables(draft)
    body: list[Bind | Store] = []
    draft.values = {}
    for _ in range(draft.number(1, 4)):
        value = expression(draft, variables, draft.number(1, 3))
        if draft.chance(5):
            name = draft.name("x")
            body.append(Bind(name, value, draft.one(_FORMS)))
            draft.values[name] = (range_of(draft, value), loads(value, draft.values))
            continue
        if draft.chance(5):
            _together(draft, variables, body, value)
            continue
        if draft.chance(3):
            _overwritten(draft, variables, body)
            continue
        target = draft.target(draft.block, draft.one(DTYPES), "r")
        if draft.chance(4):
            _under_test(draft, variables, body, Store(target, value))
            continue
        _store(draft, variables, body, [Store(target, value)])
    if not any(isinstance(one, Store) for one in body):
        target = draft.target(draft.block, draft.one(DTYPES), "r")
        body.append(Store(target, _leaf(draft, variables)))
    while body and isinstance(body[-1], Bind):
        body.pop()
    draft.add(Parallel(variables, draft.block, tuple(body)))


def direct(draft: Draft) -> None:
    """A block that is computed where it is stored, without one on the chip."""
    if len(draft.stored) == 3:
        return
    variables = _variables(draft)
    draft.values = {}
    value = expression(draft, variables, draft.number(1, 3))
    test = _condition(draft, variables, 1) if draft.chance(4) else None
    other = None if test is None else expression(draft, variables, 1)
    tensor, starts = draft.output(draft.one(DTYPES))
    store = Store(tensor.name, value, places_of(draft, starts, variables), test, other)
    draft.add(Parallel(variables, draft.block, (store,)))


def _under_test(draft: Draft, variables: tuple[str, ...], body: list[Bind | Store], store: Store) -> None:
    """A store in an ``if``; without an ``else`` where the block holds something that may stay."""
    test = _condition(draft, variables, 1)
    if store.buffer not in draft.ranges or draft.chance(2):
        store = replace(store, other=expression(draft, variables, draft.number(0, 1)))
    _store(draft, variables, body, [replace(store, test=test)])


_FORMS: tuple[BindForm, ...] = ("name", "name", "list", "tuple", "dict", "walrus", "default", "helper")


def _together(draft: Draft, variables: tuple[str, ...], body: list[Bind | Store], value: Expression) -> None:
    """An assignment of two values to two blocks, which may read one another."""
    targets = [draft.target(draft.block, draft.one(DTYPES), "r") for _ in range(2)]
    if targets[0] == targets[1]:
        targets[1] = draft.allocate(draft.block, draft.one(DTYPES), "fragment", "r")
    names = [draft.name("x") for _ in targets]
    values = [value, expression(draft, variables, draft.number(0, 2))]
    for number, target in enumerate(targets):
        if target in draft.ranges and draft.chance(2):
            # What the other target gets depends on this one, as it was.
            values[1 - number] = tame(draft, Call("add", (Load(target, variables), values[1 - number])))
    body += [Bind(name, one, "together") for name, one in zip(names, values, strict=True)]
    _store(draft, variables, body, [Store(target, Named(name)) for target, name in zip(targets, names, strict=True)])


def _overwritten(draft: Draft, variables: tuple[str, ...], body: list[Bind | Store]) -> None:
    """An element that Python keeps while a store changes it, and that is used after that."""
    defined = draft.defined(draft.block)
    if not defined:
        return
    source, name = draft.one(defined), draft.name("x")
    value = tame(draft, Call(draft.one(["add", "subtract", "max"]), (Load(source, variables), _leaf(draft, variables))))
    body.append(Bind(name, value, draft.one(_FORMS)))
    draft.values[name] = (range_of(draft, value), loads(value, draft.values))
    _store(draft, variables, body, [Store(source, expression(draft, variables, 1))])
    target = draft.target(draft.block, draft.one(DTYPES), "r")
    _store(draft, variables, body, [Store(target, tame(draft, Call("add", (Named(name), Load(source, variables)))))])


def _store(draft: Draft, variables: tuple[str, ...], body: list[Bind | Store], stores: list[Store]) -> None:
    """Add stores to the body, and what they do to the ranges."""
    body += stores
    trial = dict(draft.ranges)
    follow(Parallel(variables, draft.block, tuple(body)), trial)
    for one in stores:
        draft.ranges[one.buffer] = trial[one.buffer]


def changed(draft: Draft, source: str, target: str) -> None:
    """A block of any shape made from another one: what stands between two products."""
    shape = draft.buffers[source].shape
    variables = ("i", "j")
    draft.values = {}
    name = draft.one(["abs", "tanh", "sigmoid", "exp", "negative"])
    operand = Load(source, variables)
    value = tame(draft, Call(name, (guarded(draft, name, tame(draft, operand)),)))
    draft.add(Parallel(variables, shape, (Store(target, value),)))


def expression(draft: Draft, variables: tuple[str, ...], depth: int) -> Expression:
    if depth == 0 or draft.chance(4):
        return _leaf(draft, variables)
    if draft.chance(6):
        # Both sides of one dtype, as the language wants it.
        sides = [Call("float32", (expression(draft, variables, depth - 1),)) for _ in range(2)]
        return Call("select", (_condition(draft, variables, depth - 1), *sides))
    if draft.chance(4):
        name = draft.one(UNARY)
        return tame(draft, Call(name, (guarded(draft, name, expression(draft, variables, depth - 1)),)))
    name = draft.one(BINARY)
    left, right = expression(draft, variables, depth - 1), expression(draft, variables, depth - 1)
    if isinstance(left, Constant) and isinstance(right, Constant):
        left = _element(draft, variables) or left
    return tame(draft, Call(name, (left, guarded(draft, name, right))))


def loads(value: Expression, named: dict[str, tuple[Interval, set[str]]]) -> set[str]:
    """The buffers that an expression reads, those behind names as well."""
    match value:
        case Load(buffer, _):
            return {buffer}
        case Named(name):
            return named[name][1] if name in named else set()
        case Call(_, arguments):
            return set[str]().union(*(loads(one, named) for one in arguments))
        case _:
            return set()


def _variables(draft: Draft) -> tuple[str, ...]:
    return ("i",) if draft.is_vector else ("i", "j")


def _condition(draft: Draft, variables: tuple[str, ...], depth: int) -> Expression:
    """A comparison of numbers or of indices, or several."""
    if depth > 0 and draft.chance(4):
        name = draft.one(["and", "or", "not"])
        sides = 1 if name == "not" else 2
        return Call(name, tuple(_condition(draft, variables, depth - 1) for _ in range(sides)))
    if draft.chance(3):
        return _by_place(draft, variables)
    element = None if draft.chance(2) else _element(draft, variables)
    if element is not None:
        return Call(draft.one(COMPARISONS), (element, expression(draft, variables, depth)))
    return Call(draft.one(COMPARISONS), (_position(draft, variables), _position(draft, variables)))


def _by_place(draft: Draft, variables: tuple[str, ...]) -> Expression:
    """A causal or windowed mask: the element's row in the whole tensor beside its column, or a number."""
    axes = list(draft.places)
    if draft.loops and draft.chance(2):
        axes[-1] = replace(axes[-1], text=draft.loops[0].text)
    places = [
        Position(f"{scaled(axis.text, axis.extent)} + {variable}")
        for axis, variable in zip(axes, variables, strict=True)
    ]
    row, column = places if len(places) > 1 else (places[0], Position(str(draft.number(0, 60))))
    test = Call(draft.one(["less", "less_equal", "greater", "greater_equal", "not_equal"]), (row, column))
    if not draft.chance(3):
        return test
    window = Position(f"{column.text} + {draft.number(1, 48)}")
    return Call(draft.one(["and", "or"]), (test, Call(draft.one(["less", "greater_equal"]), (row, window))))


def _position(draft: Draft, variables: tuple[str, ...]) -> Expression:
    """A whole number of loop variables and block indices; there is always a loop variable in it."""
    variable = draft.one(variables)
    axes = [axis.text for axis in (draft.row, draft.column, *draft.loops) if axis.text.isidentifier()]
    match draft.number(0, 3):
        case 1 if axes:
            return Position(f"{variable} + {draft.one(axes)} * 32")
        case 3 if axes:
            other = draft.one(axes)
            dividend = draft.one([f"{variable} - {draft.number(1, 40)}", f"{variable} - ({other} - 3) + {other}"])
            return Position(f"({dividend}) {draft.one(['//', '%'])} {draft.number(2, 9)}")
        case 2:
            return Position(f"{variable} * {draft.number(2, 3)} + {draft.number(0, 40)}")
        case _:
            return Position(variable)


def _leaf(draft: Draft, variables: tuple[str, ...]) -> Expression:
    if draft.chance(4):
        return Constant(draft.number(-16, 16) / 4)
    if draft.forms and draft.chance(3):
        return draft.one(draft.scalars())
    if draft.values and draft.chance(3):
        return Named(draft.one(draft.values))
    if draft.chance(5):
        return element_of_tensor(draft, variables)
    if not draft.is_vector and draft.chance(3):
        rows, columns = (draft.defined((extent,)) for extent in draft.block)
        ways = [(n, variables[1:]) for n in columns] + [(n, variables[:1]) for n in rows]
        ways += [(n, ("0",)) for n in dict.fromkeys([*rows, *columns])]
        if ways:
            return Load(*draft.one(ways))
    return _element(draft, variables) or Constant(1.0)


def _element(draft: Draft, variables: tuple[str, ...]) -> Expression | None:
    defined = draft.defined(draft.block)
    return Load(draft.one(defined), variables) if defined else None


def range_of(draft: Draft, value: Expression) -> Interval:
    return expression_range(value, draft.ranges, {name: one for name, (one, _) in draft.values.items()})


def guarded(draft: Draft, name: str, operand: Expression) -> Expression:
    """`operand`, kept in the domain of the operation."""
    known = range_of(draft, operand)
    match name:
        case "exp" | "exp2" if known.high > 5:
            return Call("min", (operand, Constant(4.0)))
        case "log" | "log2" | "rsqrt" | "reciprocal" | "divide" if known.low < 0.25:
            return Call("max", (operand, Constant(0.5)))
        case "sqrt" if known.low < 0:
            return Call("abs", (operand,))
        case "sin" | "cos" if known.size > 16:
            return Call("min", (Call("max", (operand, Constant(-4.0))), Constant(4.0)))
        case _:
            return operand


def tame(draft: Draft, value: Expression) -> Expression:
    """The value, scaled down where it may become large."""
    return value if range_of(draft, value).size <= 1000 else Call("multiply", (value, Constant(2**-8)))
