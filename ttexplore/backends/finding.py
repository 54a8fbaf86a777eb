"""One thing that was looked for on this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. `found` says what is there, `mend` how to get what is not."""

    name: str
    ok: bool
    required: bool
    found: str
    mend: str = ""

    def __str__(self) -> str:
        mark = "ok     " if self.ok else ("MISSING" if self.required else "absent ")
        return f"{mark}  {self.name:<22} {self.found}" + ("" if self.ok else f"\n         {'':<22} mend: {self.mend}")
