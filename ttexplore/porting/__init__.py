"""From GPU kernels to Tenstorrent: a table of constructs and their equivalents.

``ttx.porting.table()`` is the table, ``ttx.porting.table().search("cp.async")`` the rows about a construct, and
``ttx.porting.cheat_sheet()`` those about whole kernels.
"""

from __future__ import annotations

from ttexplore.porting.pattern import Pattern
from ttexplore.porting.table import Table, cheat_sheet, sections, table

__all__ = ["Pattern", "Table", "cheat_sheet", "sections", "table"]
