"""The catalogue of diagnostics: every error that users can meet, with its code, its meaning and its remedy.

An error is recognised by its kind and its message, so that what raises it says everything once. A test finds every
place that raises, and fails where one has no entry.
"""

from __future__ import annotations

from ttexplore.diagnostics.backends import BACKENDS
from ttexplore.diagnostics.diagnostic import KINDS, PREFIX, Diagnostic, letters, pattern
from ttexplore.diagnostics.kernels import KERNELS
from ttexplore.diagnostics.lowering import LOWERING
from ttexplore.diagnostics.resources import RESOURCES
from ttexplore.diagnostics.usage import USAGE
from ttexplore.diagnostics.verifier import VERIFIER

CATALOGUE: dict[str, Diagnostic] = {
    one.code: one for one in (*USAGE, *KERNELS, *LOWERING, *RESOURCES, *VERIFIER, *BACKENDS)
}


def recognise(kind: str, message: str) -> Diagnostic | None:
    """The diagnostic that a message of an error of some kind belongs to; None for a message that no entry fits."""
    best, most = None, -1
    for one in CATALOGUE.values():
        if one.kind != kind:
            continue
        for form in one.messages:
            if letters(form) > most and pattern(form).fullmatch(message):
                best, most = one, letters(form)
    return best


__all__ = ["CATALOGUE", "KINDS", "PREFIX", "Diagnostic", "recognise"]
