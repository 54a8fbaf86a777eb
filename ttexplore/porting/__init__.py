"""From GPU kernels to Tenstorrent: a table of constructs and their equivalents, and the checklist of a port.

``ttx.porting.table()`` is the table, ``ttx.porting.table().search("cp.async")`` the rows about a construct, and
``ttx.porting.cheat_sheet()`` those about whole kernels. ``ex.porting_checks()`` goes through the porting checklist for
an exploration; ``ttx.porting.checklist()`` says what it asks for.
"""

from __future__ import annotations

from ttexplore.porting.checks import PortingCheck, PortingChecks, checklist
from ttexplore.porting.pattern import Pattern
from ttexplore.porting.table import Table, cheat_sheet, sections, table

__all__ = ["Pattern", "PortingCheck", "PortingChecks", "Table", "cheat_sheet", "checklist", "sections", "table"]
