"""Blocks that are numbered group by group: an order in which blocks of two axes are computed, and nothing else.

With ``c`` columns of blocks and groups of ``g`` rows of blocks, the number ``p`` of a block stands for the row
``p // (c * g) * g + p % (c * g) % size`` and the column ``p % (c * g) // size``, where ``size`` is ``g`` or, in the
last group, the rows that are left: ``min(rows - p // (c * g) * g, g)``. Each row and column occurs once, as with the
digits ``p // c`` and ``p % c``, which stand for them from here on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ttexplore.porting.foreign.places import Atom, Place, atoms
from ttexplore.porting.foreign.values import Index, Input, Output, Value, replaced, walk

_COLUMN = re.compile(r"\(\((?P<number>\d+\)) % (?P<together>[^%]+?)\) // (?P<size>.+)\)")
_FACTORS = re.compile(r"\([^()]*\)|\w+")


@dataclass(frozen=True, slots=True)
class GroupedBlocks:
    """The number of a block along rows that is left after that of its group, the number of the group, and that along
    columns; the size of groups; and the digits that stand for rows and columns."""

    row: frozenset[Atom]
    group: Atom
    column: Atom
    size: str
    digit_row: Atom
    digit_column: Atom

    def ungrouped(self, position: Place) -> Place | None:
        """A place with the digits, None if it has these numbers in another way."""
        terms: dict[tuple[Atom, ...], float] = {}
        used = self.row | {self.group, self.column}
        groups = {product: factor for product, factor in position if self.group in product}
        for product, factor in position:
            rest = [atom for atom in product if atom not in used]
            if len(product) - len(rest) > 1:
                return None
            if any(atom in self.row for atom in product):
                of_group = tuple(sorted((*rest, self.group, ("s", self.size, ""))))
                if groups.pop(of_group, None) != factor:
                    return None
                product = tuple(sorted((*rest, self.digit_row)))
            elif self.column in product:
                product = tuple(sorted((*rest, self.digit_column)))
            elif self.group in product:
                continue
            terms[product] = factor
        return None if groups else frozenset(terms.items())


def grouped_blocks(stores: Iterable[Output]) -> GroupedBlocks | None:
    """How the blocks of a kernel are numbered by groups, None if they are not, or in another way."""
    names = {name for store in stores for kind, name, _ in atoms(store.place or frozenset()) if kind == "p"}
    for name in names:
        match = _COLUMN.fullmatch(name)
        factors = _FACTORS.findall(match["together"]) if match is not None else []
        if match is None or len(factors) != 2:
            continue
        for columns, size in itertools.permutations(factors):
            if f"{columns}*{size}" != match["together"] and f"{size}*{columns}" != match["together"]:
                continue
            number, together = match["number"], match["together"]
            group = f"({number} // {together})"
            if not size.isidentifier() or not _is_size(match["size"], group, size):
                continue
            rows = {f"(({number} % {together}) % {match['size']})", f"({number} % {match['size']})"}
            digits = (f"({number} {operator} {columns})" for operator in ("//", "%"))
            row, column = (("p", digit, "") for digit in digits)
            return GroupedBlocks(
                frozenset(("p", row_name, "") for row_name in rows),
                ("p", group, ""),
                ("p", name, ""),
                size,
                row,
                column,
            )
    return None


def _is_size(text: str, group: str, size: str) -> bool:
    """Whether a text is the rows of a group: its size, or those that are left."""
    sides = text[1:-1].split(" min ")
    if (text[0], text[-1]) != ("(", ")") or len(sides) != 2 or size not in sides:
        return False
    remaining = sides[0] if sides[1] == size else sides[1]
    before = {"*".join(order) for order in itertools.permutations((group, size, "-1"))}
    return any(
        re.fullmatch(rf"{re.escape(product)}\+\([^+()]+\)|\([^+()]+\)\+{re.escape(product)}", remaining)
        for product in before
    )


def with_digits(store: Output, blocks: GroupedBlocks) -> Output | None:
    """A store with all of its places ungrouped, None if one cannot be."""
    positions = [term.place for term in walk(store.value) if isinstance(term, Input | Index)]
    if any(position is not None and blocks.ungrouped(position) is None for position in (*positions, store.place)):
        return None

    def change(term: Value) -> Value | None:
        if isinstance(term, Input | Index) and term.place is not None:
            return replace(term, place=blocks.ungrouped(term.place))
        return None

    position = None if store.place is None else blocks.ungrouped(store.place)
    return replace(store, value=replaced(store.value, change), place=position)
