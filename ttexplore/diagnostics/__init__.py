"""The catalogue of diagnostics: every error that users can meet, with its code, its meaning and its remedy.

An error names its code where it is raised. A test finds every such place, and fails where the catalogue lacks the code
or where the code is that of another kind of error.
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
