"""The catalogue of diagnostics: every error that users can see, with its code, its meaning and its remedy.

Each raise statement names its code. A test finds all of them, and fails if the catalogue lacks the code or if the code
belongs to another kind of error.
"""

from __future__ import annotations

from ttexplore.diagnostics.backends import BACKENDS
from ttexplore.diagnostics.diagnostic import KINDS, PREFIX, Diagnostic
from ttexplore.diagnostics.kernels import KERNELS
from ttexplore.diagnostics.lowering import LOWERING
from ttexplore.diagnostics.resources import RESOURCES
from ttexplore.diagnostics.usage import USAGE
from ttexplore.diagnostics.verifier import VERIFIER

CATALOGUE: dict[str, Diagnostic] = {
    one.code: one for one in (*USAGE, *KERNELS, *LOWERING, *RESOURCES, *VERIFIER, *BACKENDS)
}

__all__ = ["CATALOGUE", "KINDS", "PREFIX", "Diagnostic"]
