"""What a skeleton takes for granted and its trials do not show: said beside the proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ttexplore.porting.foreign.families import Attention, Family
from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.foreign.values import Formula, Number, Scalar, scalars_of, walk
from ttexplore.porting.proof.cuda.tokens import without_comments
from ttexplore.porting.proof.results import Trial

_LARGEST_OF_C = ("FLT_MAX", "DBL_MAX")


def assumptions(language: Language, text: str, kernel: ForeignKernel, family: Family) -> Iterator[str]:
    """What of a kernel's numbers is another one in its skeleton, in the same places of usual inputs."""
    if isinstance(family, Attention) and not math.isinf(family.hidden):
        yield f"no score that is seen is {-family.hidden:g} or more below another: hidden ones are -infinity"
    if language == "CUDA":
        code = without_comments(text)
        for name in _LARGEST_OF_C:
            if name in code:
                yield f"{name} counts as infinity: of rows of infinities alone, the largest or smallest element is one"
    whole_parameters = {
        parameter.name for parameter in kernel.parameters if parameter.kind == "number" and parameter.dtype
    }
    for name in sorted(_computed(kernel) - whole_parameters):
        or_whole = "" if language == "CUDA" else ", or a whole number, which may wrap around"
        yield f"what is computed from {name} alone is a float64, where the source has a float32{or_whole}"


def tried_equal(trials: Sequence[Trial], names: Sequence[str]) -> Iterator[str]:
    """The sizes of a skeleton that are one number in the source, so that all trials have them equal."""
    sizes = [trial.sizes for trial in trials if not trial.skipped]
    for first, second in itertools.combinations(names, 2):
        if all(first in each and each[first] == each.get(second) for each in sizes):
            yield f"{first} and {second} are equal, as in the source"


def _computed(kernel: ForeignKernel) -> set[str]:
    """The parameters, no lengths, from which numbers are computed before an element comes in."""
    parameters = {parameter.name for parameter in kernel.parameters if parameter.kind != "tensor"}
    computed = set[str]()
    for term in (term for store in kernel.stores for term in walk(store.value)):
        match term:
            case Formula("*", (Number(-1.0), Scalar())):
                pass
            case Formula() if term.leaves <= {"Number", "Scalar"}:
                names = scalars_of(term)
                computed |= names if names <= parameters and not names & kernel.lengths else set()
            case _:
                pass
    return computed
