"""The result of looking for one component on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from ttexplore.characters import Printed


@dataclass(frozen=True, slots=True)
class Finding(Printed):
    """The result of looking for one component: `found` is its state, `fix` the command that installs or repairs it."""

    name: str
    ok: bool
    required: bool
    found: str
    fix: str = ""

    def __str__(self) -> str:
        mark = "ok     " if self.ok else ("MISSING" if self.required else "absent ")
        return f"{mark}  {self.name:<22} {self.found}" + ("" if self.ok else f"\n         {'':<22} fix: {self.fix}")
