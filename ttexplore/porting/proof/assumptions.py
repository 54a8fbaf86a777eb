"""What a skeleton takes for granted and its trials do not show: said beside the proof."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ttexplore.porting.foreign.families import Attention, Family
from ttexplore.porting.foreign.marks import ForeignKernel, Language
from ttexplore.porting.proof.cuda.tokens import without_comments

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
