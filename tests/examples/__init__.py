"""An example for each code of the catalogue that raises an error with this code: one module for each kind of error.

An example is a function that is called as its code. It raises the error, or gives an exploration that has it. Where it
needs more than a user would write, its docstring tells what happens, else its source is shown.
"""
