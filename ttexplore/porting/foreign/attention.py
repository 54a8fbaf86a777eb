"""Whether a kernel is attention forward: the rule checks each summand and each index, and refuses anything else.

It assumes, and checks:

- what is stored is a sum of values divided by a sum of weights, both over the same loop, and nothing else is added;
- in each turn both sums are multiplied with the same power of (largest before - largest now), and get the weights of
  the turn, which are that power of (scores - largest now); the largest score of a turn is that of the next one before;
- scores are one product of queries and keys, times one parameter, and times log2(e) if powers of 2 are taken;
- masks hide the keys behind the row, counted as queries and keys are, and nothing else;
- what is added to scores are the positions of rows and keys, each times parameters, before they are masked;
- queries and results have the same heads and rows, keys and values the same heads, of which each may be that of as
  many heads of queries in a row, and all keys, each block once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ttexplore.porting.foreign.places import (
    NOWHERE,
    Atom,
    IndexStrides,
    Place,
    atoms,
    moves_with,
    number,
    plus,
    renamed,
    steps,
    times,
)
from ttexplore.porting.foreign.places import atom as atom_place
from ttexplore.porting.foreign.rows import TensorIndices, distances
from ttexplore.porting.foreign.values import (
    Carried,
    Formula,
    Index,
    Input,
    MatMul,
    Number,
    Output,
    Reduced,
    Scalar,
    Value,
    is_index,
    place_of,
)

_LOG2_E = math.log2(math.e)


class Unlike(Exception):
    """Why a kernel is not attention forward."""


@dataclass(frozen=True, slots=True)
class Bias:
    """What is added to each score: the position of its row and that of its key, each times a sum of products of
    parameters, and another such sum."""

    row: Place
    key: Place
    constant: Place

    @property
    def scalars(self) -> tuple[str, ...]:
        """Its parameters."""
        return tuple(sorted({name for side in (self.row, self.key, self.constant) for _, name, _ in atoms(side)}))


@dataclass(frozen=True, slots=True)
class AttentionTensors:
    """The tensors of attention forward, whether each row sees the keys up to its own alone, and the score of the others
    or, where it `adds`, what is added to it: as the exponent of a power of 2; how many heads of queries share one of
    keys, by its name or number, empty if none do; and what is added to scores."""

    q: Input
    k: Input
    v: Input
    causal: bool
    hidden: float
    adds: bool
    group: str = ""
    bias: Bias | None = None


@dataclass(frozen=True, slots=True)
class _Scores:
    """Scores: a product, times `factor` and `scales`, the condition under which a key is seen, what others are or,
    where it `adds`, what is added to them, and what is added to all of them."""

    product: MatMul
    factor: float = 1.0
    scales: tuple[str, ...] = ()
    mask: Formula | None = None
    hidden: float = -math.inf
    adds: bool = False
    bias: Place = NOWHERE


def read_attention(store: Output, updates: Mapping[str, Value]) -> AttentionTensors:
    """The parts of attention whose result is stored. `updates` are what loops make of variables in each turn.

    Raises Unlike.
    """
    match store.value:
        case Formula("/", (above, below)):
            pass
        case _:
            raise Unlike("its sum of values is not divided by that of the weights")
    outer, rescaled = _sum(above, "values", MatMul)
    added, again = _sum(below, "weights", Reduced)
    if not isinstance(outer, MatMul) or not isinstance(added, Reduced) or added.kind != "sum":
        raise Unlike("its sum of values is not that of attention")
    if added.value != outer.a:
        raise Unlike("it is divided by another sum")
    if rescaled != again:
        raise Unlike("its two sums are not rescaled alike")
    name, exponent = _power(outer.a)
    rescaled_name, before = _power(rescaled)
    if name != rescaled_name:
        raise Unlike("it takes powers of different numbers")
    scores, largest, weight = _exponent(exponent)
    _check_largest(before, largest, weight, scores, updates)
    number = scores.factor / (_LOG2_E if name == "exp2" else 1.0)
    if len(scores.scales) != 1 or abs(number - 1.0) > 1e-4:
        text = " * ".join([*scores.scales, f"{number:.6g}"])
        raise Unlike(f"its scores are scaled by {text}, and not by one parameter")
    q, k, v = scores.product.a, scores.product.b, outer.b
    if not isinstance(q, Input) or not isinstance(k, Input):
        raise Unlike("its queries or keys are computed in the kernel")
    if not isinstance(v, Input) or outer.transposed:
        raise Unlike("its values are computed in the kernel")
    if len({q.tensor, k.tensor, v.tensor, store.tensor}) < 4:
        raise Unlike("its queries, keys, values and results are not four tensors")
    keys, group = _check_places(store, q, k, v, scores.product.transposed)
    if scores.mask is not None:
        _check_mask(scores.mask, q, keys)
    hidden = scores.hidden * (1.0 if name == "exp2" else _LOG2_E)
    bias = _bias(scores.bias, q, k, scores.product.transposed) if scores.bias else None
    if bias is not None and name != "exp":
        raise Unlike("what is added to its scores is not that of attention")
    counting = {
        word
        for side in (q, k, v, store)
        for atom in atoms(side.place or NOWHERE)
        for text in atom
        for word in re.findall(r"\w+", text)
    }
    if bias is not None and counting & {*bias.scalars, *scores.scales}:
        raise Unlike(f"{min(counting & {*bias.scalars, *scores.scales})}, which counts elements, changes its scores")
    return AttentionTensors(q, k, v, scores.mask is not None, hidden, scores.adds, group, bias)


def _sum(value: Value, summand: str, kind: type[MatMul] | type[Reduced]) -> tuple[Value, Value]:
    """What a turn adds to a sum, and what the sum is multiplied with before."""
    match value:
        case Formula("+", (left, right)):
            for total, added in ((left, right), (right, left)):
                match total:
                    case Formula("*", (Carried(_, Number(first)), factor)) | Formula(
                        "*", (factor, Carried(_, Number(first)))
                    ):
                        if isinstance(added, kind) and math.isfinite(first):
                            return added, factor
                    case _:
                        pass
        case _:
            pass
    raise Unlike(f"its sum of {summand} is not that of attention")


def _power(value: Value) -> tuple[str, Value]:
    match value:
        case Formula("exp" | "exp2" as name, (exponent,)):
            return name, exponent
        case _:
            raise Unlike("its weights are no exponentials")


def _exponent(value: Value) -> tuple[_Scores, Value, float]:
    """The scores of an exponent, and the largest of them, which is subtracted, with its factor."""
    match value:
        case Formula("*", (Formula("-", (above, below)), Number(factor))) | Formula(
            "*", (Number(factor), Formula("-", (above, below)))
        ):
            return _times(_scores(above), factor), below, factor
        case Formula("-", (above, below)):
            return _scores(above), below, 1.0
        case _:
            raise Unlike("the largest score is not subtracted from the scores")


def _times(scores: _Scores, factor: float) -> _Scores:
    if scores.bias:
        raise Unlike("its scores are scaled after something is added to them")
    return replace(scores, factor=scores.factor * factor, hidden=scores.hidden * factor)


def _scores(value: Value) -> _Scores:
    adds = False
    match value:
        case MatMul(a, b, transposed):
            factor, scales, a = _scaled(a)
            b_factor, more, b = _scaled(b)
            return _Scores(MatMul(a, b, transposed), factor * b_factor, (*scales, *more))
        case Formula("where", (Formula() as mask, inner, Number(hidden))):
            scores = _scores(inner)
        case Formula("+", (inner, Formula("where", (Formula() as mask, Number(0.0), Number(hidden))))):
            scores, adds = _scores(inner), True
        case Formula("*", _):
            factor, scales, inner = _scaled(value)
            if inner == value:
                raise Unlike("its scores are multiplied with what is no parameter")
            scores = _scores(inner)
            if scores.mask is not None or scores.bias:
                raise Unlike("its scores are scaled after they are masked, or after something is added to them")
            return _Scores(scores.product, scores.factor * factor, (*scores.scales, *scales))
        case Formula("+" | "-" as name, (inner, Index() as added)) | Formula("+" as name, (Index() as added, inner)):
            scores = _scores(inner)
            if scores.mask is not None or scores.bias:
                raise Unlike("something is added to its scores twice, or after they are masked")
            sign = 1.0 if name == "+" else -1.0
            return replace(scores, bias=plus(NOWHERE, place_of(added), sign))
        case Formula(name):
            raise Unlike(f"its scores are changed by {name}")
        case _:
            raise Unlike("its scores are no product")
    if scores.mask is not None:
        raise Unlike("its scores are masked twice")
    return replace(scores, mask=mask, hidden=hidden, adds=adds)


def _scaled(value: Value) -> tuple[float, tuple[str, ...], Value]:
    """The numbers and parameters that a value is multiplied with, and the value without them."""
    factor, scales = 1.0, list[str]()
    while isinstance(value, Formula) and value.name == "*":
        left, right = value.arguments
        constant, inner = (left, right) if left.leaves <= {"Number", "Scalar"} else (right, left)
        if not constant.leaves <= {"Number", "Scalar"}:
            break
        pending = [constant]
        while pending:
            match pending.pop():
                case Number(number):
                    factor *= number
                case Scalar(name):
                    scales.append(name)
                case Formula("*", factors):
                    pending += factors
                case _:
                    raise Unlike("its scores are scaled by what is computed")
        value = inner
    return factor, tuple(scales), value


def _check_largest(before: Value, largest: Value, weight: float, scores: _Scores, updates: Mapping[str, Value]) -> None:
    """Whether the sums are rescaled from the largest score before to the largest one now."""
    match before:
        case Formula("*", (Formula("-", (carried, now)), Number(factor))) | Formula(
            "*", (Number(factor), Formula("-", (carried, now)))
        ):
            pass
        case Formula("-", (carried, now)):
            factor = 1.0
        case _:
            raise Unlike("its sums are not rescaled by the largest scores")
    match largest:
        case Formula("max", (Carried() as running_max, best)) | Formula("max", (best, Carried() as running_max)):
            pass
        case _:
            raise Unlike("its largest score is not carried from turn to turn")
    if running_max != carried or now != largest or factor != weight or running_max.initial != Number(-math.inf):
        raise Unlike("its sums are not rescaled from the largest score before to that of now")
    if updates.get(running_max.name) != largest:
        raise Unlike("its largest score is not that of the next turn")
    _, _, best = _scaled(best)
    if not isinstance(best, Reduced) or best.kind != "max":
        raise Unlike("its largest score is not that of the scores")
    compared = _scores(best.value)
    if (compared.product, compared.bias) != (scores.product, scores.bias):
        raise Unlike("its largest score is not that of the scores")


def _check_mask(mask: Formula, q: Input, keys: Place) -> None:
    """Whether a mask hides the keys behind that of the row, counted as the tensors are."""
    match mask:
        case Formula(">=", (row, column)) | Formula("<=", (column, row)) if is_index(row) and is_index(column):
            rows, columns = place_of(row), place_of(column)
        case _:
            raise Unlike("its scores are masked, but not as in causal attention")
    assert q.place is not None
    fits = (
        {atom[:2] for atom in atoms(rows) if atom[0] == "r"} == {("r", "r0")}
        and {atom[:2] for atom in atoms(columns) if atom[0] == "r"} == {("r", "r1")}
        and moves_with(q.place, rows)
        and moves_with(keys, columns)
        and all(_counts(index) and len(index) == 2 for index in (rows, columns))
    )
    if not fits:
        raise Unlike("its scores are masked, but not as in causal attention")


def _bias(added: Place, q: Input, k: Input, transposed: bool) -> Bias:
    """What is added to scores, by the positions of rows and keys as the tensors count them."""
    assert q.place is not None
    assert k.place is not None
    key_axis = "r0" if transposed else "r1"
    coefficients: list[Place] = []
    for position, kind, axis, as_axis in ((q.place, "p", "r0", "r0"), (k.place, "k", key_axis, "r1")):
        side = steps(position)
        assert not isinstance(side, str)
        _, _, width = inner = _block(side, axis)
        (block,) = _moving(side, inner, kind, "rows")
        size = number(float(width)) if width.isdigit() else atom_place("s", width)
        index = plus(atom_place("r", as_axis, width), times(atom_place(*block), size))
        coefficient = frozenset(
            (tuple(atom for atom in product if atom[:2] != ("r", as_axis)), factor)
            for product, factor in added
            if any(atom[:2] == ("r", as_axis) for atom in product)
        )
        added = plus(added, times(coefficient, index), -1.0)
        coefficients.append(coefficient)
    bias = Bias(coefficients[0], coefficients[1], added)
    if any(kind != "s" or not name.isidentifier() for side in (*coefficients, added) for kind, name, _ in atoms(side)):
        raise Unlike("what is added to its scores is not made of parameters, and of rows and keys")
    return bias


def _counts(index: Place) -> bool:
    """Whether the elements of a block are counted one by one."""
    return all(
        factor == 1 and len(product) == 1 for product, factor in index if any(atom[0] == "r" for atom in product)
    )


def _check_places(store: Output, q: Input, k: Input, v: Input, transposed: bool) -> tuple[Place, str]:
    """Check which elements the tensors' blocks have. Returns where keys are, with their axis as columns of scores, and
    how many heads of queries share one of keys, empty if each has its own."""
    tensor_steps: list[IndexStrides] = []
    for tensor, position in (
        (q.tensor, q.place),
        (k.tensor, k.place),
        (v.tensor, v.place),
        (store.tensor, store.place),
    ):
        side = "at places that are not known" if position is None else steps(position)
        if isinstance(side, str):
            raise Unlike(f"{tensor} is read or written {side}")
        tensor_steps.append(side)
    of_q, of_k, of_v, of_out = tensor_steps
    if of_q.indices != of_out.indices:
        raise Unlike("its results do not have the rows of its queries")
    rows, dim = _block(of_q, "r0"), _block(of_q, "r1")
    (block,) = _moving(of_q, rows, "p", "queries")
    if of_out.strides[block] != tuple(sorted((*of_out.strides[rows], rows[2]))):
        raise Unlike("its results do not have the rows of its queries")
    heads = of_q.indices - {rows, dim, block}
    key, key_dim = _block(of_k, "r0" if transposed else "r1"), _block(of_k, "r1" if transposed else "r0")
    value, value_dim = _block(of_v, "r0"), _block(of_v, "r1")
    (iteration,) = _moving(of_k, key, "k", "keys")
    key_heads = of_k.indices - {key, key_dim, iteration}
    group = "" if key_heads == heads else _group(heads, key_heads)
    if of_v.indices - {value, value_dim} != key_heads | {iteration}:
        raise Unlike("its keys and values do not have the same heads")
    if (iteration,) != _moving(of_v, value, "k", "values") or key[2] != value[2] or not _whole(iteration):
        raise Unlike("its keys and values are not those of the same turns")
    if len({dim[2], key_dim[2], value_dim[2]}) > 1:
        raise Unlike("its queries, keys and values do not have the same number of columns")
    _check_heads(heads, key_heads, tensor_steps)
    sides = [(q, of_q, rows, dim), (k, of_k, key, key_dim), (v, of_v, value, value_dim), (store, of_out, rows, dim)]
    if odd := distances(
        [
            TensorIndices(operand.tensor, side, frozenset({row}), frozenset({column}))
            for operand, side, row, column in sides
        ]
    ):
        raise Unlike(odd)
    for tensor_side in tensor_steps:
        of_heads = (heads | key_heads) & tensor_side.indices
        if any(name.startswith("#") for index in of_heads for name in tensor_side.strides[index]):
            raise Unlike("some of its heads are left out")
        for index in tensor_side.indices - heads - key_heads:
            if index[0] == "r" and (
                len(tensor_side.strides[index]) > 1 or "".join(tensor_side.strides[index]).startswith("#")
            ):
                raise Unlike("some of its rows or columns are left out")
    assert k.place is not None
    axes = {key: "r1", key_dim: "r0"}
    return renamed(k.place, lambda atom: (atom[0], axes.get(atom, atom[1]), atom[2])), group


def _group(heads: frozenset[Atom], key_heads: frozenset[Atom]) -> str:
    """How many heads of queries in a row share one head of keys."""
    if len(heads) == len(key_heads) == 1:
        ((kind, name, _),), ((_, key_name, _),) = heads, key_heads
        shared = re.fullmatch(r"\((\d+\)) // (\w+)\)", key_name)
        if kind == "p" and shared is not None and shared[1] == name:
            return shared[2]
    raise Unlike("its keys and values do not have the heads of its queries")


def _block(side: IndexStrides, name: str) -> Atom:
    blocks = [index for index in side.indices if index[:2] == ("r", name)]
    if len(blocks) != 1 or not blocks[0][2]:
        raise Unlike("its blocks have sizes that are not known")
    return blocks[0]


def _moving(side: IndexStrides, inner: Atom, kind: str, operand: str) -> tuple[Atom]:
    """The index that moves from block to block, by the size of a block."""
    expected = tuple(sorted((*side.strides[inner], inner[2] if not inner[2].isdigit() else f"#{inner[2]}")))
    iterations = [index for index, strides in side.strides.items() if index[0] == kind and strides == expected]
    if len(iterations) != 1:
        raise Unlike(f"its blocks of {operand} do not follow each other")
    return (iterations[0],)


def _whole(iteration: Atom) -> bool:
    """Whether a loop goes over a length, and not over a part of one."""
    return re.fullmatch(r"\d+ of (\w+|\(\w+ cdiv \w+\))", iteration[1]) is not None


def _check_heads(heads: frozenset[Atom], key_heads: frozenset[Atom], tensor_steps: list[IndexStrides]) -> None:
    digits = dict[str, set[str]]()
    for _, name, _ in heads:
        if re.fullmatch(r"\d+\)", name):
            continue
        split = re.fullmatch(r"\((\d+\)) (//|%) (\w+)\)", name)
        if split is None:
            raise Unlike("its heads are not numbered one by one")
        digits.setdefault(f"{split[1]} {split[3]}", set()).add(split[2])
    if any(operators != {"//", "%"} for operators in digits.values()):
        raise Unlike("its heads are not numbered one by one")
    for side in tensor_steps:
        of_heads = (heads | key_heads) & side.indices
        strides = [stride for index, stride in side.strides.items() if index in of_heads or index[0] == "r"]
        if len(set(strides)) < len(strides) or any(side.strides[index] == () for index in of_heads):
            raise Unlike("its heads are not numbered one by one")
