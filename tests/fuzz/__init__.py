"""Random kernels and schedules: every law of the lowering on each of them.

`description` says what a kernel is as a value, `source` writes it as a user would, `meaning` computes what it gives,
`draw` draws random ones, `laws` holds the product to them, `__main__` runs as many as wanted.
"""
