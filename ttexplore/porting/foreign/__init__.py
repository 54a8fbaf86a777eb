"""Reading kernels of other languages: what they are made of, what they compute, and the same in TileLang.

`triton` and `cuda` read a source into marks and values, `families` says what the values are, and `skeletons` writes
them in TileLang.
"""
