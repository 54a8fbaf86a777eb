"""Trying the built package outside of the checkout, on each version of Python that it promises."""
