"""Validation of a kernel: does it compute the same, right numbers for tiny, odd and large shapes, in each dtype, on
each target, however many cores share the work? `cases` finds what to try, `validate` tries it, `result` is the table.

`ttx.validate(kernel)` is the entry point.
"""
