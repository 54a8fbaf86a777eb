"""What proofs say: each trial of a skeleton beside its source, and why a skeleton is proved or a draft."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ttexplore.characters import Printed
from ttexplore.views.markup import plural

Array = NDArray[Any]
# Differences are told in powers of ten: the order of sums may change smaller ones, and those below the first.
_POWERS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def listed(values: Mapping[str, object]) -> str:
    """Names with their values, in a line."""
    return ", ".join(f"{name} = {value}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of both: the sizes, which inputs, and the largest difference, relative to the largest result. `skipped`
    says why the source gives no result with these sizes."""

    sizes: Mapping[str, int]
    inputs: str
    error: float = 0.0
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Difference(Printed):
    """The first element that differs: of a tensor of the source, at an index of the skeleton's; `line` is that of the
    source's store, 0 where it is not known."""

    tensor: str
    index: tuple[int, ...]
    source: float
    skeleton: float
    sizes: Mapping[str, int]
    inputs: str
    line: int = 0

    def __str__(self) -> str:
        index = ", ".join(map(str, self.index))
        sizes = listed(self.sizes)
        stored = f", stored in line {self.line}" if self.line else ""
        return (
            f"{self.tensor}[{index}] is {self.source:.6g} in the source{stored}, and {self.skeleton:.6g} in the "
            f"skeleton ({sizes}; {self.inputs} inputs)"
        )


@dataclass(frozen=True, eq=False)
class PortProof(Printed):
    """How a skeleton was tried against its source: each trial; the parameters of the source with their values in the
    first one; and the outputs of both where they are furthest apart, by the names of the source's tensors."""

    trials: tuple[Trial, ...]
    launch: Mapping[str, object]
    source: Mapping[str, Array]
    skeleton: Mapping[str, Array]

    @property
    def error(self) -> float:
        """The largest difference of all trials, relative to the largest result."""
        return max((trial.error for trial in self.trials), default=0.0)

    @property
    def sizes(self) -> tuple[Mapping[str, int], ...]:
        """The sizes that were tried."""
        every: list[Mapping[str, int]] = []
        for trial in self.trials:
            if not trial.skipped and trial.sizes not in every:
                every.append(trial.sizes)
        return tuple(every)

    @property
    def equal_sizes(self) -> Mapping[str, str]:
        """The sizes that were the same as one before in all trials, because they are one length in the source."""
        equal: dict[str, str] = {}
        for first, second in itertools.combinations(self.sizes[0] if self.sizes else (), 2):
            if first not in equal and all(sizes[first] == sizes[second] for sizes in self.sizes):
                equal.setdefault(second, first)
        return equal

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that were tried."""
        return tuple(dict.fromkeys(trial.inputs for trial in self.trials if not trial.skipped))

    @property
    def skipped(self) -> tuple[str, ...]:
        """Why the source gives no result with other sizes."""
        return tuple(dict.fromkeys(trial.skipped for trial in self.trials if trial.skipped))

    @property
    def summary(self) -> str:
        """What was tried and how it came out, in a sentence."""
        bound = next((power for power in _POWERS if self.error < power), 1.0)
        return (
            f"proved with {plural(len(self.sizes), 'set')} of sizes and {', '.join(self.inputs)} inputs: all "
            f"differences from the source are below {bound:g} of the largest result"
        )

    def __str__(self) -> str:
        launch = listed(self.launch)
        sizes = [listed(sizes) for sizes in self.sizes]
        return "\n".join([self.summary, f"the source was launched with {launch}", *sizes, *self.skipped])


@dataclass(frozen=True, slots=True)
class Draft:
    """Why a skeleton is not proved; `difference` is the first element that differs, if that is why."""

    reason: str
    difference: Difference | None = None


NOT_RUN = Draft("the source was not run")
