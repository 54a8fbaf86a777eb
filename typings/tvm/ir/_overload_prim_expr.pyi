"""The operators of expressions, by their Python names."""
