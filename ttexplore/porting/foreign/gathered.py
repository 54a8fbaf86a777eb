"""Indices that are elements of a tensor: rows that it chooses, and one column for each row.

In a place they are atoms of a kind of their own (``g``), which no rule on places takes for a row or column. Here a
gathered row becomes a row in the place of its index; a chosen element of a row becomes the sum of those elements whose
column is the index, all others counted as zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ttexplore.porting.foreign.places import NOWHERE, Atom, Place, atom, atoms, plus, times, written
from ttexplore.porting.foreign.values import (
    COLUMN,
    ZERO,
    Formula,
    Index,
    Input,
    Output,
    Reduced,
    Value,
    in_order,
    place_of,
    replaced,
    walk,
)

_FULL, _ROWS = frozenset({"r0", "r1"}), frozenset({"r0"})


def place_with_index(value: Value) -> tuple[Place, Input | None]:
    """A number made of indices, parameters and at most one element of a tensor, as a place, and that element."""
    inputs = {term for term in walk(value) if isinstance(term, Input)}
    if len(inputs) != 1:
        return place_of(value), None
    (index,) = inputs
    if index.place is None or index.by is not None:
        return place_of(value), None
    stand_in = Index(index.axes, frozenset(), atom(*_atom_of(index)))
    position = place_of(replaced(value, lambda term: stand_in if term == index or _is_whole(term, index) else None))
    return position, index


def _is_whole(term: Value, index: Input) -> bool:
    return isinstance(term, Formula) and term.name == "whole" and term.arguments == (index,)


def _atom_of(index: Input) -> Atom:
    return ("g", index.tensor, written(index.place or NOWHERE))


def followed(position: Place, index: Input | None) -> Place:
    """A place with the place of its index where the index is."""
    if index is None or index.place is None:
        return position
    chosen = _atom_of(index)
    moved = NOWHERE
    for product, factor in position:
        term = frozenset({(tuple(symbol for symbol in product if symbol != chosen), factor)})
        for _ in range(product.count(chosen)):
            term = times(term, index.place)
        moved = plus(moved, term)
    return moved


def indices_of(stores: Iterable[Output]) -> dict[str, Input]:
    """The tensors whose elements are indices."""
    return {
        term.by.tensor: term.by for store in stores for term in walk(store.value) if isinstance(term, Input) and term.by
    }


def without_indices(value: Value) -> list[Value]:
    """What a value is made of, itself first, without the indices of its elements."""
    return in_order(value, until=lambda term: isinstance(term, Input))[::-1]


def with_rows(stores: tuple[Output, ...]) -> tuple[Output, ...] | str:
    """The stores with gathered rows in the places of their indices, and chosen elements as sums over rows; or why they
    are neither."""
    every = [term for store in stores for term in walk(store.value) if isinstance(term, Input)]
    new: dict[Value, Value] = {}
    for term in every:
        if term.by is None or term.place is None or term in new:
            continue
        chosen = atom(*_atom_of(term.by))
        row = plus(term.place, chosen, -1.0)
        if atoms(chosen) & atoms(row):
            position = followed(term.place, term.by)
            of_index = [product for product, _ in term.place if atoms(chosen) & {*product}]
            if len(of_index) != 1 or any(kind == "g" for kind, _, _ in atoms(position)):
                return f"{term.tensor} is read at indices that are not known"
            new[term] = replace(term, place=position)
            continue
        if len(term.place) != len(row) + 1:
            new[term] = replace(term, place=followed(term.place, term.by))
            continue
        whole_rows = [
            access
            for access in every
            if access.tensor == term.tensor
            and access.by is None
            and access.place
            and row < access.place
            and not _indices(plus(access.place, row, -1.0)) & _indices(row)
        ]
        if _indices(row) != _indices(term.by.place or NOWHERE) or not whole_rows:
            return f"elements of {term.tensor} are read at indices that are not known"
        is_chosen = Formula("==", (COLUMN, term.by))
        new[term] = Reduced("sum", Formula("where", (is_chosen, whole_rows[0], ZERO)), together=True)
    return tuple(replace(store, value=replaced(store.value, new.get)) for store in stores)


def _indices(position: Place) -> set[Atom]:
    return {symbol for symbol in atoms(position) if symbol[0] != "s"}


def misplaced(stores: tuple[Output, ...]) -> str:
    """Why indices are not one for each row, empty if they are. What is compared with a column is one, too."""
    for store in stores:
        for term in walk(store.value):
            match term:
                case Input(axes=axes, by=Input() as index) if axes != _FULL or index.axes != _ROWS:
                    return f"{term.tensor} is not read by rows that {index.tensor} has one index for each of"
                case Formula("==", (column, Input() as index)) if column == COLUMN and index.axes != _ROWS:
                    return f"{index.tensor} has not one index for each row"
                case _:
                    pass
    return ""
