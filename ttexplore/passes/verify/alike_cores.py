"""Cores that do the same, looked at as one: a value that differs between them is an array with an entry for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ttexplore.ir.arithmetic.index import CoreItem, CoreValue, Expression, Key, Range, Values, Variable, value_range
from ttexplore.plan import CoreWork

T = TypeVar("T")


class Apart(Exception):
    """Not all cores do the same: those that may have equal labels, in the order of the cores."""

    def __init__(self, labels: Sequence[Hashable]) -> None:
        super().__init__()
        self.labels = labels


def by_likeness(
    cores: Sequence[CoreWork], look: Callable[[Sequence[CoreWork]], T], flags: Sequence[str] = ()
) -> list[tuple[list[CoreWork], T]]:  # fmt: skip
    """What is seen of groups of cores that do the same. `look` raises Apart for cores that do not; those with other
    numbers of work items, or other values of the `flags`, are not even tried together."""
    waiting = _parts(cores, [(core.items, *map(core.values.get, flags)) for core in cores])
    results: list[tuple[list[CoreWork], T]] = []
    while waiting:
        group = waiting.pop()
        try:
            results.append((group, look(group)))
        except Apart as apart:
            smaller = _parts(group, apart.labels)
            assert len(smaller) > 1, "cores that come apart do not do the same"
            waiting += smaller
    return results


def _parts(cores: Sequence[CoreWork], labels: Sequence[Hashable]) -> list[list[CoreWork]]:
    by_label: dict[Hashable, list[CoreWork]] = {}
    for label, core in zip(labels, cores, strict=True):
        by_label.setdefault(label, []).append(core)
    return [*by_label.values()]


class CoreRanges:
    """What is known of some cores that do the same so far. An array has a last axis for the cores, of length 1 where
    all have the same."""

    def __init__(self, cores: Sequence[CoreWork]) -> None:
        self.cores = cores
        self.known: dict[Key, Range] = {}
        for name in cores[0].values:
            values = [core.values[name] for core in cores]
            self.learn(CoreValue(name), _exactly(values[0] if len({*values}) == 1 else np.asarray(values, np.int64)))

    def learn(self, key: Key, bounds: Range | None) -> None:
        self.known.pop(key, None)
        if bounds is not None:
            self.known[key] = bounds

    def of(self, e: Expression) -> Range | None:
        """The range of an expression on each core: what it is if the core is looked at alone. Raises Apart."""
        if type(e) is int:
            return e, e
        bounds = self.known.get(e) if type(e) is Variable else value_range(e, self.known)
        if len(self.cores) == 1 or (bounds is not None and bounds[0] is bounds[1]):
            return bounds
        if bounds is not None or any(value_range(e, self._alone(number)) for number in range(len(self.cores))):
            raise self.one_by_one()
        return None

    def item(self, item: CoreItem) -> Range | None:
        """The number in a place of the lists of the cores. Raises Apart."""
        at = self.of(item.position)
        if at is None or not np.array_equal(*at):
            return None
        position, lengths = np.asarray(at[0], np.int64), np.asarray([len(core.listed) for core in self.cores])
        there = (position >= 0) & (position < lengths)
        if not self.same(np.asarray(there.all(axis=tuple(range(there.ndim - 1))))):
            return None
        listed = np.zeros((len(self.cores), lengths.max()), np.int64)
        for row, core in zip(listed, self.cores, strict=True):
            row[: len(core.listed)] = core.listed
        return _exactly(listed[np.arange(len(self.cores)), position])

    def same(self, values: Values) -> int:
        """The value that all cores have. Raises Apart if they have several."""
        if not isinstance(values, np.ndarray):
            return int(values)
        labels = values.ravel().tolist()
        if len({*labels}) > 1:
            raise Apart(labels)
        return int(labels[0])

    def one_by_one(self) -> Apart:
        return Apart(range(len(self.cores)))

    def halved(self) -> Apart:
        count = len(self.cores)
        return Apart([number >= count // 2 for number in range(count)])

    def _alone(self, number: int) -> Mapping[Key, Range]:
        ranges: dict[Key, Range] = {}
        for key, (low, high) in self.known.items():
            least = _of_core(low, number)
            ranges[key] = (least, least if low is high else _of_core(high, number))
        return ranges


def _of_core(values: Values, number: int) -> Values:
    if not isinstance(values, np.ndarray):
        return values
    return values[..., number if values.shape[-1] > 1 else 0]


def _exactly(value: Values) -> Range:
    return value, value
