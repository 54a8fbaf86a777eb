"""The scans of the kernel language: ``T.cumsum`` and ``T.cummax``."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir

from ttexplore.errors import KernelError, shown
from ttexplore.ir.operations.scans import SCANS
from ttexplore.language.api.tile import as_region, extents, note_hints, same_block, shown_block
from ttexplore.language.tracer.builder import statement_call
from ttexplore.ops import language as tl


def scan(name: str) -> Callable[..., ir.Call]:
    """``T.cumsum(src, dst=None, dim=0, reverse=False)`` or ``T.cummax``."""
    callee = f"T.{name}"

    def scan_block(src: object, dst: object = None, dim: int = 0, reverse: bool = False, **hints: object) -> ir.Call:
        note_hints(callee, hints)
        source = as_region(src, callee)
        target = source if dst is None else as_region(dst, callee, extents(source))
        shape = extents(source)
        if not -len(shape) <= dim < len(shape):
            raise KernelError(
                "K002", f"{callee}: dim={shown(dim)}, but {shown_block(source)} has {len(shape)} dimensions"
            )  # fmt: skip
        if not same_block(extents(target), shape):
            raise KernelError(
                "K002",
                f"{callee}: the shapes differ: {shown_block(source)} to {shown_block(target)}",
                hint="the result has the source's shape",
            )
        attrs = {"kind": SCANS[name], "dim": dim % len(shape), "reverse": int(bool(reverse))}
        return statement_call(tl.SCAN.name, [source, target], attrs)

    scan_block.__name__ = scan_block.__qualname__ = name
    scan_block.__doc__ = f"""Set each element of `dst` to {_SENTENCES[name]} of the elements of `src` up to its place
    along `dim`, or from its place on if `reverse`; without `dst` in place.

    Raises KernelError if `dim` is not a dimension of `src` or the shapes differ.
    """
    return scan_block


_SENTENCES = {"cumsum": "the sum", "cummax": "the largest"}
